"""Learning within one run: programs go on working, and what was decided can be read."""
import csv
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import pytest

from conftest import clean_environment, succeeds
from test_stats_file import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))
QUICK = {"HAKMEM_LEARN": 1, "HAKMEM_PURGE_DELAY_MS": 20}  # epochs are as short as they may be


@pytest.mark.parametrize("mode", ["balanced", "minimal", "checked"])
@pytest.mark.parametrize("program,arguments", [
    ("stress/handoff.c", [4, 30000, 1]), ("stress/fork_busy.c", []), ("stress/phases.c", []),
    ("stress/late_destructors.c", []), ("stress/thread_churn.c", []),
    ("model/random_ops.c", [100000, 3])])
def test_a_program_works_while_it_is_learnt(build, run, program, arguments, mode):
    result = run(build(program), *arguments, HAKMEM_MODE=mode, **QUICK)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    assert result.returncode == 0, result
    assert "hakmem: " not in result.stderr


def test_what_is_idle_goes_back_while_it_is_learnt(build, run):
    result = run(build("stress/idle_return.c"), HAKMEM_FREE_POLICY="adaptive", **QUICK)
    if result.returncode == 77:
        pytest.skip(result.stdout)
    succeeds(result)


def test_decisions_are_told(library, build, tmp_path):
    path = tmp_path / "statistics"
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_STATS=path, HAKMEM_MODE="learning",
                                    HAKMEM_PURGE_DELAY_MS=20)
    with subprocess.Popen([build("stirring.c")], env=environment,
                          stdin=subprocess.PIPE) as process:
        told = wait_for(path, lambda told: told.get("learning", {}).get("decisions"))
        process.stdin.close()
        assert process.wait() == 0
    learning = told["learning"]
    assert learning["epochs"] > 8 and learning["switches"] > 0
    assert learning["strategies"]["0"]["strategy"] == {"bins": 0, "depots": 0, "wait": 0}
    assert str(learning["running"]) in learning["strategies"]
    decision = learning["decisions"]["0"]
    assert decision["event"] in ("won", "lost", "drawn", "rolled_back")
    assert decision["incumbent"] == {"bins": 0, "depots": 0, "wait": 0}
    assert told["options"]["learn"] == 1 and told["options"]["free_policy"] == 2
    pytest.importorskip("rich")
    pytest.importorskip("click")
    from click.testing import CliRunner
    from hakmem import command
    for name in ("why", "stat"):
        said = CliRunner().invoke(command.hakmem, [name, str(path)])
        assert said.exit_code == 0, said.output
        assert ("Learning within the run" in said.output) == (name == "why")


def test_nothing_is_told_where_nobody_learns(build, run, tmp_path):
    path = tmp_path / "statistics"
    succeeds(run(build("counted.c"), HAKMEM_STATS=path, HAKMEM_MODE="balanced"))
    assert "learning" not in json.loads(path.read_text())


# Whose variables are for learning, for profiles and for traces; globals have these names.
LEARNING = {f"{name}.c" for name in (
    "trial", "in_run", "site_rules", "groups", "epoch_log", "learn_log", "sampler", "samples",
    "trace", "trace_file", "pprof", "profile")}
NAMED = re.compile("(trial|in_run|site|groups|epoch|learn|sampler|samples|trace|pprof|profile)_")


def variables(library):
    """Address in the library and length of each variable: those of learning, and the others."""
    text = subprocess.run(["readelf", "-sW", library], check=True, capture_output=True,
                          text=True).stdout
    learning, others, file = set(), set(), ""
    for value, size, kind, section, name in re.findall(
            r"^ +\d+: (\w+) +(\w+) (\w+) +\w+ +\w+ +(\w+)(?: (.*))?$", text, re.MULTILINE):
        if kind == "FILE":
            file = name
        elif kind == "OBJECT" and section.isdigit():
            is_learning = file in LEARNING or not file and NAMED.match(name)
            (learning if is_learning else others).add((int(value, 16), int(size, 0)))
    return learning, others


def resident_for_learning(library, **settings):
    """Of a process that has begun: bytes of learning's variables that are not zero, and how many
    pages with nothing else are there."""
    learning, others = variables(library)
    with subprocess.Popen(["/bin/cat"], env=clean_environment(LD_PRELOAD=library, **settings),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"begun\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()
        base = min(int(line.split("-")[0], 16) for line in maps if line.endswith(str(library)))
        areas = [range(*(int(end, 16) for end in line.split()[0].split("-"))) for line in maps
                 if line.split()[1].startswith("rw")]
        learning = [(base + value, size) for value, size in learning
                    if any(base + value in area for area in areas)]  # and no constants
        assert sum(size for _, size in learning) > 6000, "not all were found"
        page_size = os.sysconf("SC_PAGE_SIZE")

        def pages_of(variables):
            return {page for first, size in variables
                    for page in range(first // page_size, (first + size - 1) // page_size + 1)}
        own = pages_of(learning) - pages_of((base + value, size) for value, size in others)
        resident = written = 0
        try:
            with pathlib.Path(f"/proc/{process.pid}/pagemap").open("rb") as pages:
                for page in own:
                    pages.seek(page * 8)
                    resident += pages.read(8)[7] >> 7
            with pathlib.Path(f"/proc/{process.pid}/mem").open("rb") as memory:
                for first, size in learning:
                    memory.seek(first)
                    written += size - memory.read(size).count(0)
        except PermissionError:
            pytest.skip("the kernel lets nobody look (kernel.yama.ptrace_scope)")
        finally:
            process.stdin.close()
    return written, resident


def test_where_learning_is_off_it_takes_no_memory(shipped):
    """Less than 4 KiB: next to nothing is written, and no table is mapped."""
    written, resident = resident_for_learning(shipped)
    assert written <= 4 and resident == 0


@pytest.mark.parametrize("on", [{"HAKMEM_LEARN": 1}, {"HAKMEM_PROFILE": "%p.pb"},
                                {"HAKMEM_TRACE": "%p.trace"}])
def test_where_it_is_on_that_is_seen(shipped, tmp_path, monkeypatch, on):
    monkeypatch.chdir(tmp_path)
    assert resident_for_learning(shipped, **on)[0] > 8


def test_a_child_goes_on_learning(build, run, tmp_path):
    succeeds(run(build("counted.c"), "fork", HAKMEM_STATS=tmp_path / "of-%p", **QUICK))
    texts = [json.loads(path.read_text()) for path in tmp_path.glob("of-*")]
    assert len(texts) == 2
    assert all(text["learning"]["state"] == "learn" for text in texts)


# ---- the log of epochs, and its replay ----

def epochs_of(lines):
    """The epochs of a log, each with its columns by name."""
    return list(csv.DictReader(lines[1:]))


def stirred_log(library, build, path, *arguments, is_enough=None):
    """The lines of a program that stirs until something was decided."""
    is_enough = is_enough or (lambda epochs: any(each["decisions"] != "0" for each in epochs))
    environment = clean_environment(LD_PRELOAD=library, HAKMEM_LEARN_LOG=path,
                                    **{name: str(value) for name, value in QUICK.items()})
    with subprocess.Popen([build("stirring.c"), *arguments], env=environment,
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        for _ in range(1200):
            time.sleep(0.1)
            lines = path.read_text().splitlines(keepends=True) if path.exists() else []
            if is_enough(epochs_of(lines)):
                break
        process.stdin.close()
        assert process.stderr.read() == b"" and process.wait() == 0
    return path.read_text().splitlines(keepends=True)


def replay(archive, path):
    return subprocess.run([archive.parent / "replay_epochs", path], capture_output=True, text=True,
                          check=False)


def test_a_log_of_epochs_is_replayed_to_the_same_decisions(library, archive, build, tmp_path):
    path = tmp_path / "log"
    lines = stirred_log(library, build, path)
    assert re.fullmatch(r"# hakmem epochs 1, program (-|\w{40}), price 700, bins 0, depots 0, "
                        r"wait 0\n", lines[0])
    last = epochs_of(lines)[-1]
    assert int(last["epoch"]) == len(lines) - 2 > 10
    done = replay(archive, path)
    assert done.returncode == 0, done
    assert done.stdout.count("\nepoch ") + 1 == int(last["decisions"]) > 0
    assert done.stdout.endswith(f"{last['epoch']} epochs, {last['decisions']} decisions, "
                                "as in the log\n")
    assert f": {last['event']}, {last['reason']}: " in done.stdout.splitlines()[-2]


RECORDED = ROOT / "tests/unit/learn/recorded.csv"


def altered(lines, number, column, change):
    """The lines, with another value in a column of one of them. Number: also who runs in it for
    the first time."""
    if isinstance(number, str):  # who runs in an epoch stands in the line before it
        number = 1 + next(at for at, line in enumerate(lines) if f",{number}," in line)
    at = lines[1].strip().split(",").index(column)
    words = lines[number].strip().split(",")
    words[at] = str(change(words[at]))
    return lines[:number] + [",".join(words) + "\n"] + lines[number + 1:]


@pytest.mark.parametrize("change,status,said", [
    (lambda lines: altered(lines, 40, "wait", lambda value: int(value) + 1), 1, "line 41, in the"),
    (lambda lines: altered(lines, -1, "cost", lambda value: int(value) + 1), 1, "decided here: "),
    (lambda lines: altered(lines, "challenger", "refusals", lambda value: 5), 1,
     "rolled_back, refused"),
    (lambda lines: lines[:20] + lines[21:], 2, "line 21: an epoch before it is missing"),
    (lambda lines: altered(lines, 9, "ms", lambda value: "x"), 2, "line 10: a number is wrong"),
    (lambda lines: lines[:9] + [lines[9][:20]], 2, "line 10: it is cut off"),
    (lambda lines: lines[:1] + [lines[1].replace("ms,", "")] + lines[2:], 2, "line 2: these are"),
    (lambda lines: [lines[0].replace("bins 0", "bins 3"), *lines[1:]], 2, "line 1: a value of"),
    (lambda lines: lines[1:], 2, "line 1: this is no log of epochs")])
def test_a_log_with_a_wrong_line_is_not_replayed(archive, tmp_path, change, status, said):
    path = tmp_path / "log"
    path.write_text("".join(change(RECORDED.read_text().splitlines(keepends=True))))
    done = replay(archive, path)
    assert done.returncode == status and said in done.stdout + done.stderr, done


def test_where_nobody_learns_the_log_is_refused(build, run, tmp_path):
    result = run(build("counted.c"), HAKMEM_LEARN_LOG=tmp_path / "log")
    assert "HAKMEM_LEARN_LOG is ignored: HAKMEM_LEARN is off\n" in result.stderr
    assert not (tmp_path / "log").exists()


def test_a_log_that_cannot_be_is_told(build, run):
    result = run(build("counted.c"), HAKMEM_LEARN_LOG="/nowhere/log", HAKMEM_PRICE="lean", **QUICK)
    assert "no log of learning could be written: error 2 (/nowhere/log)\n" in result.stderr


def test_the_log_of_a_process_is_its_own(build, run, tmp_path):
    """Its price stands in it."""
    succeeds(run(build("counted.c"), "fork", HAKMEM_LEARN_LOG=tmp_path / "of-%p", HAKMEM_PRICE=70,
                 **QUICK))
    [log] = tmp_path.glob("of-*")
    assert ", price 70, bins 0, depots 0, wait 0\nepoch,ms,misses," in log.read_text()


def test_a_child_does_not_write_to_the_log_of_its_parent(library, archive, build, tmp_path):
    """Though it learns, for longer than an epoch takes."""
    path = tmp_path / "log"
    lines = stirred_log(library, build, path, "fork", is_enough=lambda epochs: len(epochs) > 20)
    assert len(epochs_of(lines)) > 20
    assert replay(archive, path).returncode == 0
