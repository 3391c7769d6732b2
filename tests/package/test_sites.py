"""Which callers `hakmem learn` names: made-up profiles of a function that allocates for others."""
import random
import sys
from dataclasses import replace

import pytest
from files import ROOT

sys.path.insert(0, str(ROOT / "python"))
pytest.importorskip("google.protobuf")
from hakmem import learn  # noqa: E402
from hakmem.policy import Caller, Site  # noqa: E402
from hakmem.pprof import Mapping, Profile, Sample  # noqa: E402

ID = "0123456789abcdef"
REAL = learn.symbols.names_of


def sample(place, size, allocated, kept):
    values = {"alloc_space": allocated, "inuse_space": kept, "lifetime": 0}
    return Sample([0x1000 + place], values, size)


MIB = 1 << 20
CODE = [Mapping(0x1000, 0x9000, 0x200, "/nonesuch", ID)]


def called(callers, size, allocated, kept, slots):
    """Of the function at place 1; its callers' places are above."""
    found = sample(1, size, allocated, kept)
    addresses = found.addresses + [0x1000 + place for place in callers]
    return Sample(addresses, found.values, size, slots=slots)


def learnt(*samples):
    return learn.policy_of([Profile(list(samples), CODE, period=64 << 10)]).groups


CALLER = Site(ID, 0x202, 48, (Caller(24, ID, 0x211),))


def test_a_caller_is_named_where_the_function_allocates_for_others():
    stays, goes = (called([place], 48, 9 * MIB, kept, (24, 0))
                   for place, kept in ((0x10, 9 * MIB), (0x20, 0)))
    assert learnt(stays, goes) == {CALLER: 1}
    assert learnt(stays, sample(2, 48, 9 * MIB, 0)) == {Site(ID, 0x202, 48): 1}  # it says enough


def test_two_callers_are_named_where_one_does_not_know():
    stays, goes = (called([0x10, place], 48, 9 * MIB, kept, (24, 40))
                   for place, kept in ((0x30, 9 * MIB), (0x40, 0)))
    site, = learnt(stays, goes)
    assert site == Site(ID, 0x202, 48, (Caller(24, ID, 0x211), Caller(40, ID, 0x231)))


def test_a_caller_is_named_where_it_knows_more_than_the_function():
    """Half of its blocks stay, which would be enough; all those of one caller do."""
    samples = [called([place], 48, 9 * MIB, kept, (24, 0))
               for place, kept in ((0x10, 9 * MIB), (0x20, 1 * MIB))]
    assert learnt(*samples, sample(2, 48, 9 * MIB, 0)) == {CALLER: 1}
    alike = [called([place], 48, 9 * MIB, 6 * MIB, (24, 0)) for place in (0x10, 0x20)]
    assert learnt(*alike, sample(2, 48, 9 * MIB, 0)) == {Site(ID, 0x202, 48): 1}


@pytest.mark.parametrize("slot", [13, 1032, 1 << 40, -8])
def test_a_place_that_the_library_would_refuse_is_not_named(slot):
    assert learnt(*(called([place], 48, 9 * MIB, kept, (slot, 0))
                    for place, kept in ((0x10, 9 * MIB), (0x20, 0)))) == {}


def test_many_samples_are_told_apart_and_named_once(monkeypatch):
    asked = []
    monkeypatch.setattr(learn.symbols, "names_of", lambda found: asked.append(found) or REAL(found))
    samples = [called([place], 48, 900 * MIB, kept, (24, 0))
               for place, kept in ((0x10, 899 * MIB), (0x20, 0))]
    assert learnt(*samples, *[sample(3 + number, 64, MIB, 0) for number in range(500)]) == {
        CALLER: 1}
    assert len(asked) == 1


def test_calls_that_no_rule_can_name_are_not_named():
    """Those of realloc. What they allocate and free comes and goes all the same."""
    stays, goes = sample(1, 48, 9 * MIB, 9 * MIB), sample(2, 48, 9 * MIB, 0)
    assert learnt(stays, replace(goes, is_unnamed=True)) == {Site(ID, 0x202, 48): 1}
    assert learnt(replace(stays, is_unnamed=True), goes) == {}


@pytest.mark.parametrize("slots", [((24, 0), (32, 0)), ((0, 0), (0, 0)), ((24, 0), (0, 0))])
def test_no_caller_is_named_whose_place_on_the_stack_is_unknown_or_changes(slots):
    """Whoever is the caller: what changes is the frame of the function that is called."""
    assert learnt(called([0x10], 48, 9 * MIB, 9 * MIB, slots[0]),
                  called([0x20], 48, 9 * MIB, 0, slots[1])) == {}


def test_a_caller_that_stays_by_chance_is_not_named():
    """Of a hundred callers whose blocks stay or go at random some have samples that all stay."""
    chance = random.Random(3)
    callers = []
    for place in range(100):
        staying = sum(chance.random() < 0.3 for _ in range(3))
        callers.append(called([0x10 + place], 48, 3 << 16, staying << 16, (24, 0)))
    assert any(each.values["inuse_space"] == 3 << 16 for each in callers)
    assert learnt(*callers) == {}


def test_what_blocks_of_all_sizes_say_of_a_caller_counts_for_each_size():
    sizes = range(48, 48 + 20 * 16, 16)
    few = [called([0x10], size, 4 << 16, 4 << 16, (24, 0)) for size in sizes]
    goes = [called([0x20], size, 12 << 16, 0, (24, 0)) for size in sizes]
    assert learnt(few[0], goes[0]) == {}
    assert {site.size for site in learnt(*few, *goes)} == set(sizes)
