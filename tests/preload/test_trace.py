"""Allocation traces: what is in them, and that it can be done again."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
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
    return build("traced.c", "-pthread")


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
    found = trace_of(run, build("stress/handoff.c", "-pthread"), tmp_path, 4, 3000, 1)
    live = set()
    for letter, _, address, _ in found:
        if letter in "mcae":
            assert address not in live
            live.add(address)
        if letter in "fb":
            live.remove(address)
    assert len({thread for *_, thread in found}) >= 4


def test_a_trace_that_cannot_be_written_is_told_and_the_program_runs(run, program, tmp_path):
    result = run(program, HAKMEM_TRACE="/nowhere/a.trace")
    assert result.returncode == 0
    assert re.fullmatch(r"hakmem\[\d+ traced\]: no trace could be written: error 2 "
                        r"\(/nowhere/a.trace\)\n", result.stderr)
    path = tmp_path / "a.trace"

    def allow_a_line():
        resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10))

    result = run(program, before=allow_a_line, HAKMEM_TRACE=path)
    assert result.returncode == 0
    assert re.fullmatch(r"hakmem\[\d+ traced\]: no more of the trace could be written: "
                        rf"error 5 \({path}\)\n", result.stderr)


def test_a_trace_beside_the_c_librarys_heap_is_refused(run, program, tmp_path):
    result = run(program, HAKMEM_TRACE=str(tmp_path / "a"), HAKMEM_LD_SAFE="1")
    assert result.returncode == 0 and "HAKMEM_TRACE is ignored" in result.stderr
    assert not (tmp_path / "a").exists()


def test_the_command_makes_a_file_for_each_process(program, library, tmp_path):
    pytest.importorskip("rich")
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith("HAKMEM_")}
    environment |= {"LIBHAKMEM": str(library), "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(
        [sys.executable, "-m", "hakmem.command", "trace", "--out", "here", "--", "sh", "-c",
         f"cd /; {program}; exit 3"], cwd=tmp_path, env=environment, capture_output=True, text=True,
        check=False)
    told = re.findall(r"process (\d+): .* in here/(\d+)\.trace", done.stderr)
    assert done.returncode == 3 and 1 <= len(told) <= 2, done  # the shell may end by _exit
    assert len(told) == len(list((tmp_path / "here").iterdir()))
    for process, name in told:
        assert process == name and list(records(tmp_path / f"here/{name}.trace"))


# ---- replay ----

@pytest.fixture(scope="session")
def replay(tmp_path_factory):
    """replay and replay_prepare."""
    folder = tmp_path_factory.mktemp("replay")
    programs = ROOT / "bench/programs"
    flags = ["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-g", "-I", programs, "-pthread"]
    subprocess.run([*flags, "-o", folder / "replay", programs / "replay.c", programs / "bench.c",
                    programs / "arguments.c"], check=True)
    subprocess.run([*flags, "-o", folder / "replay_prepare", programs / "replay_prepare.c"],
                   check=True)
    return folder


def prepare(replay, trace, made):
    return subprocess.run([replay / "replay_prepare", trace, made], capture_output=True, text=True,
                          check=False)


def test_what_is_replayed_allocates_the_same_again(run, program, replay, tmp_path):
    """The trace of the replay has the calls of the trace that it replays, with the same sizes."""
    first = trace_of(run, program, tmp_path, 40)
    made = tmp_path / "a.replay"
    told = prepare(replay, tmp_path / "a.trace", made)
    assert re.fullmatch(r"\d+ calls, \d+ blocks at a time, 2 threads at a time\n", told.stdout)
    second = tmp_path / "b.trace"
    result = run(replay / "replay", made, HAKMEM_TRACE=str(second))
    assert result.returncode == 0, result
    wanted = Counter((letter, tuple(values)) for letter, values, *_ in first if letter in "mcae")
    got = Counter((letter, tuple(values)) for letter, values, *_ in records(second))
    assert all(got[each] >= count for each, count in wanted.items())
    assert sum(got.values()) >= len([each for each in first if each[0] not in "tw"])


@pytest.mark.parametrize("rounds", [1, 5])
def test_threads_wait_for_each_other(build, run, replay, tmp_path, rounds):
    trace_of(run, build("stress/handoff.c", "-pthread"), tmp_path, 4, 3000, 1)
    made = tmp_path / "a.replay"
    assert prepare(replay, tmp_path / "a.trace", made).returncode == 0
    result = run(replay / "replay", made, f"--rounds={rounds}", HAKMEM_MODE="debug",
                 HAKMEM_LEAK_REPORT="off")
    assert result.returncode == 0 and result.stderr == "", result
    assert "ops/s" in result.stdout or "per second" in result.stdout


def test_what_is_no_trace_is_refused_in_one_line(replay, tmp_path):
    texts = [b"", b"hakmem", HEAD, HEAD + b"x", HEAD + b"m\xff", HEAD + b"m\x05", HEAD + b"t\x01",
             HEAD + b"f\x02", b"\x7fELF" * 100, HEAD + b"t" + b"\xff" * 9 + b"\x01m\x05\x02"]
    for text in texts[:7] + texts[8:]:
        (tmp_path / "a").write_bytes(text)
        done = prepare(replay, tmp_path / "a", tmp_path / "b")
        assert done.returncode == 1 and len(done.stderr.splitlines()) == 1, (text, done)
        (tmp_path / "c").write_bytes(text)
        done = subprocess.run([replay / "replay", tmp_path / "c"], capture_output=True, text=True,
                              check=False)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (text, done)
    (tmp_path / "a").write_bytes(texts[7])
    assert "1 of unknown blocks left out" in prepare(replay, tmp_path / "a", tmp_path / "b").stdout


def test_a_file_for_replay_that_was_changed_is_refused(run, program, replay, tmp_path):
    trace_of(run, program, tmp_path, 3)
    made = tmp_path / "a.replay"
    assert prepare(replay, tmp_path / "a.trace", made).returncode == 0
    right = made.read_bytes()
    steps = 24 + 16 * int.from_bytes(right[8:16], "little")
    for place, value in [(steps, b"\xff\xff"), (steps + 4, b"\x4d"), (steps + 8, b"\x63"),
                         (8, b"\0"), (9, b"\xff"), (19, b"\xff"), (len(right) - 1, b"")]:
        changed = right[:place] + value + right[place + len(value):]
        made.write_bytes(changed if value else right[:place])
        done = subprocess.run([replay / "replay", made], capture_output=True, text=True,
                              check=False, timeout=60)
        assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, (place, done)


def test_two_processes_do_not_write_one_trace(build, run, tmp_path):
    """The first stops, and says so; what the second has written is whole."""
    path = tmp_path / "a.trace"
    script = f"{build('traced.c', '-pthread')} 2000 & {build('traced.c', '-pthread')} 2000; wait"
    result = run("sh", "-c", script, HAKMEM_TRACE=path)
    assert result.returncode == 0
    assert re.search(r"no more of the trace could be written: error 16 \(.*\)\n", result.stderr)


# ---- probes ----

def probes(library):
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True, check=True)
    return set(re.findall(r"Provider: hakmem\s+Name: (\w+)", notes.stdout))


@pytest.mark.skipif(not list(pathlib.Path("/usr/include").glob("**/sys/sdt.h")),
                    reason="no sys/sdt.h")
def test_the_probes_are_those_that_the_page_lists(shipped):
    page = (ROOT / "docs/trace.md").read_text().split("## Static probes")[1]
    assert probes(shipped) == set(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE))


@pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")
def test_a_probe_is_met(program, shipped):
    if not probes(shipped):
        pytest.skip("built without sys/sdt.h")
    done = subprocess.run(
        ["gdb", "-q", "-batch", "-ex", f"set environment LD_PRELOAD {shipped}", "-ex", "break main",
         "-ex", "run", "-ex", "break -probe-stap hakmem:out_of_memory", "-ex", "continue", "-ex",
         "backtrace", program], capture_output=True, text=True, check=False,
        stdin=subprocess.DEVNULL)
    if "ptrace" in done.stderr:
        pytest.skip("the kernel lets nobody trace")
    assert re.search(r"#\d .*realloc", done.stdout), done
