"""The file of statistics: what it says while a program runs, and at its end."""
import contextlib
import json
import re
import time

import pytest
from conftest import succeeds


@pytest.fixture(scope="session")
def program(build):
    return build("counted.c")


def wait_for(path, condition):
    """Reads until the text is whole and as wanted. The limit only turns a hang into a failure."""
    for _ in range(3000):
        with contextlib.suppress(OSError, json.JSONDecodeError):
            told = json.loads(path.read_text())
            if condition(told):
                return told
        time.sleep(0.02)
    raise AssertionError(f"{path} was never as wanted")


def test_at_the_end_it_is_complete_and_adds_up(run, program, tmp_path):
    path = tmp_path / "statistics"
    path.write_text("x" * 100000)  # of an older and longer text nothing is left
    succeeds(run(program, HAKMEM_STATS=path))
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
    assert told["thread_caches_left_by_forks"] == 0


def test_it_is_written_while_calls_miss(started, program, tmp_path):
    path = tmp_path / "statistics"
    process = started(program, "on", HAKMEM_STATS=path)
    first = wait_for(path, lambda told: told["blocks"]["large"] >= 3)
    later = wait_for(path, lambda told: told["written_ms"] > first["written_ms"])
    assert later["process"] == process.pid
    assert later["running_ms"] >= first["running_ms"]
    process.stdin.close()
    assert process.wait() == 0


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_what_was_allocated_last_is_told_at_the_end(run, program, tmp_path, mode):
    path = tmp_path / "statistics"
    assert succeeds(run(program, "rest", HAKMEM_STATS=path, HAKMEM_MODE=mode,
                        HAKMEM_LEAK_REPORT=0)) == "ready\n"
    told = json.loads(path.read_text())
    blocks = told["small_blocks"]["1024" if mode != "debug" else "1152"]  # behind it is the guard
    assert blocks["used"] >= 40 << 10 and blocks["slabs"] > 300
    assert told["statistics"]["used"] >= 40 << 20
    assert told["window"]["end"] - told["window"]["start"] >= 40 << 20


def test_a_table_at_exit(run, program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run(program, HAKMEM_STATS="exit")
    assert result.returncode == 0
    assert re.search(r"^  in use +=  +\d+$", result.stderr, re.MULTILINE)
    assert not list(tmp_path.iterdir())
    one = run(program, "fork", HAKMEM_STATS="exit")
    assert one.stderr.count("Where it is") == 1


def test_children_write_where_the_name_has_their_number(run, program, tmp_path):
    succeeds(run(program, "fork", HAKMEM_STATS=tmp_path / "one"))
    assert len(list(tmp_path.iterdir())) == 1
    succeeds(run(program, "fork", HAKMEM_STATS=tmp_path / "of-%p"))
    names = [path.name for path in tmp_path.glob("of-*")]
    assert len(names) == 2
    assert {f"of-{json.loads((tmp_path / name).read_text())['process']}" for name in names} == \
        set(names)
