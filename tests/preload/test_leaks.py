"""Leaks by call stack: the report of the library, and the command `hakmem leaks`."""
import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
LINE = re.compile(r"hakmem\[\d+ leaking\]: not freed: (\d+) blocks?, (\d+) bytes, from (.*)")
BY_STACK = {"HAKMEM_MODE": "debug", "HAKMEM_LEAK_REPORT": "stacks"}

needs_names = pytest.mark.skipif(not shutil.which("addr2line"), reason="no addr2line")


@pytest.fixture(scope="session")
def program(build):
    return build("leaking.c", "-fno-optimize-sibling-calls", "-pthread")


def named(program, stack):
    """Function names of the frames of `program` in a line of the report, innermost first."""
    addresses = re.findall(rf"{program.name}\+(0x[0-9a-f]+)", stack)
    return subprocess.run(["addr2line", "-f", "-e", program, *addresses], capture_output=True,
                          text=True, check=True).stdout.splitlines()[::2]


def report(run, program, *words, **settings):
    result = run(program, *words, **{**BY_STACK, **settings})
    return result, [(int(count), int(size), named(program, stack))
                    for count, size, stack in LINE.findall(result.stderr)]


@needs_names
def test_each_stack_is_told_with_what_it_leaks(run, program):
    result, leaks = report(run, program, "all")
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
    result = run(program, "none", **BY_STACK)
    assert result.returncode == 0 and result.stderr == ""


@needs_names
def test_an_overflow_is_told_with_where_the_block_came_from(run, program):
    result = run(program, "overflow", **BY_STACK)
    assert result.returncode < 0
    first, second = result.stderr.splitlines()
    address, stack = re.fullmatch(r"hakmem: (0x[0-9a-f]+) was allocated from (.*)", first).groups()
    assert named(program, stack)[:2] == ["allocate", "overflow"]
    assert second == f"hakmem: write behind the end of {address} (100 bytes)"


@needs_names
@pytest.mark.parametrize("how, told", [
    ("twice", "double free of {} (112 bytes)"),
    ("large twice", "double free of {} (114688 bytes)"),
    ("realloc freed", "realloc of {} after free (112 bytes)"),
    ("write freed", "write after free of {} (112 bytes)"),
])
def test_misuse_of_a_freed_block_is_told_with_where_it_came_from_and_went(run, program, how, told):
    result = run(program, how, **BY_STACK)
    assert result.returncode < 0
    came, went, last = result.stderr.splitlines()
    address, stack = re.fullmatch(r"hakmem: (0x[0-9a-f]+) was allocated from (.*)", came).groups()
    assert named(program, stack)[:2] == ["allocate", "misuse_freed"]
    stack = re.fullmatch(rf"hakmem: {address} was freed from (.*)", went).group(1)
    assert named(program, stack)[:2] == ["release", "misuse_freed"]
    assert last == f"hakmem: {told.format(address)}"


@pytest.mark.parametrize("mode", ["balanced", "checked"])
def test_other_modes_say_that_they_tell_sizes_only(run, program, mode):
    result = run(program, "all", HAKMEM_MODE=mode, HAKMEM_LEAK_REPORT="stacks")
    assert result.returncode == 0
    assert "needs HAKMEM_MODE=debug" in result.stderr.splitlines()[0]
    assert re.search(r"not freed: \d+ blocks in all", result.stderr)
    assert not LINE.findall(result.stderr)


def command(library, *words):
    environment = {**os.environ, "LIBHAKMEM": str(library), "PYTHONPATH": str(ROOT / "python")}
    environment = {name: value for name, value in environment.items()
                   if not name.startswith("HAKMEM_")}
    return subprocess.run([sys.executable, "-m", "hakmem.command", "leaks", *map(str, words)],
                          env=environment, capture_output=True, text=True, check=False)


@needs_names
def test_the_command_names_functions_and_lines(program, library):
    pytest.importorskip("rich")
    done = command(library, program, "all")
    assert done.returncode == 0, done
    assert done.stdout == "the buffer of stdout is no leak\n"
    lines = done.stderr.splitlines()
    assert re.fullmatch(r"process \d+: \d+ blocks? never freed, .*", lines[0])
    text = done.stderr
    line = next(number for number, each in
                enumerate((ROOT / "tests/preload/leaking.c").read_text().splitlines(), 1)
                if "calloc(1, 100000)" in each)
    assert re.search(rf"in 1 block\n    leak_large at leaking\.c:{line}\n    leak_all at ", text)
    assert "not freed:" not in text


def test_the_command_says_when_nothing_leaks_and_fails_on_demand(program, library):
    pytest.importorskip("rich")
    done = command(library, "--fail", "--", program, "none")
    assert (done.returncode, done.stderr) == (0, "nothing leaks: every block was freed\n")
    assert command(library, "--fail", "--", program, "all").returncode == 1
    assert command(library, "--fail", "--", program, "all", "status").returncode == 3
    assert command(library, "--", program, "all").returncode == 0


def test_what_the_loader_keeps_for_threads_is_no_leak(run, program, library):
    pytest.importorskip("rich")
    result, leaks = report(run, program, "threads")
    assert (result.returncode, leaks) == (0, []), result
    assert "not freed" not in result.stderr
    done = command(library, "--fail", "--", program, "threads")
    assert (done.returncode, done.stderr) == (0, "nothing leaks: every block was freed\n")


def test_a_block_that_was_resized_is_told_with_its_last_size(run, program):
    _, leaks = report(run, program, "resized")
    assert sorted(size for _, size, _ in leaks) == [25, 90000, 90 << 20]


def test_the_report_goes_into_no_file_of_the_program(program, library, tmp_path):
    pytest.importorskip("rich")
    script = f"exec 3>{tmp_path}/own 9>{tmp_path}/other; echo mine >&3; {program} all"
    told = command(library, "--", "bash", "-c", script).stderr
    assert "leak_large" in told or not shutil.which("addr2line")
    assert (tmp_path / "own").read_text() == "mine\n"
    assert (tmp_path / "other").read_text() == "" and "not freed:" not in told


def test_a_program_that_does_not_come_to_its_end_is_not_called_clean(program, library):
    pytest.importorskip("rich")
    done = command(library, "--fail", "--", program, "end")
    assert done.returncode == 1 and "nothing could be looked at" in done.stderr


def test_the_child_of_a_fork_is_not_blamed_for_its_parents_blocks(program, library):
    pytest.importorskip("rich")
    told = command(library, "--", program, "fork").stderr
    assert len(re.findall(r"process \d+: 1 block never freed", told)) == 1
    assert told.count("process ") == 1


def test_without_memory_for_the_tables_it_is_said_and_the_program_runs(run, program):
    result = run(program, "none", before=lambda: resource.setrlimit(
        resource.RLIMIT_AS, (150 << 20, 150 << 20)), **BY_STACK)
    assert result.returncode == 0, result
    assert "HAKMEM_LEAK_REPORT=stacks is ignored: there is no memory for it" in result.stderr


def test_python_itself_can_be_looked_at(run):
    """A large program, whose blocks come and go by the hundred thousand."""
    result = run(sys.executable, "-c", "print(sum(len(str(i)) for i in range(10000)))", **BY_STACK)
    assert result.stdout == "38890\n" and result.returncode == 0
    assert len(re.findall(r"not freed: \d+ blocks?, ", result.stderr)) <= 10
