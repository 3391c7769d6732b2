"""A deliberately broken allocator is caught: not engaged, wrong arguments, slow by 5 %."""

from dataclasses import replace
from pathlib import Path

import broken
import pytest
from hakmem_lab import LabError
from hakmem_lab.measure import allocators, rounds, witness
from hakmem_lab.judge.digest import digest
from hakmem_lab.judge.statistics import Verdict
from hakmem_lab.measure.ledger import Ledger, Row
from hakmem_lab.measure.plan import Plan, in_turn
from hakmem_lab.measure.subject import Cell, Subject

NAP = Cell("nap", "own", Subject(("sleep", "0.01")))
TINY = Cell("tiny", "tiny hot", Subject(("bench_tiny_hot", "--cycles=10"), has_json=True))


def measured(folder: Path, cell: Cell, *contestants: allocators.Allocator,
             count: int = 1) -> list[Row]:
    ledger = Ledger(folder / "results")
    own = rounds.CellRounds(cell, contestants, ledger, Plan(seed=1))
    while own.next < count and not own.is_over:
        own.measure()
    return ledger.rows


def test_an_allocator_that_is_not_engaged_is_a_failed_row(tmp_path: Path) -> None:
    """Seen by the witness in a program of a user, by its own words in one of ours."""
    for cell in (NAP, TINY):
        row, = measured(tmp_path / cell.name, cell, broken.absent(tmp_path))
        assert "absent was not engaged: malloc" in row.status and "libc.so.6" in row.status
        assert row.cost_ns == 0


def test_hakmem_that_hands_all_to_the_c_library_is_not_engaged(tmp_path: Path) -> None:
    """Its malloc is bound, yet none of the blocks is its own."""
    safe = allocators.hakmem().with_settings("safe", {"HAKMEM_LD_SAFE": "1"})
    for cell in (NAP, TINY):
        row, = measured(tmp_path / cell.name, cell, safe)
        assert "safe was not engaged" in row.status


def test_an_allocator_that_serves_only_part_of_the_family_is_not_engaged(tmp_path: Path) -> None:
    """malloc is its own, calloc and the rest are the C library's."""
    row, = measured(tmp_path, NAP, broken.allocator(tmp_path, "partial", 1))
    assert "partial was not engaged: calloc of sleep belongs to libc.so.6" in row.status


def test_every_row_says_who_served_it(tmp_path: Path) -> None:
    for cell in (NAP, TINY):
        rows = measured(tmp_path / cell.name, cell, allocators.hakmem(), allocators.system())
        assert [row.status for row in rows] == ["ok", "ok"]
        assert [row.owner for row in rows] == ["libhakmem.so", "libc.so.6"]
        assert rows[0].counter > 0


@broken.needs_history
def test_every_row_says_what_it_was_built_from(tmp_path: Path) -> None:
    row, = measured(tmp_path, NAP, allocators.hakmem())
    assert row.commit


def test_a_program_that_misreads_its_arguments_is_caught(tmp_path: Path) -> None:
    fast = broken.allocator(tmp_path, "fast", 100)
    row, = measured(tmp_path, broken.cell(tmp_path, misreads_by=1), fast)
    assert "was asked for size=16 and understood size=17" in row.status


def test_what_is_understood_on_one_allocator_only_is_caught(tmp_path: Path) -> None:
    """An argument that was not asked for by name, so that only the others can tell."""
    cell = broken.cell(tmp_path)
    unnamed = replace(cell, subject=replace(cell.subject, command=cell.subject.command[:1]))
    first, second = (broken.allocator(tmp_path, name, 100) for name in ("first", "second"))
    rows = measured(tmp_path, unnamed, first, second.with_settings("odd", {"MISREADS_BY": "1"}))
    assert [row.status for row in rows] == [
        "ok", "understood {'size': 1}, on first {'size': 0}"]
    assert not rows[1].cost_ns


def test_an_allocator_on_which_a_program_understands_something_else_is_caught() -> None:
    told = {"size": 32}
    try:
        rounds.refuse_misread(Subject(("x", "--size=16")), told)
    except LabError as error:
        assert "understood size=32" in str(error)
    else:
        raise AssertionError("nothing was refused")


def test_an_allocator_that_is_slow_by_5_percent_is_caught(tmp_path: Path) -> None:
    """Through the whole of the laboratory, on a machine whose mood swings by a third; the clock
    is the allocators' own, so the test repeats to the digit."""
    fast, twin = broken.allocator(tmp_path, "fast", 100), broken.allocator(tmp_path, "twin", 100)
    slow = broken.allocator(tmp_path, "slow", 105)
    rows = measured(tmp_path, broken.cell(tmp_path), fast, slow, twin, count=30)
    cell, = digest(rows, "fast")
    of_slow, of_twin = cell.of("slow"), cell.of("twin")
    assert of_slow and (ratio := of_slow.ratio("time")) and of_twin
    assert of_slow.verdict("time") is Verdict.MORE and 1.03 < ratio.median < 1.07
    assert of_twin.verdict("time") in (Verdict.SAME, Verdict.LEVEL)
    costs = [row.cost_ns for row in rows if row.allocator == "fast"]
    assert max(costs) / min(costs) > 1.3  # single runs would have said anything


def test_a_crash_on_one_allocator_leaves_the_others_figures(tmp_path: Path) -> None:
    crash = ("sh", "-c", 'case "$LD_PRELOAD" in *libhakmem*) kill -SEGV $$;; esac')
    rows = measured(tmp_path, Cell("crash", "own", Subject(crash)), allocators.system(),
                    allocators.hakmem(), count=3)
    assert [row.status for row in rows if row.allocator == "system"] == ["ok"] * 3
    of_hakmem, = [row for row in rows if row.allocator == "hakmem"]
    assert of_hakmem.status.startswith("died of SIGSEGV")


def test_an_exit_status_of_its_own_is_a_failure(tmp_path: Path) -> None:
    differs = ("sh", "-c", 'case "$LD_PRELOAD" in *libhakmem*) echo boom; exit 3;; esac')
    rows = measured(tmp_path, Cell("differs", "own", Subject(differs)), allocators.system(),
                    allocators.hakmem())
    assert rows[1].status == "ended with status 3: boom; on system with 0"


def test_what_the_allocator_complains_of_is_a_failure(tmp_path: Path) -> None:
    wrong = allocators.hakmem().with_settings("wrong", {"HAKMEM_PURGE_DELAY_MS": "soon"})
    row, = measured(tmp_path, NAP, wrong)
    assert "the allocator said" in row.status and "PURGE_DELAY_MS" in row.status


def test_a_run_over_its_limit_is_a_failure(tmp_path: Path) -> None:
    stuck = Cell("stuck", "own", Subject(("sleep", "60"), limit_s=1))
    row, = measured(tmp_path, stuck, allocators.system())
    assert row.status == "sleep was not done in 1 s and was stopped"


STATUS_OF_ITS_OWN = 'case "$LD_PRELOAD" in *libhakmem*) exit 0;; esac; exit 3'


def test_the_system_is_the_reference_whoever_runs_first(tmp_path: Path) -> None:
    """Over an interruption too, when the system's turn is over."""
    odd = Cell("odd", "own", Subject(("sh", "-c", STATUS_OF_ITS_OWN)))
    twin = allocators.hakmem().with_settings("twin", {})
    contestants = [allocators.hakmem(), allocators.system()]
    rows = measured(tmp_path, odd, *contestants, count=2)
    assert [(row.allocator, row.round, row.is_ok) for row in rows] == [
        ("hakmem", 0, False), ("system", 0, True), ("system", 1, True)]
    assert rows[0].status == "ended with status 0; on system with 3" and not rows[0].cost_ns
    rows = measured(tmp_path, odd, twin, count=3)
    assert rows[-1].status == "ended with status 0; on system with 3"


def test_without_the_system_the_first_is_the_reference(tmp_path: Path) -> None:
    plain = broken.absent(tmp_path)
    first, second = (replace(allocators.hakmem(), name=name) for name in ("first", "second"))
    odd = Cell("odd", "own", Subject(("sh", "-c", 'exit "$HAKMEM_PURGE_DELAY_MS"')))
    rows = measured(tmp_path, odd, plain, first.with_settings("4", {"HAKMEM_PURGE_DELAY_MS": "4"}),
                    second.with_settings("5", {"HAKMEM_PURGE_DELAY_MS": "5"}))
    assert [row.is_ok for row in rows] == [False, True, False]
    assert rows[2].status == "ended with status 5; on 4 with 4"


def test_who_runs_after_whom_varies_and_repeats() -> None:
    contestants = [replace(allocators.system(), name=name) for name in "abcd"]
    orders = ["".join(each.name for each in in_turn(contestants, number, 7))
              for number in range(40)]
    assert all(order[::-1] == back for order, back in zip(orders[::2], orders[1::2], strict=True))
    pairs = {order[place:place + 2] for order in orders for place in range(3)}
    assert len(pairs) == 12 and {order[0] for order in orders} == set("abcd")
    assert orders == ["".join(each.name for each in in_turn(contestants, number, 7))
                      for number in range(40)]
    assert orders != ["".join(each.name for each in in_turn(contestants, number, 8))
                      for number in range(40)]


def test_what_a_program_has_not_freed_is_no_complaint(tmp_path: Path) -> None:
    debug = allocators.hakmem().with_settings("debug", {"HAKMEM_MODE": "debug"})
    leak = Cell("leak", "own", Subject(("sh", "-c", "echo 'hakmem[7 sh]: not freed: 1'")))
    row, = measured(tmp_path, leak, debug)
    assert row.status == "ok"


def test_hakmem_is_known_by_its_answer(tmp_path: Path) -> None:
    """Not by the name of its file: under another one its complaints count, its blocks are its own
    in our programs too, and another library does not become HAKMEM by its name."""
    new = tmp_path / "new.so"
    new.write_bytes((allocators.BUILD / "libhakmem.so").read_bytes())
    given, = allocators.choose(f"new={new}")
    assert allocators.is_own(given)
    assert [row.status for row in measured(tmp_path / "tiny", TINY, given)] == ["ok"]
    wrong = given.with_settings("wrong", {"HAKMEM_PURGE_DELAY_MS": "soon"})
    assert "the allocator said" in measured(tmp_path / "nap", NAP, wrong)[0].status
    other = broken.allocator(tmp_path, "hakmem", 1)
    assert other.owner.endswith("libhakmem.so") and not allocators.is_own(other)


@pytest.mark.parametrize(("names", "said"), [
    ("hakmem,,system", "neither NAME nor NAME=LIBRARY"), ("=/bin/true", "neither NAME nor"),
    ("new=", "neither NAME nor"), ("best=/bin/true", "'best' is the name of another"),
    ("glibc=/bin/true", "'glibc' is the name of another"), ("glibc,system", "system twice"),
    ("jemalloc=/bin/true", "another one, such as jemalloc-given=/bin/true"),
    ("a=/bin/true,a=/bin/true", "names a twice"), ("nonesuch", "no allocator 'nonesuch' here")])
def test_names_that_cannot_be_meant_are_refused(names: str, said: str) -> None:
    with pytest.raises(LabError, match=said):
        allocators.refuse_unknown(names)


def test_an_allocator_that_never_asked_the_kernel_served_nothing(tmp_path: Path) -> None:
    record = tmp_path / "witness"
    library = allocators.hakmem().owner
    record.write_text(f"/bin/x\tmalloc\t{library}\tyes\t7\n/bin/x\tcounter\tsystem_calls\t0\t7\n")
    proof = witness.read(record, allocators.hakmem())
    with pytest.raises(LabError, match="asked the kernel for nothing"):
        witness.refuse_unless_engaged(proof, allocators.hakmem(), "x")
