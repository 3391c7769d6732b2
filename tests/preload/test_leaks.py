"""Leaks by call stack: the report of the library, and the command `hakmem leaks`."""
import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from conftest import TESTS, address_space, clean_environment, output

LINE = re.compile(r"hakmem\[\d+ leaking\]: not freed: (\d+) blocks?, (\d+) bytes, from (.*)")
BY_STACK = {"HAKMEM_MODE": "debug", "HAKMEM_LEAK_REPORT": "stacks"}

NOTHING_LEAKS = "nothing leaks: every block was freed"

needs_names = pytest.mark.skipif(not shutil.which("addr2line"), reason="no addr2line")


@pytest.fixture(scope="session")
def program(build):
    return build("leaking.c", "-fno-optimize-sibling-calls", "-pthread")


def named(program, stack):
    """Function names of the frames of `program` in a line of the report, innermost first."""
    addresses = re.findall(rf"{program.name}\+(0x[0-9a-f]+)", stack)
    return output("addr2line", "-f", "-e", program, *addresses).splitlines()[::2]


def report(run, program, *words, **settings):
    result = run(program, *words, **{**BY_STACK, **settings})
    return result, [(int(count), int(size), named(program, stack))
                    for count, size, stack in LINE.findall(result.stderr)]


@needs_names
def test_each_stack_is_told_with_what_it_leaks(run, program):
    result, leaks = report(run, program, "leak_all")
    assert result.returncode == 0
    told = {tuple(names[:2]): (count, size) for count, size, names in leaks if names}
    assert told["leak_large", "leak_all"] == (1, 100000)
    assert told["leak_grown", "leak_all"] == (1, 2560)
    assert told["leak_aligned", "leak_all"] == (1, 640)
    threes = [(count, size, names) for count, size, names in leaks
              if names[:2] == ["allocate", "leak_threes"]]
    assert [row[:2] for row in threes] == [(3, 300), (3, 300)]
    assert sorted(row[2][2] for row in threes) == ["leak_all", "work"]
    sizes = [size for _, size, _ in leaks]
    assert sizes == sorted(sizes, reverse=True)


def test_nothing_is_told_where_nothing_leaks(run, program):
    result = run(program, "come_and_go", **BY_STACK)
    assert result.returncode == 0 and result.stderr == ""


@needs_names
@pytest.mark.parametrize("how,places,told", [
    ("overflow", ["overflow"], "write behind the end of {} (100 bytes)"),
    ("twice", ["misuse_freed", "release"], "double free of {} (112 bytes)"),
    ("large twice", ["misuse_freed", "release"], "double free of {} (106496 bytes)"),
    ("realloc freed", ["misuse_freed", "release"], "realloc of {} after free (112 bytes)"),
    ("write freed", ["misuse_freed", "release"], "write after free of {} (112 bytes)"),
])
def test_misuse_is_told_with_where_the_block_came_from_and_went(run, program, how, places, told):
    result = run(program, how, **BY_STACK)
    assert result.returncode < 0
    came, *went, last = result.stderr.splitlines()
    address, stack = re.fullmatch(r"hakmem: (0x[0-9a-f]+) was allocated from (.*)", came).groups()
    assert named(program, stack)[:2] == ["allocate", places[0]]
    assert len(went) == len(places) - 1
    for line in went:
        stack = re.fullmatch(rf"hakmem: {address} was freed from (.*)", line).group(1)
        assert named(program, stack)[:2] == places[::-1]
    assert last == f"hakmem: {told.format(address)}"


@pytest.mark.parametrize("mode", ["balanced", "checked"])
def test_other_modes_say_that_they_tell_sizes_only(run, program, mode):
    result = run(program, "leak_all", HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT="stacks")
    assert result.returncode == 0
    assert "needs HAKMEM_MODE=debug" in result.stderr.splitlines()[0]
    assert re.search(r"not freed: \d+ blocks in all", result.stderr)
    assert not LINE.findall(result.stderr)


@needs_names
def test_the_command_names_functions_and_lines(program, hakmem):
    done = hakmem("leaks", program, "leak_all")
    assert done.returncode == 0, done
    assert done.stdout == "the buffer of stdout is no leak\nok leak_all\n"
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"process \d+: \d+ blocks? never freed, .*", lines[0])
    text = done.stderr
    line = next(number for number, each in
                enumerate((TESTS / "preload/leaking.c").read_text().splitlines(), 1)
                if "calloc(1, 100000)" in each)
    assert re.search(rf"in 1 block\n    leak_large at leaking\.c:{line}\n    leak_all at ", text)
    assert "not freed:" not in text


def test_the_command_says_when_nothing_leaks_and_fails_on_demand(program, hakmem):
    done = hakmem("leaks", "--fail", "--", program, "come_and_go")
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, NOTHING_LEAKS)
    assert "hakmem profile PROGRAM" in done.stderr and "hakmem why" in done.stderr
    assert hakmem("leaks", "--fail", "--", program, "leak_all").returncode == 1
    assert hakmem("leaks", "--fail", "--", program, "leak_all", "status").returncode == 3
    assert hakmem("leaks", "--", program, "leak_all").returncode == 0


def test_what_the_loader_keeps_for_threads_is_no_leak(run, program, hakmem):
    result, leaks = report(run, program, "threads")
    assert (result.returncode, leaks) == (0, []), result
    assert "not freed" not in result.stderr
    done = hakmem("leaks", "--fail", "--", program, "threads")
    assert (done.returncode, done.stderr.splitlines()[0]) == (0, NOTHING_LEAKS)


def test_a_block_that_was_resized_is_told_with_its_last_size(run, program):
    _, leaks = report(run, program, "resized")
    assert sorted(size for _, size, _ in leaks) == [25, 90000, 90 << 20]


def test_the_report_goes_into_no_file_of_the_program(program, hakmem, tmp_path):
    script = f"exec 3>{tmp_path}/own 9>{tmp_path}/other; echo mine >&3; {program} leak_all"
    told = hakmem("leaks", "--", "bash", "-c", script).stderr
    assert "leak_large" in told or not shutil.which("addr2line")
    assert (tmp_path / "own").read_text() == "mine\n"
    assert (tmp_path / "other").read_text() == "" and "not freed:" not in told


def test_a_program_that_does_not_come_to_its_end_is_not_called_clean(program, hakmem):
    done = hakmem("leaks", "--fail", "--", program, "end")
    assert done.returncode == 1 and "no process could be checked" in done.stderr


@needs_names
@pytest.mark.parametrize("words", [["leaks"], ["profile", "--mean", "64"]],
                         ids=["leaks", "profile"])
@pytest.mark.parametrize("by", ["Ctrl-C", "SIGTERM"])
def test_what_a_program_held_is_told_when_a_signal_ends_it(build, library, tmp_path, words, by):
    """Ctrl-C goes to all processes of a terminal, the tool too; the tool hands SIGTERM on."""
    tool = [sys.executable, "-m", "hakmem.command", *words, "--", build("profiled.c"), "then_wait"]
    environment = clean_environment(LIBHAKMEM=library, PYTHONPATH=TESTS.parent / "python")
    with subprocess.Popen(tool, cwd=tmp_path, env=environment, start_new_session=True, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout.readline() == "ready\n"
        if by == "SIGTERM":
            process.terminate()
        else:
            os.killpg(process.pid, signal.SIGINT)
        said = process.stderr.read()
    number = signal.SIGTERM if by == "SIGTERM" else signal.SIGINT
    assert process.returncode == 128 + number and "leak_huge" in said, said
    assert "ended early" in said or "held when it was killed" in said


def test_the_child_of_a_fork_is_not_blamed_for_its_parents_blocks(program, hakmem):
    told = hakmem("leaks", "--", program, "fork_once").stderr
    assert len(re.findall(r"process \d+: 1 block never freed", told)) == 1
    assert told.count("process ") == 1


def test_without_memory_for_the_tables_it_is_said_and_the_program_runs(run, program):
    result = run(program, "come_and_go", before=address_space(150), **BY_STACK)
    assert result.returncode == 0, result
    assert "HAKMEM_LEAK_REPORT=stacks is ignored: there is no memory for it" in result.stderr


def test_python_itself_can_be_looked_at(run):
    """A large program, whose blocks come and go by the hundred thousand."""
    result = run(sys.executable, "-c", "print(sum(len(str(i)) for i in range(10000)))", **BY_STACK)
    assert result.stdout == "38890\n" and result.returncode == 0
    assert len(re.findall(r"not freed: \d+ blocks?, ", result.stderr)) <= 10
