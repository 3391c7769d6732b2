"""The file of statistics: what it says while a program runs, and at its end."""
import json
import pathlib
import re
import signal
import subprocess
import time

import pytest
from conftest import clean_environment, succeeds


@pytest.fixture(scope="session")
def program(build):
    return build("counted.c")


def wait_for(path, condition=lambda told: True):
    """Reads until the text is whole and as wanted. The limit only turns a hang into a failure."""
    for _ in range(3000):
        try:
            told = json.loads(path.read_text())
            if condition(told):
                return told
        except (OSError, json.JSONDecodeError):
            pass
        time.sleep(0.02)
    raise AssertionError(f"{path} was never as wanted")


def resident(process):
    status = pathlib.Path(f"/proc/{process}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+) kB", status)[1]) << 10


def test_at_the_end_it_is_complete_and_adds_up(run, program, tmp_path):
    path = tmp_path / "statistics"
    succeeds(run(program, HAKMEM_STATS=path, HAKMEM_BACKGROUND=0))
    told = json.loads(path.read_text())
    at = told["statistics"]
    assert told["program"] == program.name and told["process"] > 1
    assert told["small_blocks"]["64"]["used"] >= 1000
    assert told["blocks"]["large"] >= 3
    assert at["mapped"] == sum(at[name] for name in (
        "used", "slab_ends", "cached", "free_in_slabs", "free_pages", "clean_pages", "huge_cached"))
    assert at["resident"] == \
        at["mapped"] + at["metadata"] - at["clean_pages"] - at["purged_in_slabs"]
    assert told["options"]["background"] == 0
    assert told["system_calls"]["mmap"]["calls"] > 0
    assert told["thread_caches"] == 1


def test_it_is_written_while_calls_miss(library, program, tmp_path):
    path = tmp_path / "statistics"
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_STATS=path)
    with subprocess.Popen([program, "on"], env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        first = wait_for(path, lambda told: told["blocks"]["large"] >= 3)
        later = wait_for(path, lambda told: told["written_ms"] > first["written_ms"])
        assert later["process"] == process.pid
        assert later["running_ms"] >= first["running_ms"]
        process.stdin.close()
        assert process.wait() == 0


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_it_is_written_after_the_last_call(library, program, tmp_path, mode):
    """A program that allocates in one go and then rests is told as it is."""
    path = tmp_path / "statistics"
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_STATS=path, HAKMEM_MODE=mode,
                                    HAKMEM_LEAK_REPORT=0)
    with subprocess.Popen([program, "rest"], env=environment, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"ready\n"
        told = wait_for(path, lambda told: told["statistics"]["used"] >= 40 << 20)
        classes = told["small_blocks"]["1024"] if mode != "debug" else \
            told["small_blocks"]["1152"]
        assert classes["used"] >= 40 << 10 and classes["slabs"] > 500
        window = told["window"]
        assert window["end"] - window["start"] >= 40 << 20
        process.stdin.close()
        assert process.wait() == 0


def test_a_table_at_exit(run, program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(program, HAKMEM_STATS="exit")
    assert result.returncode == 0
    assert re.search(r"^  in use +=  +\d+$", result.stderr, re.MULTILINE)
    assert not list(tmp_path.iterdir())
    one = run(program, "fork", HAKMEM_STATS="exit")
    assert one.stderr.count("Where it is") == 1


def test_a_table_when_a_signal_asks(library, program):
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_STATS="signal")
    with subprocess.Popen([program, "rest"], env=environment, stdin=subprocess.PIPE, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        for _ in range(2):
            process.send_signal(signal.SIGUSR2)
            while "in use" not in process.stderr.readline():
                pass
            while "microseconds" not in process.stderr.readline():
                pass
        process.stdin.close()
        assert process.wait() == 0


def test_the_signal_is_left_to_who_uses_it(library, program):
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_STATS="signal")
    ignored = subprocess.run(["sh", "-c", "trap '' USR2; exec \"$0\"", program], env=environment,
                             capture_output=True, text=True, check=True)
    assert "HAKMEM_STATS=signal is ignored" in ignored.stderr


def test_children_write_where_the_name_has_their_number(run, program, tmp_path):
    succeeds(run(program, "fork", HAKMEM_STATS=tmp_path / "one"))
    assert len(list(tmp_path.iterdir())) == 1
    succeeds(run(program, "fork", HAKMEM_STATS=tmp_path / "of-%p"))
    names = [path.name for path in tmp_path.glob("of-*")]
    assert len(names) == 2
    assert {f"of-{json.loads((tmp_path / name).read_text())['process']}" for name in names} == \
        set(names)


def test_an_older_longer_text_leaves_nothing_behind(run, program, tmp_path):
    path = tmp_path / "statistics"
    path.write_text("x" * 100000)
    succeeds(run(program, HAKMEM_STATS=path))
    json.loads(path.read_text())


def test_a_file_that_cannot_be_written_is_said_once(run, program):
    result = run(program, HAKMEM_STATS="/nonesuch/statistics")
    assert result.returncode == 0
    assert result.stderr.count("\n") == 1
    said = ": no statistics could be written to /nonesuch/statistics: error 2\n"
    assert result.stderr.endswith(said)


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_every_mode_has_it(run, program, tmp_path, mode):
    path = tmp_path / "statistics"
    assert run(program, HAKMEM_STATS=path, HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT=0).returncode == 0
    assert json.loads(path.read_text())["small_blocks"]


def test_who_looks_does_not_keep_memory_from_going_back(library, build, tmp_path):
    """Large blocks stay, as much in small ones is freed: the helper, which waits to write, has to
    give that back as it does without a file."""
    program = build("counted.c")
    held = []
    for setting in ({}, {"HAKMEM_STATS": tmp_path / "statistics"}, {"HAKMEM_STATS": "signal"}):
        environment = clean_environment(LD_PRELOAD=library, **setting)
        with subprocess.Popen([program, "free"], env=environment, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE) as process:
            assert process.stdout.readline() == b"ready\n"
            deadline = time.monotonic() + 60  # only turns a hang into a failure
            while (now := resident(process.pid)) > 240 << 20 and time.monotonic() < deadline:
                time.sleep(0.2)
            held.append(now)
            process.stdin.close()
            assert process.wait() == 0
    assert max(held) <= 240 << 20, held
