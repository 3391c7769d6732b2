"""Allocation traces: what is in them, and that it can be done again."""
import json
import pathlib
import re
import shutil
import subprocess
from collections import Counter

import pytest
from conftest import TESTS, output

ROOT = TESTS.parent
HEAD = b"hakmem trace 1\n"
NUMBERS = {"m": 1, "c": 1, "a": 2, "f": 0, "b": 0, "e": 1, "t": 1, "w": 1}  # in front of the place


def records(path):
    """(letter, its numbers, address or None, thread) of each."""
    data = path.read_bytes()
    assert data.startswith(HEAD)
    place, granule, thread = len(HEAD), 0, 0

    def number():
        nonlocal place
        value = shift = 0
        while True:
            byte = data[place]
            place += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while place < len(data):
        letter = chr(data[place])
        place += 1
        values = [number() for _ in range(NUMBERS[letter])]
        address = None
        if letter not in "tw":
            code = number()
            granule += code >> 1 if code % 2 == 0 else -(code >> 1) - 1
            address = granule * 16
        if letter == "t":
            thread = values[0]
        yield letter, values, address, thread


@pytest.fixture(scope="session")
def program(build):
    return build("traced.c")


def trace_of(run, program, folder, *words, **settings):
    path = folder / "a.trace"
    result = run(program, *words, HAKMEM_TRACE=str(path), **settings)
    assert (result.returncode, result.stderr) == (0, ""), result
    return list(records(path))


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_the_calls_of_a_program_are_in_its_trace(run, program, tmp_path, mode):
    found = [(letter, values) for letter, values, _, thread
             in trace_of(run, program, tmp_path, 2, HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT="off")
             if thread == 3 and letter not in "tw"]
    once = [("m", [100]), ("b", []), ("e", [50000]), ("b", []), ("e", [3]), ("f", []),
            ("c", [7000]), ("f", []), ("a", [8192, 12]), ("f", []),
            ("m", [20 << 20]), ("b", []), ("e", [40 << 20]), ("f", []), ("m", [5]), ("f", []),
            ("b", []), ("e", found[17][1])]
    assert found[:36] == once * 2
    assert ("m", [77]) in found[36:]


def test_every_block_is_known_and_no_address_is_given_twice(run, program, tmp_path):
    live, resized, times = {}, {}, 0
    threads = set()
    for letter, values, address, thread in trace_of(run, program, tmp_path, 300):
        if letter in "mcae":
            assert address not in live and address != 0
            live[address] = values[0]
        if letter in "fb":
            assert address in live
            resized[thread] = live.pop(address)
        times += letter == "w" and values[0]
        threads.add(thread)
    assert threads >= {1, 2, 3, 4} and times < 600_000
    assert len(live) <= 8  # what threads and streams of the C library hold to the end


def test_threads_at_work_at_once(build, run, tmp_path):
    found = trace_of(run, build("stress/handoff.c"), tmp_path, 4, 3000, 1)
    live = set()
    for letter, _, address, _ in found:
        if letter in "mcae":
            assert address not in live
            live.add(address)
        if letter in "fb":
            live.remove(address)
    assert len({thread for *_, thread in found}) >= 4


def test_the_command_makes_a_file_for_each_process(program, hakmem, tmp_path):
    done = hakmem("trace", "--out", "here", "--", "sh", "-c", f"cd /; {program}; exit 3")
    told = re.findall(r"process (\d+): .* in here/(\d+)\.trace", done.stderr)
    assert done.returncode == 3 and 1 <= len(told) <= 2, done  # the shell may end by _exit
    assert len(told) == len(list((tmp_path / "here").iterdir()))
    for process, name in told:
        assert process == name and list(records(tmp_path / f"here/{name}.trace"))


# ---- replay ----

@pytest.fixture(scope="session")
def replay(tmp_path_factory):
    """replay, replay_prepare and trace_census."""
    folder = tmp_path_factory.mktemp("replay")
    programs = ROOT / "bench/programs"
    flags = ["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-g", "-I", programs, "-pthread"]
    subprocess.run([*flags, "-o", folder / "replay", programs / "replay.c", programs / "bench.c",
                    programs / "arguments.c"], check=True)
    for name in ("replay_prepare", "trace_census"):
        subprocess.run([*flags, "-o", folder / name, programs / f"{name}.c",
                        programs / "trace_reader.c"], check=True)
    return folder


def told(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=60)


def is_refused(done, status):
    return done.returncode == status and len(done.stderr.splitlines()) == 1


@pytest.fixture
def made(run, replay, tmp_path):
    """made(program, …): its records, the file that replays them, and how many threads it needs."""
    def make(program, *words):
        found = trace_of(run, program, tmp_path, *words)
        done = told(replay / "replay_prepare", tmp_path / "a.trace", tmp_path / "a.replay")
        threads = re.fullmatch(r"\d+ calls, \d+ blocks at a time, (\d) threads at a time\n",
                               done.stdout)
        return found, tmp_path / "a.replay", int(threads[1])

    return make


def test_what_is_replayed_allocates_the_same_again(run, program, replay, made, tmp_path):
    """The trace of the replay has the calls of the trace that it replays, with the same sizes."""
    first, file, threads = made(program, 40)
    assert threads == 2
    second = tmp_path / "b.trace"
    result = run(replay / "replay", file, HAKMEM_TRACE=str(second))
    assert result.returncode == 0, result
    wanted = Counter((letter, tuple(values)) for letter, values, *_ in first if letter in "mcae")
    got = Counter((letter, tuple(values)) for letter, values, *_ in records(second))
    assert all(got[each] >= count for each, count in wanted.items())
    assert sum(got.values()) >= len([each for each in first if each[0] not in "tw"])


def test_what_is_replayed_makes_the_same_classes(build, run, replay, tmp_path):
    """To the byte: what is decided depends on the calls alone, not on time or addresses."""
    trace, file = tmp_path / "a.trace", tmp_path / "a.replay"

    def decided(name, *command, **settings):
        result = run(*command, HAKMEM_STATS=tmp_path / name, **settings)
        assert result.returncode == 0, result
        return json.loads((tmp_path / name).read_text())["fitted_classes"]

    recorded = decided("recorded", build("fitting.c"), HAKMEM_TRACE=trace)
    assert {each["state"] for each in recorded.values()} == {"frozen", "withdrawn"}
    assert told(replay / "replay_prepare", trace, file).returncode == 0
    for name in ("first", "second"):
        assert decided(name, replay / "replay", file) == recorded


@pytest.mark.parametrize("rounds", [1, 5])
def test_threads_wait_for_each_other(build, run, replay, made, rounds):
    _, file, _ = made(build("stress/handoff.c"), 4, 3000, 1)
    result = run(replay / "replay", file, f"--rounds={rounds}", HAKMEM_MODE="debug",
                 HAKMEM_LEAK_REPORT="off")
    assert result.returncode == 0 and result.stderr == "", result
    assert "ops/s" in result.stdout or "per second" in result.stdout


def test_what_is_no_trace_is_refused_in_one_line(replay, tmp_path):
    texts = [b"", b"hakmem", HEAD, HEAD + b"x", HEAD + b"m\xff", HEAD + b"m\x05", HEAD + b"t\x01",
             HEAD + b"f\x02", b"\x7fELF" * 100, HEAD + b"t" + b"\xff" * 9 + b"\x01m\x05\x02"]
    file = tmp_path / "a"
    for text in texts[:7] + texts[8:]:
        file.write_bytes(text)
        assert is_refused(told(replay / "replay_prepare", file, tmp_path / "b"), 1), text
        assert is_refused(told(replay / "replay", file), 2), text
    file.write_bytes(texts[7])
    done = told(replay / "replay_prepare", file, tmp_path / "b")
    assert "1 of unknown blocks left out" in done.stdout


def test_a_file_for_replay_that_was_changed_is_refused(program, replay, made):
    _, file, _ = made(program, 3)
    right = file.read_bytes()
    steps = 24 + 16 * int.from_bytes(right[8:16], "little")
    for place, value in [(steps, b"\xff\xff"), (steps + 4, b"\x4d"), (steps + 8, b"\x63"),
                         (8, b"\0"), (9, b"\xff"), (19, b"\xff"), (len(right) - 1, b"")]:
        file.write_bytes(right[:place] + value + right[place + len(value):] if value
                         else right[:place])
        assert is_refused(told(replay / "replay", file), 2), place


def test_two_processes_do_not_write_one_trace(run, program, tmp_path):
    """The first stops, and says so; what the second has written is whole."""
    result = run("sh", "-c", f"{program} 2000 & {program} 2000; wait",
                 HAKMEM_TRACE=tmp_path / "a.trace")
    assert result.returncode == 0
    assert re.search(r"no more of the trace could be written: error 16 \(.*\)\n", result.stderr)


# ---- probes ----

def probes(library):
    return set(re.findall(r"Provider: hakmem\s+Name: (\w+)", output("readelf", "-n", library)))


@pytest.mark.skipif(not list(pathlib.Path("/usr/include").glob("**/sys/sdt.h")),
                    reason="no sys/sdt.h")
def test_the_probes_are_those_that_the_page_lists(shipped):
    page = (ROOT / "docs/trace.md").read_text().split("## Static probes")[1]
    assert probes(shipped) == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_a_probe_is_met(program, shipped):
    if not probes(shipped):
        pytest.skip("built without sys/sdt.h")
    done = told("gdb", "-q", "-batch", "-ex", f"set environment LD_PRELOAD {shipped}", "-ex",
                "break main", "-ex", "run", "-ex", "break -probe-stap hakmem:out_of_memory", "-ex",
                "continue", "-ex", "backtrace", program)
    if "ptrace" in done.stderr:
        pytest.skip("the kernel lets nobody trace")
    assert re.search(r"#\d .*realloc", done.stdout), done
