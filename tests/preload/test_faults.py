"""Every system call of the allocator fails once, and limits bite at every depth: tests/faults.

A part of the list in one run of the tests; FAULTS=all (make faults) takes the whole of it.
"""
import contextlib
import os
import pathlib
import resource

import pytest

from conftest import succeeds

MIB = 1 << 20
STRIDE = 48
PARTS = range(STRIDE) if os.environ.get("FAULTS") == "all" else range(0, STRIDE, 12)


def ends_well(result):
    """The program ended well, or could not do here what it is for."""
    if result.returncode == 77:
        pytest.skip(result.stdout)
    return succeeds(result)


@pytest.mark.parametrize("part", PARTS)
def test_any_failing_call_is_survived(build, run, part):
    assert "failures 0" in ends_well(run(build("faults/sweep.c"), "all", STRIDE, part))


def test_other_settings_survive_too(build, run):
    result = run(build("faults/sweep.c"), "all", 4 * STRIDE, 7, HAKMEM_BIGCACHE=0,
                 HAKMEM_THP_MIN_HEAP_MB=0)
    assert "failures 0" in ends_well(result)


@pytest.mark.parametrize("kind", ["mprotect", "own"])
def test_memory_for_its_own_structures_may_be_refused(build, run, kind):
    """Few calls, and the heap can grow no further without them: the whole list."""
    assert "failures 0" in ends_well(run(build("faults/sweep.c"), kind, 1, 0))


def test_calls_may_fail_while_the_allocator_comes_to_life(build, run):
    assert "failures 0" in ends_well(run(build("faults/sweep.c"), "first"))


def test_a_failing_madvise_is_not_made_again_at_once(build, run):
    result = run(build("faults/sweep.c"), "madvise", STRIDE, 0, HAKMEM_PURGE_DELAY_MS=0)
    assert "failures 0" in ends_well(result)


@pytest.mark.parametrize("way", ["as", "data", "maps", "locked"])
def test_a_limit_that_comes_and_goes_is_survived(build, run, way):
    ends_well(run(build("faults/narrow.c"), way))


def test_a_narrow_address_space_from_the_start_is_enough(build, run):
    size = 400000 * 1024
    ends_well(run(build("faults/narrow.c"), "given",
                  before=lambda: resource.setrlimit(resource.RLIMIT_AS, (size, size))))


@contextlib.contextmanager
def memory_group(limit):
    """A control group that may hold so many bytes: the file to join it by. Skips without one."""
    first = pathlib.Path("/sys/fs/cgroup/memory")
    name = f"hakmem-test-{os.getpid()}"
    folder = first / name if first.is_dir() else pathlib.Path("/sys/fs/cgroup") / name
    limits = folder / ("memory.limit_in_bytes" if first.is_dir() else "memory.max")
    try:
        folder.mkdir()
    except OSError as problem:
        pytest.skip(f"no control group can be made here: {problem}")
    try:
        if not limits.exists():
            pytest.skip("control groups have no say about memory here")
        limits.write_text(str(limit))
        yield folder / "cgroup.procs"
    finally:
        folder.rmdir()


def test_a_control_group_does_not_have_to_kill(build, run):
    """What is given back is had again: the victim would fill the group many times over.

    Its four threads hold some 60 MiB at once, a few more or less as they interleave.
    """
    program = build("faults/narrow.c")
    with memory_group(96 * MIB) as members:
        ends_well(run(program, "given", before=lambda: members.write_text(str(os.getpid()))))
