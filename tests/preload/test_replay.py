"""What a trace has recorded can be done again, on any allocator."""
import re
import struct
import subprocess
from collections import Counter

import pytest
from conftest import TESTS
from traces import BLOCK, FREED, HEAD, RECORD, RESIZED, STACK, records

PROGRAMS = TESTS.parent / "bench/programs"


@pytest.fixture(scope="session")
def program(build):
    return build("traced.c")


@pytest.fixture(scope="session")
def replay(tmp_path_factory):
    """replay and replay_prepare."""
    folder = tmp_path_factory.mktemp("replay")
    flags = ["cc", "-std=c17", "-D_GNU_SOURCE", "-O1", "-g", "-I", PROGRAMS, "-I",
             TESTS.parent / "recorder", "-pthread"]
    subprocess.run([*flags, "-o", folder / "replay", PROGRAMS / "replay.c", PROGRAMS / "bench.c",
                    PROGRAMS / "arguments.c"], check=True)
    subprocess.run([*flags, "-o", folder / "replay_prepare", PROGRAMS / "replay_prepare.c",
                    PROGRAMS / "trace_reader.c"], check=True)
    return folder


def told(*command):
    return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          check=False, timeout=60)


def is_refused(done, status):
    return done.returncode == status and len(done.stderr.splitlines()) == 1


@pytest.fixture
def made(trace_of, replay, tmp_path):
    """made(program, …): its records, the file that replays them, and how many threads it needs."""
    def make(program, *words):
        found = trace_of(program, *words)
        done = told(replay / "replay_prepare", tmp_path / "a.trace", tmp_path / "a.replay")
        threads = re.fullmatch(r"\d+ calls, \d+ blocks at a time, (\d) threads at a time\n",
                               done.stdout)
        return found, tmp_path / "a.replay", int(threads[1])

    return make


def test_what_is_replayed_allocates_the_same_again(trace_of, program, replay, made):
    """The trace of the replay has the calls of the trace that it replays, with the same sizes."""
    first, file, threads = made(program, 40)
    assert threads == 2
    second = trace_of(replay / "replay", file, name="b.trace")
    wanted = Counter((each.kind, each.size, each.shift) for each in first)
    got = Counter((each.kind, each.size, each.shift) for each in second)
    assert all(got[each] >= count for each, count in wanted.items())


@pytest.mark.parametrize("rounds", [1, 5])
def test_threads_wait_for_each_other(build, run, replay, made, rounds):
    _, file, _ = made(build("stress/handoff.c"), 4, 3000, 1)
    result = run(replay / "replay", file, f"--rounds={rounds}", HAKMEM_MODE="debug",
                 HAKMEM_LEAK_REPORT="off")
    assert result.returncode == 0 and result.stderr == "", result
    assert "ops/s" in result.stdout or "per second" in result.stdout


def file_of(*rows, count=None):
    """A trace. Each row: kind, address, size, shift."""
    data = b"".join(RECORD.pack(address, size, 0, 0, 1, kind, shift)
                    for kind, address, size, shift in rows)
    return HEAD + struct.pack("<QQ", len(rows) if count is None else count, 0) + data


BAD = {"nothing": b"", "another file": b"\x7fELF" * 100, "a head alone": HEAD,
       "an older one": b"hakmem trace 1\nm\5\2" + bytes(100), "no record": file_of(),
       "cut off": file_of((BLOCK, 16, 5, 0), count=2), "half a stack": file_of((STACK, 0, 0, 0)),
       "an endless one": file_of((BLOCK, 16, 5, 0), count=1 << 59),
       "no kind": file_of((0, 16, 5, 0)), "an unknown kind": file_of((7, 16, 5, 0)),
       "no address": file_of((BLOCK, 0, 5, 0)), "too much": file_of((BLOCK, 16, 1 << 48, 0)),
       "a long shift": file_of((BLOCK, 16, 5, 48))}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_what_is_no_trace_is_refused_in_one_line(replay, tmp_path, text):
    file = tmp_path / "a"
    file.write_bytes(text)
    assert is_refused(told(replay / "replay_prepare", file, tmp_path / "b"), 1)
    assert is_refused(told(replay / "replay", file), 2)


def test_unknown_blocks_are_left_out_and_counted(replay, tmp_path):
    file = tmp_path / "a"
    file.write_bytes(file_of((FREED, 32, 0, 0), (BLOCK, 16, 5, 0), (RESIZED, 64, 5, 0)))
    done = told(replay / "replay_prepare", file, tmp_path / "b")
    assert "1 calls, 1 blocks at a time" in done.stdout
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
