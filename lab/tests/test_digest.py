"""What judge/digest.py makes of the rows of a cell, beside figures computed by hand."""

import dataclasses
import math
from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.judge import digest, summary
from hakmem_lab.judge.digest import Basis, Place
from hakmem_lab.judge.statistics import Verdict
from hakmem_lab.measure.ledger import Row
from hakmem_lab.show import markdown, sentences
from test_report import FACTORS, fallen, folder_of, only, row, rows_of, verdicts


def test_figures_are_those_of_a_hand() -> None:
    rows = [row("c", name, number, cost) for name, costs in
            {"hakmem": (10, 20, 30), "system": (20, 30, 90), "floor": (4, 5, 6)}.items()
            for number, cost in enumerate(costs)]
    cell = only(rows)
    hakmem, system = cell.of("hakmem"), cell.of("system")
    assert hakmem and system and cell.of("floor") is None
    told, ratio = hakmem.told["time"].series, system.ratio("time")
    assert (told.n, told.median, told.mean, told.deviation) == (3, 20, 20, 10)
    assert ratio and (ratio.median, ratio.least, ratio.most, ratio.n) == (2, 1.5, 3, 3)
    assert (peak := system.ratio("peak")) and peak.median == 2
    assert verdicts(cell) == [Verdict.BASE, Verdict.TOO_FEW]
    assert cell.standings == {}
    assert all(at.place is None and at.rival == "system" for at in cell.positions.values())
    assert [each.name for each in summary.summarise([cell])] == ["hakmem", "system"]


@pytest.mark.parametrize(("more", "group", "basis", "time"), [
    ({"family": "programs"}, "programs", Basis.CPU, 0.5e9),
    ({"family": "tiny hot"}, "families", Basis.OPERATION, 7.0),
    ({"family": "further", "operations": 0}, "families", Basis.WALL, 7.0),
    ({"family": "programs", "command": "redis --port '{port}'"}, "programs", Basis.LOAD, 7.0),
    ({"group": "programs", "figures": {"load_s": 1.0}}, "programs", Basis.LOAD, 7.0),
    ({"group": "programs", "family": "programs", "cell": "c++ dom"}, "made", Basis.CPU, 0.5e9),
    ({"group": "memory"}, "memory", Basis.CPU, 0.5e9),
    ({"group": "touched"}, "touched", Basis.OPERATION, 7.0),
    ({"group": "own", "family": "own"}, "own", Basis.CPU, 0.5e9),
])
def test_a_cell_is_judged_by_what_its_group_is_about(more: dict[str, object], group: str,
                                                     basis: Basis, time: float) -> None:
    cell = only([dataclasses.replace(row("c", "hakmem", 0, 7.0), **{"cpu_s": 0.5, **more})])
    assert (cell.group, cell.basis, cell.allocators[0].median("time")) == (group, basis, time)


def test_only_rounds_that_both_have_are_paired() -> None:
    cell = only([row("c", "hakmem", 0, 10), row("c", "hakmem", 2, 40), row("c", "system", 1, 1),
                 row("c", "system", 2, 20)])
    system = cell.of("system")
    assert system and (ratio := system.ratio("time"))
    assert (ratio.n, ratio.median) == (1, 0.5)


def test_the_same_round_twice_is_refused() -> None:
    with pytest.raises(LabError, match="twice"):
        digest.digest([row("c", "hakmem", 0, 10), row("c", "hakmem", 0, 11)])


def test_who_is_first_and_whether_it_is_significant() -> None:
    cell = only(rows_of("c", 12))
    assert verdicts(cell) == [Verdict.BASE, Verdict.MORE, Verdict.LEVEL, Verdict.LESS]
    assert cell.standings["time"] == digest.Standing("jemalloc", ())
    without = only(rows_of("c", 12, ("hakmem", "system")))
    assert without.standings["time"] == digest.Standing("hakmem", ())
    alike = [row("c", name, number, 10 + (number * (3 if name == "hakmem" else 5)) % 7)
             for number in range(12) for name in ("hakmem", "system")]
    assert only(alike).standings["time"].unclear


def test_summaries_are_geometric_means_without_linked() -> None:
    rows = [row(cell, name, number, cost) for cell, ours, theirs in (("a", 10, 20), ("b", 10, 5))
            for number in range(10)
            for name, cost in (("hakmem", ours), ("system", theirs), ("hakmem-linked", 1))]
    cells = digest.digest(rows)
    found = {each.name: each for each in summary.summarise(cells)}
    assert set(found) == {"hakmem", "system"}
    system = found["system"]
    told = system.means["time"]
    assert told.value == pytest.approx(1.0) and told.low < 0.01 and told.high > 100
    assert (system.ahead, system.behind, system.cells) == (1, 1, 2)
    assert (system.lighter, system.heavier) == (1, 1)
    ours = summary.beside(cells[:1], "hakmem", "system", "peak")
    assert ours.value == pytest.approx(0.5) and math.isnan(ours.low)


def test_a_failure_is_told_and_neither_ranked_nor_averaged() -> None:
    rows = [each for each in rows_of("c", 10) if each.allocator != "jemalloc" or each.round < 4]
    cell = only([*rows, fallen("c", "jemalloc", number=4), fallen("c", "rpmalloc", "not there")])
    jemalloc, rpmalloc = cell.of("jemalloc"), cell.of("rpmalloc")
    assert jemalloc and jemalloc.told and jemalloc.failures == ((4, "died of SIGSEGV"),)
    assert rpmalloc and not rpmalloc.told and rpmalloc.verdict() is Verdict.FAILED
    assert cell.standings["time"].first == "hakmem"
    found = {each.name: each for each in summary.summarise([cell])}
    assert math.isnan(found["jemalloc"].means["time"].value) and found["jemalloc"].failed == 1
    assert found["jemalloc"].rank == 0 and found["hakmem"].rank == 1
    assert "died of SIGSEGV" in markdown.to_markdown(markdown.failure_table([cell]))


def apart(number: int, *distances_ns: float) -> list[Row]:
    """A round of two allocators, each at its distance of the processors, on both of them."""
    return [row("c", name, number, cost * (1 if ns < 150 else 3), round_trip_ns=ns, wall_s=1.0,
                cpu_s=2.0)
            for (name, cost), ns in zip((("hakmem", 10), ("system", 20)), distances_ns)]


def test_near_and_far_are_two_cells() -> None:
    cells = digest.digest([*apart(0, 60, 50), *apart(1, 300, 400), *apart(2, 55, 60)])
    assert [(cell.name, cell.pairs) for cell in cells] == [("c, near", 2), ("c, far", 1)]
    for cell, time in zip(cells, (10, 30)):
        hakmem, system = cell.of("hakmem"), cell.of("system")
        assert hakmem and system and hakmem.median("time") == time
        assert (ratio := system.ratio("time")) and (ratio.least, ratio.most) == (2, 2)


def test_a_round_in_which_the_distance_changes_is_in_no_ratio_and_told(tmp_path: Path) -> None:
    rows = [*apart(0, 60, 60), *apart(1, 60, 300)]
    (cell,) = digest.digest(rows)
    assert (cell.name, cell.pairs) == ("c, near", 1)
    run = digest.read_run(folder_of(tmp_path / "one", rows))
    assert "left out: 1 round in which" in sentences.source_line(run)
    with pytest.raises(LabError, match="kept their distance"):
        digest.read_run(folder_of(tmp_path / "none", apart(0, 60, 300)))


def test_processors_about_as_far_as_the_border_have_one_distance() -> None:
    assert [cell.name for cell in digest.digest([*apart(0, 140, 160), *apart(1, 155, 145)])] == \
        ["c"]


def test_one_distance_is_one_cell_and_what_failed_is_in_each() -> None:
    assert [cell.name for cell in digest.digest(apart(0, 60, 60))] == ["c"]
    failed = row("c", "jemalloc", 0, 0, status="died of SIGSEGV")
    cells = digest.digest([*apart(0, 60, 60), failed, *apart(1, 300, 300)])
    assert [cell.name for cell in cells] == ["c, near", "c, far"]
    assert all((own := cell.of("jemalloc")) and own.failures for cell in cells)


def test_the_distance_matters_to_what_uses_several_processors_alone() -> None:
    one = [dataclasses.replace(each, cpu_s=1.0)
           for each in (*apart(0, 60, 60), *apart(1, 300, 300))]
    assert [(cell.name, cell.pairs) for cell in digest.digest(one)] == [("c", 2)]
