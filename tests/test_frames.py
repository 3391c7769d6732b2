"""Names of functions as the tools show them, which frames lead, and the next step for a profile."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))
from hakmem import frames, next_step, pprof, profile  # noqa: E402
from hakmem.frames import Name  # noqa: E402

MIB = 1 << 20


@pytest.mark.parametrize(("name", "told"), [
    ("main", "main"),
    ("void std::__cxx11::basic_string<char, std::allocator<char> >::_M_mutate<char*>(char*, long)",
     "std::string::_M_mutate"),
    ("std::ostream& std::operator<< <std::traits<char> >(std::ostream&, char const*)",
     "std::operator<<"),
    ("(anonymous namespace)::visit(void (*)(int))", "(anonymous namespace)::visit"),
    ("main::{lambda(int)#1}::operator()(int) const", "main::{lambda(int)#1}::operator()"),
    ("Grid<int>::operator->()", "Grid::operator->"),
    ("Flag::operator bool()", "Flag::operator bool"),
    ("<alloc::vec::Vec<T> as app::Own>::push::<u8>", "<alloc::vec::Vec as app::Own>::push"),
    ("app::make::<[u8; 512]>", "app::make"), ("alloc::slice::<impl [T]>::repeat",
                                              "alloc::slice::repeat"),
    ("<alloc::boxed::Box<dyn core::ops::FnOnce<()> -> u8> as core::ops::FnOnce<()>>::call_once",
     "<alloc::boxed::Box as core::ops::FnOnce>::call_once"), ("<without an end", "<without an end"),
    ("alloc::raw_vec::RawVec<T,A>::grow_one", "alloc::raw_vec::RawVec::grow_one"),
])
def test_names_are_short(name, told):
    assert frames.short(name) == told


@pytest.mark.parametrize(("name", "is_library"), [
    ("<alloc::vec::Vec<app::Row> as app::Storage>::append", False),
    ("<app::Row as core::clone::Clone>::clone", False), ("app::main::{closure#0}", False),
    ("<alloc::vec::Vec<app::Row>>::push", True),
    ("<T as alloc::string::ToString>::to_string", True),
    ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", True), ("__rustc::__rust_alloc", True),
    ("alloc::raw_vec::finish_grow", True), ("__rg_alloc", True)])
def test_the_library_of_rust_is_known_by_its_names(name, is_library):
    assert Name(name).is_library == is_library
    assert Name("f", source="/rust/deps/hashbrown-0.15.2/src/raw.rs").is_library


def test_what_the_interpreter_of_python_allocates_with_does_not_lead():
    stack = [Name(each, file="/usr/bin/python3.11") for each in
             ("_PyObject_Malloc", "PyByteArray_Resize", "main")]
    (place, caller, _), = profile.leaves([profile.Stack(stack[::-1], 5, 1.0)])
    assert (place, caller) == ("PyByteArray_Resize, in _PyObject_Malloc", "main")
    assert frames.hint(stack) == [frames.OF_PYTHON]
    assert frames.hint([Name("f", file="/opt/lib/libpython3.12.so.1.0")]) == [frames.OF_PYTHON]
    assert frames.hint([Name("f", file="/opt/python3-tool"), Name("main")]) == []
    nameless = Name("python3.11+0x12", file="/usr/bin/python3.11")
    assert frames.hint([nameless]) == [frames.OF_PYTHON]  # Its names would not help.


def test_what_starts_a_program_or_a_thread_is_left_out():
    library = {"file": "/usr/lib/libc.so.6"}
    stack = [Name("std::alloc", source="/rustc/1/library/std/src/alloc.rs"), Name("app::work"),
             Name("core::ops::function::FnOnce::call_once"),
             Name("std::sys::backtrace::__rust_begin_short_backtrace"), Name("main"),
             Name("__libc_start_main_impl", **library), Name("_start")]
    assert frames.own_first(stack) == stack[:2]
    assert frames.own_first([Name("f"), Name("main"), *stack[-2:]]) == [Name("f"), Name("main")]
    assert frames.own_first(stack[-2:]) == stack[-2:]


def sampled(*rows):
    """A profile: (place, bytes of a block, blocks, of which are held at the end) of each site."""
    return pprof.Profile([pprof.Sample([place], {
        "alloc_objects": count, "alloc_space": size * count, "inuse_objects": held,
        "inuse_space": size * held, "moved_objects": 0, "moved_space": 0}, size)
        for place, size, count, held in rows],
        [pprof.Mapping(0, 1 << 20, 0, "/opt/app", "ab" * 20)])


@pytest.mark.parametrize(("rows", "said"), [
    ([(1, 8 * MIB, 9, 0), (2, 64, 1 << 16, 1 << 16)], ["f1 has allocated 9 blocks of 8.0 MiB"]),
    ([(1, 8 * MIB, 9, 9)], ["hakmem leaks PROGRAM"]),
    ([(1, 8 * MIB, 4, 0)], ["hakmem why"]),
    ([(1, 64, 1 << 16, 1 << 16), (2, 64, 1 << 16, 0)], ["hakmem learn PROGRAM"]),
])
def test_the_next_step_is_that_of_the_cause(rows, said):
    names = {place: [Name(f"f{place}")] for place, *_ in rows}
    steps = next_step.of_profile(sampled(*rows), 30 * MIB, names)
    assert len(steps) == len(said) and all(map(str.__contains__, steps, said)), steps


@pytest.mark.parametrize(("held", "allocated", "is_missed"), [
    (548, 19 << 10, True),  # a sample of a block that the program has from its start on
    (548, 8000, False), (1100, 1 << 20, False)])
def test_a_peak_that_is_one_sample_among_many_that_came_and_went_was_not_seen(held, allocated,
                                                                              is_missed):
    values = pprof.ABSENT | {"inuse_space": held << 10, "alloc_space": allocated << 10,
                             "alloc_objects": allocated}
    found = pprof.Profile([pprof.Sample([1], values)], period=512 << 10)
    assert profile.is_by_chance(found) == is_missed
    step, = next_step.of_profile(found, profile.peak_of(found), {1: [Name("f")]})
    assert step == (next_step.WHY if is_missed else next_step.LEAKS)
