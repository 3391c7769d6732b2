"""Standings, tallies and what is said of them: one rule for all of a screen."""

import dataclasses
import random
from pathlib import Path

import pytest
from hakmem_lab.judge import digest, statistics, summary
from hakmem_lab.judge.digest import Place
from hakmem_lab.judge.statistics import Verdict
from hakmem_lab.measure import ledger
from hakmem_lab.show import markdown, plots, report, sentences, table
from hakmem_lab.measure.ledger import Ledger, Row
from rich.console import Console

THREE = {"hakmem": 1.0, "system": 1.5, "mimalloc3": 2.68, "jemalloc": 3.0}


def row(cell: str, allocator: str, number: int, cost: float, **more: object) -> Row:
    known = Row("2026-11-21T10:00:00", cell, "made up", "program", allocator, number, "ok",
                cost_ns=cost, operations=1000, wall_s=cost / 10, cpu_s=cost / 12,
                peak_rss_bytes=int(cost * 2**20), mean_rss_bytes=2**20, rss_byte_seconds=2.0**20,
                commit="0123456789")
    return dataclasses.replace(known, **more)  # type: ignore[arg-type]


def rows_of(factors: dict[str, float], rounds: int, cell: str = "c", spread: float = 0.002,
            ) -> list[Row]:
    dice = random.Random(cell)
    return [row(cell, name, number, 10 * factor * (1 + spread * dice.random()))
            for number in range(rounds) for name, factor in factors.items()]


def cell_of(factors: dict[str, float], rounds: int, base: str = "") -> digest.CellDigest:
    return digest.digest_cell(rows_of(factors, rounds), base)


def shown(rows: list[Row], place: Path, curves: str = "") -> str:
    """A folder as the terminal shows it, in one line."""
    opened = Ledger(place)
    opened.append(rows)
    opened.write_object(ledger.ENVIRONMENT, {})
    opened.append_text(ledger.CURVES.removesuffix(".gz"),
                      "cell,allocator,seconds,rss_bytes\n" + curves)
    console = Console(width=200, highlight=False)
    with console.capture() as captured:
        table.show_matrix(place, console)
    return " ".join(captured.get().split())


@pytest.mark.parametrize(("rounds", "others"), [(6, 1), (6, 2), (6, 3), (7, 3), (8, 13), (9, 13)])
def test_a_standing_and_a_verdict_are_of_one_rule(rounds: int, others: int) -> None:
    factors = {"hakmem": 1.0} | {f"peer-{place}": 1.5 + place for place in range(others)}
    cell = cell_of(factors, rounds)
    assert cell.pairs_to_rank == statistics.least_pairs(others)
    too_few = any(each.verdict() is Verdict.TOO_FEW for each in cell.allocators)
    assert too_few == (rounds < cell.pairs_to_rank) == ("time" not in cell.standings)
    said = sentences.winner_sentence(cell)
    assert "no significant difference" not in said
    assert (f"that takes {cell.pairs_to_rank}." in said) == too_few


def test_where_rounds_are_too_few_to_rank_a_loss_still_counts() -> None:
    cell = cell_of(THREE | {"snmalloc": 0.5, "tcmalloc": 0.6}, 6)
    position = cell.positions["time"]
    assert "time" not in cell.standings
    assert (position.place, position.ahead) == (Place.BEHIND, ("snmalloc", "tcmalloc"))
    told = summary.tally([cell])
    assert (told.cells, told.behind, told.too_few) == (1, 1, 0)


def test_time_may_be_ranked_where_memory_is_not() -> None:
    rows = [dataclasses.replace(each, peak_rss_bytes=2**20 + (each.round * (
        3 if each.allocator == "hakmem" else 5)) % 7 * 2**17) for each
        in rows_of({"hakmem": 1.0, "system": 1.0, "mimalloc3": 1.0}, 6)]
    cell = digest.digest_cell(rows)
    assert "time" in cell.standings and "peak" not in cell.standings
    assert sentences.winner_sentence(cell).endswith(
        "; 6 rounds: too few to say who needs the least memory; that takes 7.")


def test_hakmem_is_the_subject_whatever_the_base() -> None:
    cell = cell_of({"hakmem": 1.0, "system": 0.5, "mimalloc3": 2}, 10, base="system")
    assert cell.base == "system"
    assert cell.positions["time"].place is Place.BEHIND
    assert "hakmem needs significantly more time in: c (than system)." in sentences.losses([cell])
    assert summary.tally([cell]).name == "hakmem"
    ahead = cell_of({"hakmem": 1.0, "system": 1.5, "mimalloc3": 2}, 10, base="system")
    position = ahead.positions["time"]
    assert (position.name, position.place, position.rival) == ("hakmem", Place.FIRST, "system")
    assert position.beside.median == pytest.approx(1 / 1.5, rel=0.01)


def test_a_quick_run_ranks_nobody_and_says_so(tmp_path: Path) -> None:
    rows = rows_of(THREE, 5) + rows_of(THREE, 5, "d")
    said = shown(rows, tmp_path)
    assert "Nothing is ranked: that takes 7 rounds (-n 7); there are 5." in said
    assert {each.rank for each in summary.summarise(digest.digest(rows))} == {0}
    ranks = [each.rank for each in summary.summarise(digest.digest(rows_of(THREE, 10)))]
    assert ranks == [1, 2, 3, 4]


def test_a_small_run_is_labelled(tmp_path: Path) -> None:
    label = "Smoke test: 6 rounds, a claim needs 10."
    assert label in shown(rows_of(THREE, 6), tmp_path / "6")
    assert "Smoke" not in shown(rows_of(THREE, 10), tmp_path / "10")


def test_the_terminal_shows_times_and_memory(tmp_path: Path) -> None:
    """As `ab` does: amounts of all where they are few, of the base where they are many."""
    said = shown(rows_of({"hakmem": 1.0, "junk=on": 1.5}, 10, spread=0), tmp_path / "few")
    for words in ("made up: time per operation", "1.00 10.0 ns/op", "1.50 15.0 ns/op",
                  "made up: peak RSS", "1.00 10.0 MiB", "1.50 15.0 MiB"):
        assert words in said, said
    many = {f"peer-{place}": 1.0 + place for place in range(5)}
    said = shown(rows_of({"hakmem": 1.0} | many, 10, spread=0), tmp_path / "many")
    assert "1.00 10.0 ns/op" in said and "20.0 ns/op" not in said


@pytest.mark.parametrize(("low", "high", "note"), [
    (1.002, 1.06, "1.002–1.06"), (0.9, 0.9996, "0.90–0.9996"), (0.999, 1.06, "1.00–1.06"),
    (1.0, 1.2, "1.00–1.20"), (1.01, 1.2, "1.01–1.20"), (1.0000001, 1.2, "1.00–1.20")])
def test_a_bound_shows_on_which_side_of_one_it_lies(low: float, high: float, note: str) -> None:
    told = statistics.Ratio(10, 1.03, low, high, low, high, 0.01)
    assert markdown.ratio(told).note == note


def test_a_run_of_a_few_milliseconds_has_no_curve(tmp_path: Path) -> None:
    rows = [dataclasses.replace(each, wall_s=0.003 if each.allocator == "system" else 1.0)
            for each in rows_of({"hakmem": 1, "system": 2, "mimalloc3": 3}, 10)]
    curves = "".join(f"c,{name},{seconds},{2**20}\n" for name, count in
                     (("hakmem", 5), ("system", 5))
                     for seconds in range(count))
    shown(rows, tmp_path, curves)
    run = digest.read_run(tmp_path)
    assert list(run.curves_of(run.cells[0])) == ["hakmem"]
    assert plots.memory_plot(run, run.cells[0])
    nothing = dataclasses.replace(run, curves={"c": {"system": [(0.0, 1)]}})
    assert plots.memory_plot(nothing, run.cells[0]) is None


def test_regret_is_what_one_costs_above_the_cheapest_of_each_cell() -> None:
    costs = {"a": {"hakmem": (1.0, 1.0), "hakmem-lean": (2.0, 0.5), "system": (4.0, 1.0)},
             "b": {"hakmem": (2.0, 1.0), "hakmem-lean": (1.0, 1.0), "system": (0.5, 1.0)}}
    rows = [
        row(cell, name, number, 1.0, wall_s=1.0, cpu_s=seconds, rss_byte_seconds=gib_s * 2.0**30)
        for cell, told in costs.items() for name, (seconds, gib_s) in told.items()
        for number in range(3)]
    cells = digest.digest(rows)
    ours = ["hakmem", "hakmem-lean"]
    assert summary.regrets(cells, ours, 1000) == {"hakmem": pytest.approx([0.0, 0.5]),
                                                  "hakmem-lean": pytest.approx([0.25, 0.0])}
    assert summary.regrets(cells, ours, 10_000)["hakmem"] == pytest.approx([4 / 7, 1 / 11])
    assert summary.regrets(cells, [*ours, "system"], 1000)["hakmem"] == pytest.approx([0.0, 1.0])
    shown_as = markdown.to_markdown(markdown.regret_table(cells, ours, [1000]))
    assert "| hakmem | 25 % (at most 50 %) |" in shown_as
    assert "| hakmem-lean | 12 % (at most 25 %) |" in shown_as
    failed = digest.digest([*rows, row("a", "hakmem-lean", 3, 1.0, status="died of SIGSEGV")])
    assert "| hakmem-lean | failed |" in markdown.to_markdown(
        markdown.regret_table(failed, ours, [1000]))
    short = digest.digest([dataclasses.replace(each, mean_rss_bytes=0) for each in rows])
    assert summary.regrets(short, ours, 1000) == {name: [] for name in ours}
    assert "| hakmem | failed |" in markdown.to_markdown(markdown.regret_table(short, ours, [1000]))


def test_medians_of_what_a_program_reports(tmp_path: Path) -> None:
    rows = [row("c", name, number, 1.0,
                figures={"free_max_ns": value * 1e6, "faults": 1.0 + number})
            for name, values in (("hakmem", (1, 2, 9)), ("system", (3, 4, 5)))
            for number, value in enumerate(values)]
    rows += [row("c", "snmalloc", 0, 1.0), row("c", "system", 3, 1.0, status="died of SIGSEGV")]
    opened = Ledger(tmp_path)
    opened.append(rows)
    opened.write_object(ledger.ENVIRONMENT, {})
    run = digest.read_run(tmp_path)
    shown_as = markdown.to_markdown(
        markdown.medians_table(run, run.cells[0], ["free_max_ns", "faults"]))
    assert "| free max | **2.00 ms** | 4.00 ms | – |" in shown_as
    assert "| faults | **2.00** | **2.00** | – |" in shown_as
    opened.append([row("d", "hakmem", number, 1.0, figures={"free_max_ns": 1e6 * (number + 1)},
                       cpu_s=2.0, wall_s=1.0, round_trip_ns=60.0 if number < 3 else 900.0)
                   for number in range(6)])
    run = digest.read_run(tmp_path)
    far = next(cell for cell in run.cells if cell.name == "d, far")
    assert "| free max | **5.00 ms** |" in markdown.to_markdown(
        markdown.medians_table(run, far, ["free_max_ns"]))
