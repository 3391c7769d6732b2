"""Every system call of the allocator fails once, and limits bite at every depth: tests/faults.

A part of the list in one run of the tests; FAULTS=all (make faults) takes the whole of it.
"""
import os

import pytest

from conftest import address_space, succeeds_or_skips

MIB = 1 << 20
STRIDE = 48
PARTS = range(STRIDE) if os.environ.get("FAULTS") == "all" else range(0, STRIDE, 12)


@pytest.mark.parametrize("part", PARTS)
def test_any_failing_call_is_survived(build, run, part):
    assert "failures 0" in succeeds_or_skips(run(build("faults/sweep.c"), "all", STRIDE, part))


@pytest.mark.parametrize("words,settings", [
    (["all", 4 * STRIDE, 7], {"HAKMEM_BIGCACHE": 0, "HAKMEM_THP_MIN_HEAP_MB": 0}),
    # Few calls, and the heap can grow no further without them: the whole list.
    (["mprotect", 1, 0], {}),
    (["own", 1, 0], {}),
    (["first"], {}),  # while the allocator comes to life
    (["madvise", STRIDE, 0], {"HAKMEM_PURGE_DELAY_MS": 0}),  # which is not made again at once
], ids=lambda value: "-".join(map(str, value)))
def test_calls_of_a_kind_or_with_settings_may_fail_too(build, run, words, settings):
    assert "failures 0" in succeeds_or_skips(run(build("faults/sweep.c"), *words, **settings))


@pytest.mark.parametrize("way", ["as", "data", "maps", "locked"])
def test_a_limit_that_comes_and_goes_is_survived(build, run, way):
    succeeds_or_skips(run(build("faults/narrow.c"), way))


def test_a_narrow_address_space_from_the_start_is_enough(build, run):
    succeeds_or_skips(run(build("faults/narrow.c"), "given", before=address_space(390)))


def test_a_control_group_does_not_have_to_kill(build, run, memory_group):
    """What is given back is had again: the victim would fill the group many times over.

    Its four threads hold some 60 MiB at once, a few more or less as they interleave.
    """
    succeeds_or_skips(run(build("faults/narrow.c"), "given", before=memory_group(96 * MIB)))
