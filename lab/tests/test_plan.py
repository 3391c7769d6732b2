"""The plan of a campaign: rounds spread over the run, draws that repeat, a rule that stops."""

import math
import os
from dataclasses import replace
from pathlib import Path

import broken
import numpy
import pytest
from hakmem_lab import LabError, ROOT
from hakmem_lab.commands import bench
from hakmem_lab.commands.cli import CONSOLE
from hakmem_lab.judge import statistics
from hakmem_lab.measure import (allocators, campaign, environment, execution, matrix, peers,
                                plan, rounds)
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.measure.ledger import (ENVIRONMENT, RESULTS, Ledger, Row, read_folder,
                                       read_object)
from hakmem_lab.measure.plan import Draw, Plan
from hakmem_lab.measure.subject import Cell, Subject

CELLS = [Cell(name, "own", Subject(("true", name))) for name in "abcd"]
SYSTEM = [allocators.system()]
BOTH = [allocators.hakmem(), allocators.system()]


def run(folder: Path, seed: int = 1, count: int = 3) -> list[Row]:
    return Campaign(folder, "x", CELLS, SYSTEM, count, plan=Plan(seed=seed)).run(CONSOLE).rows


def visits(rows: list[Row]) -> list[tuple[str, int]]:
    return [(row.cell, row.round) for row in rows]


def test_the_rounds_of_a_cell_are_spread_over_the_run(tmp_path: Path) -> None:
    """Each pass takes every cell once, and not always in the same order."""
    found = visits(run(tmp_path))
    passes = [found[place:place + 4] for place in (0, 4, 8)]
    assert [sorted(each) for each in passes] == [[(name, number) for name in "abcd"]
                                                 for number in range(3)]
    assert len({tuple(name for name, _ in each) for each in passes}) > 1


def test_a_resumed_run_goes_on_as_it_was_drawn(tmp_path: Path) -> None:
    """Whatever round it was interrupted in, and whatever seed it would draw now."""
    whole = visits(run(tmp_path / "whole"))
    part = tmp_path / "part"
    run(part)
    text = (part / "results.csv").read_bytes().splitlines(keepends=True)
    (part / "results.csv").write_bytes(b"".join(text[:7]))
    assert visits(run(part, seed=2)) == whole != visits(run(tmp_path / "other", seed=2))


def test_surroundings_are_the_same_for_all_of_a_round(tmp_path: Path) -> None:
    cell = Cell("it", "own", Subject(("sh", "-c", 'test "$HAKMEM_MODE"; echo "${#LAB_PADDING}"')))
    ledger = Ledger(tmp_path)
    own = rounds.CellRounds(cell, BOTH, ledger, Plan(seed=5))
    for _ in range(4):
        own.measure()
    said = [line for line in (tmp_path / "raw/it.log").read_text().splitlines() if line.isdecimal()]
    assert said[0::2] == said[1::2] and len(set(said)) > 1
    assert [row.round for row in ledger.rows] == [0, 0, 1, 1, 2, 2, 3, 3]


def test_a_layout_is_drawn_that_all_contestants_have(tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocators, "BUILD", tmp_path)
    for name in ("p_system", "p_system_layout1", "p_system_layout2", "p_hakmem",
                 "p_hakmem_layout2"):
        (tmp_path / name).touch()
    cell = Cell("it", "own", Subject(("p",), has_json=True))
    linked = replace(allocators.system(), name="linked", linked="hakmem")
    assert rounds.layouts(cell, SYSTEM) == [0, 1, 2]
    assert rounds.layouts(cell, [*SYSTEM, linked]) == [0, 2]
    assert rounds.layouts(CELLS[0], SYSTEM) == [0]
    drawn = {plan.drawn([0, 2], "", 1, "it", number).layout for number in range(20)}
    assert drawn == {0, 2}
    words = rounds.program_for(cell.subject, linked, Draw(2)).command
    assert words == (str(tmp_path / "p_hakmem_layout2"), "--json")


def runs_of(folder: Path, peak: int, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The order of two rounds, warm-ups as "-"."""
    real = execution.run

    def run_with_peak(*words: object) -> execution.Measurement:
        return replace(real(*words), peak_rss_bytes=peak)  # type: ignore[arg-type]

    monkeypatch.setattr(execution, "run", run_with_peak)
    seen: list[str] = []
    progress = rounds.Progress(
        lambda cell, number, each: seen.append("-" * (number < 0) + each.name))
    own = rounds.CellRounds(CELLS[0], BOTH, Ledger(folder), Plan(seed=1), progress=progress)
    own.measure()
    own.measure()
    return seen


def test_a_large_cell_is_warmed_up_before_each_round(tmp_path: Path,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    small = runs_of(tmp_path / "small", 1 << 20, monkeypatch)
    large = runs_of(tmp_path / "large", 64 << 20, monkeypatch)
    assert [name[0] == "-" for name in small] == [True, False, False, False, False]
    assert [name[0] == "-" for name in large] == [True, False, False, True, False, False]
    assert all(large[place] == "-" + large[place + 1] for place in (0, 3))


def rows_of(cell: Cell, ratios: list[float], cpu_s: float = 0.0) -> list[Row]:
    """Of HAKMEM and the system, by cost, and by CPU time unless that is the same for all."""
    return [Row("t", cell.name, cell.family, "x", name, number, "ok", cost_ns=cost,
                cpu_s=cpu_s or cost, group=cell.group)
            for number, ratio in enumerate(ratios)
            for name, cost in (("hakmem", 1.0), ("system", ratio))]


def scattered(percent: float, count: int, lead: float = 1.0) -> list[float]:
    """Ratios that scatter evenly around `lead`."""
    return [lead * (1 + percent / 100) ** (2 * place / (count - 1) - 1) for place in range(count)]


@pytest.mark.parametrize("lead", [0.8, 0.98, 1.0, 1.02, 1.3])
def test_a_cell_stops_when_it_could_have_seen_the_difference(lead: float) -> None:
    """The rule does not know which allocator leads, nor by how much."""
    rule = Plan(most=40, see=0.02)
    for percent, goes_on in ((0.5, False), (30.0, True)):
        rows = rows_of(CELLS[0], scattered(percent, 10, lead))
        assert rule.goes_on(CELLS[0], rows, 10, "hakmem") is goes_on
        assert rule.goes_on(CELLS[0], rows, 11, "hakmem")
        assert not Plan(most=10).goes_on(CELLS[0], rows, 10, "hakmem")


def test_too_few_rounds_have_seen_nothing() -> None:
    rows = rows_of(CELLS[0], [1.0] * 5)
    assert math.isinf(plan.smallest_seen(rows, "hakmem"))
    assert Plan(most=10).goes_on(CELLS[0], rows, 2, "hakmem")


def test_programs_stop_by_cpu_time_and_servers_by_their_load() -> None:
    program = Cell("it", "programs", Subject(("x",)), group="programs")
    rows = rows_of(program, scattered(30, 10), cpu_s=1.0)
    of_server = [replace(row, figures={"load_s": 1.0}) for row in rows]
    assert plan.smallest_seen(rows, "hakmem") == 0 < plan.smallest_seen(of_server, "hakmem")


def test_a_long_cell_runs_with_full_only_and_six_times(monkeypatch: pytest.MonkeyPatch) -> None:
    long = replace(CELLS[0], is_long=True)
    monkeypatch.setattr(matrix, "families", lambda: [long, CELLS[1]])
    wish = bench.Wish(with_programs=False)
    assert bench.cells_of(wish, CONSOLE) == [CELLS[1]]
    assert bench.cells_of(replace(wish, full=True), CONSOLE) == [long, CELLS[1]]
    with pytest.raises(LabError, match="a runs for long: add --full"):
        bench.cells_of(replace(wish, cells=["a"]), CONSOLE)
    rows = rows_of(long, scattered(30, 6))
    assert not Plan(most=40).goes_on(long, rows, 10, "hakmem")
    assert Plan(most=40).goes_on(long, rows[:-2], 10, "hakmem")


def test_the_budget_ends_after_the_rounds_that_were_asked_for(tmp_path: Path) -> None:
    spent = Plan(most=50, see=1e-9, budget_s=0, seed=1)
    rows = Campaign(tmp_path, "x", CELLS[:2], BOTH, 2, plan=spent).run(CONSOLE).rows
    assert sorted({(row.cell, row.round) for row in rows}) == [
        ("a", 0), ("a", 1), ("b", 0), ("b", 1)]


def test_stopping_by_scatter_leaves_the_interval_honest() -> None:
    """The 95 % interval of the median still holds the truth, and errs to both sides alike."""
    draw = numpy.random.default_rng(11)
    below = above = 0
    for _ in range(600):
        ratios = list(numpy.exp(draw.normal(0, 0.03, 10)))
        while len(ratios) < 40 and statistics.smallest_seen(ratios, [1.0] * len(ratios)) > 0.03:
            ratios.append(float(numpy.exp(draw.normal(0, 0.03))))
        found = statistics.ratio(ratios, [1.0] * len(ratios))
        below, above = below + (found.high < 1), above + (found.low > 1)
    assert below + above < 0.05 * 600
    assert abs(below - above) < 20


def test_a_busy_machine_is_refused_unless_that_is_wanted(tmp_path: Path,
                                                         monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "others_cpus", lambda: 1.4)
    refusing = Campaign(tmp_path, "x", CELLS[:1], SYSTEM, 1, plan=Plan(refuses_busy=True))
    with pytest.raises(LabError, match="others use 1.4 processors: .* --busy-ok"):
        refusing.run(CONSOLE)
    ledger = replace(refusing, plan=Plan()).run(CONSOLE)
    told = read_object(ledger.folder / ENVIRONMENT)
    assert told["may_be_busy"] is True and len(ledger.rows) == 1


def test_what_others_use_is_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 8.5 s in which the processors were busy or the host had taken them, waiting not counted, 2
    were ours."""
    ticks = environment.TICKS
    busy = [ticks, ticks // 2, ticks, 9 * ticks, 7 * ticks, ticks // 2, ticks // 2, 5 * ticks]
    monkeypatch.setattr(environment, "_line", lambda *_: " ".join(map(str, busy)))
    monkeypatch.setattr(os, "times", lambda: (0.5, 0.25, 1.0, 0.25, 100.0))
    assert environment.others_cpu_s() == pytest.approx(6.5)
    row = Row("t", "c", "f", "x", "hakmem", 0, "ok", wall_s=1.0, others_cpu_s=0.1)
    assert not row.was_disturbed and replace(row, others_cpu_s=0.11).was_disturbed
    assert not replace(row, wall_s=0.01, others_cpu_s=0.02).was_disturbed


def test_a_row_tells_how_far_apart_the_processors_were(tmp_path: Path) -> None:
    cell = Cell("it", "own", Subject(("true",)))
    rounds.CellRounds(cell, SYSTEM, Ledger(tmp_path), Plan(seed=1)).measure()
    row, = read_folder(tmp_path)
    assert (row.round_trip_ns > 0) == (len(os.sched_getaffinity(0)) > 1)


def test_with_one_processor_there_is_no_distance() -> None:
    processor = str(min(os.sched_getaffinity(0)))
    assert environment.output_of("taskset", "-c", processor, environment.DISTANCE) == "0.0"


def test_without_the_probe_a_run_is_refused(monkeypatch: pytest.MonkeyPatch,
                                            tmp_path: Path) -> None:
    monkeypatch.setattr(environment, "DISTANCE", tmp_path / "distance")
    with pytest.raises(LabError, match="make release"):
        environment.round_trip_ns()


def test_near_and_far_are_told_of_what_several_processors_did() -> None:
    row = Row("t", "c", "f", "x", "hakmem", 0, "ok", wall_s=1.0, cpu_s=1.9, round_trip_ns=60.0)
    assert row.distance == "near"
    assert replace(row, round_trip_ns=300.0).distance == "far"
    assert replace(row, round_trip_ns=0.0).distance == ""  # one processor, or an older ledger
    assert replace(row, cpu_s=1.0).distance == "" == replace(row, status="died").distance


def test_a_ledger_without_the_distance_is_read(tmp_path: Path) -> None:
    Ledger(tmp_path).append([Row("t", "c", "f", "x", "hakmem", 0, "ok", round_trip_ns=60.0)])
    file = tmp_path / RESULTS
    file.write_text("".join(line.rpartition(",")[0] + "\n"
                            for line in file.read_text().splitlines()))
    row, = read_folder(tmp_path)
    assert row.program == "" and row.round_trip_ns == 0


def test_rounds_of_one_distance_decide_whether_a_cell_goes_on() -> None:
    """Of ten rounds at each distance, which scatter little; near is three times as fast."""
    made = [replace(row, round=row.round + 10 * far, round_trip_ns=300.0 if far else 60.0,
                    cost_ns=row.cost_ns * (3 if far and row.allocator == "hakmem" else 1),
                    wall_s=1.0, cpu_s=2.0)
            for far in (False, True) for row in rows_of(CELLS[0], scattered(0.5, 10))]
    assert plan.smallest_seen(made, "hakmem") == plan.smallest_seen(made[:len(made) // 2], "hakmem")


def test_without_huge_pages_is_told_to_the_kernel(tmp_path: Path) -> None:
    cell = Cell("it", "own", Subject(("grep", "THP_enabled", "/proc/self/status")))
    for regime, line in (("never", "THP_enabled:\t0"), ("", "THP_enabled:\t1")):
        ledger = Ledger(tmp_path / (regime or "as-is"))
        rounds.CellRounds(cell, SYSTEM, ledger, Plan(seed=1, regime=regime)).measure()
        assert ledger.rows[0].regime == regime and ledger.rows[0].is_ok
        assert line in (ledger.folder / "raw/it.log").read_text()


def test_a_regime_that_the_machine_is_not_in_is_refused(tmp_path: Path,
                                                        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(environment, "thp_mode", lambda: "madvise")
    with pytest.raises(LabError, match="'madvise' on this machine; as root: echo always >"):
        Campaign(tmp_path, "x", CELLS, SYSTEM, 1, plan=Plan(regime="always")).run(CONSOLE)
    for regime in ("", "never", "madvise"):
        campaign._refuse_regime(regime)


def test_user_and_system_time_make_the_cpu_time(tmp_path: Path) -> None:
    cell = Cell("it", "own", Subject(("dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=2000")))
    ledger = Ledger(tmp_path)
    rounds.CellRounds(cell, SYSTEM, ledger, Plan(seed=1)).measure()
    row, = ledger.rows
    assert row.system_s > 0 and row.cpu_s == pytest.approx(row.user_s + row.system_s, abs=1e-6)
    assert row.library == environment.hash_of("/lib/x86_64-linux-gnu/libc.so.6") != ""
    assert row.program == environment.hash_of("/bin/dd") != row.library


def test_the_hash_of_a_program_in_this_checkout_is_told(tmp_path: Path) -> None:
    cell = Cell("it", "own", Subject(("{root}/tests/rename.sh",), placeholders=("root",)))
    ledger = Ledger(tmp_path)
    rounds.CellRounds(cell, SYSTEM, ledger, Plan(seed=1)).measure()
    assert [row.program for row in ledger.rows] == [environment.hash_of(ROOT / "tests/rename.sh")]


VERSIONED = "int mi_version(void) { return 30403; }\n"


def test_a_given_library_says_its_version_and_is_not_of_our_commit(tmp_path: Path) -> None:
    library = broken.compiled(tmp_path, "libnew.so", VERSIONED, "-shared", "-fPIC")
    silent = broken.compiled(tmp_path, "libsilent.so", "int x;\n", "-shared", "-fPIC",
                             "-Wl,--build-id=0x0123456789abcdef")
    new, mute, ours = allocators.choose(
        f"new={library},mute={silent},ours={allocators.hakmem().owner}")
    assert new.version == "mimalloc 3.4.3, given"
    assert mute.version == "unknown, build ID: 0123456789abcdef, given"
    assert ours.version.startswith("HAKMEM ")
    assert {environment.commit_of(each) for each in (new, mute, ours, *SYSTEM)} == {("", False)}
    assert environment.commit_of(allocators.hakmem()) == environment.commit()


def test_recommended_settings_are_contestants_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    best, = allocators.choose("glibc-hugetlb")
    assert best.settings == {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"} and not best.commit
    assert best in allocators.choose("best")
    assert best.name not in [each.name for each in allocators.choose(None)]
    monkeypatch.setattr(peers, "is_built", lambda name: False)
    assert {"jemalloc", "mimalloc3"} < set(allocators.lacking("best"))
    knobs = {each.name: each.settings for each in allocators.choose("knobs")}
    assert knobs["hakmem-lean"] == {
        "HAKMEM_POLICY": "none", "HAKMEM_PRICE": "lean"} and best.name not in knobs
    assert allocators.lacking("jemalloc-thp") == ["jemalloc"]


def test_a_group_is_selected_by_its_name() -> None:
    cells = [replace(CELLS[0], group="touched"), replace(CELLS[1], name="touched by b")]
    assert bench.matching(cells, ["touched"]) == cells[:1]
    assert bench.matching(cells, ["TOUCHED B"]) == cells[1:]
