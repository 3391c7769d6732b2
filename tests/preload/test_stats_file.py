"""The file of statistics: what it says while a program runs, and at its end."""
import json
import re
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


def test_at_the_end_it_is_complete_and_adds_up(run, program, tmp_path):
    path = tmp_path / "statistics"
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
def test_what_was_allocated_last_is_told_at_the_end(run, program, tmp_path, mode):
    path = tmp_path / "statistics"
    assert succeeds(run(program, "rest", HAKMEM_STATS=path, HAKMEM_MODE=mode,
                        HAKMEM_LEAK_REPORT=0)) == "ready\n"
    told = json.loads(path.read_text())
    classes = told["small_blocks"]["1024" if mode != "debug" else "1152"]
    assert classes["used"] >= 40 << 10 and classes["slabs"] > 500
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


def test_an_older_longer_text_leaves_nothing_behind(run, program, tmp_path):
    path = tmp_path / "statistics"
    path.write_text("x" * 100000)
    succeeds(run(program, HAKMEM_STATS=path))
    json.loads(path.read_text())


def test_a_file_that_cannot_be_written_is_said_once(run, program):
    result = run(program, HAKMEM_STATS="/nonesuch/statistics")
    assert result.returncode == 0
    assert result.stderr.count("\n") == 1
    said = ": no statistics could be written: error 2 (/nonesuch/statistics)\n"
    assert result.stderr.endswith(said)


@pytest.mark.parametrize("mode", ["balanced", "checked", "debug"])
def test_every_mode_has_it(run, program, tmp_path, mode):
    path = tmp_path / "statistics"
    assert run(program, HAKMEM_STATS=path, HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT=0).returncode == 0
    assert json.loads(path.read_text())["small_blocks"]
