"""What is said of a user's own program: which allocator is fastest on it, which needs the least
memory, and how sure that is. From the rows of one cell.

What is shown is what is ranked: medians over the rounds, and their ratio to the base's. The ratio's
95 % interval is a bootstrap of whole rounds, so that what slows a whole round cancels. A difference
is significant if the interval excludes 1 and Wilcoxon's signed rank test does too, after Holm's
correction for all comparisons made. The same holds for all allocators, HAKMEM too.
"""

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from rich.console import Console
from rich.text import Text

from hakmem_lab.judge import statistics
from hakmem_lab.judge.digest import Curve, Run, read_run
from hakmem_lab.judge.statistics import Ratio
from hakmem_lab.measure.ledger import Row
from hakmem_lab.measure.subject import OWN_GROUP
from hakmem_lab.show import columns, markdown, plots
from hakmem_lab.show.columns import Column, plain
from hakmem_lab.show.markdown import Field, Table, significant, size

EFFECT = 0.02  # the difference that "about N rounds would show" speaks of
RESAMPLES = 2000
BAR_WIDTH, CURVE_WIDTH = 20, 30
STEPS = " ▁▂▃▄▅▆▇█"
COLOURS = {"better": "green", "worse": "red"}


@dataclass(frozen=True)
class Ranking:
    """All allocators without a failure by one figure."""

    noun: str
    base: str
    medians: dict[str, float]  # the lowest first
    to_base: dict[str, Ratio]  # p is adjusted
    level: list[str]  # the lowest, and all from which it does not differ significantly
    rounds: int
    rounds_to_see: int  # for EFFECT, within `level`; 0: not known

    def field(self, name: str) -> Field:
        told = self.to_base.get(name)
        kind = "" if not told or not is_significant(told) else \
            "better" if told.median < 1 else "worse"
        return markdown.ratio(told, kind=kind) if told else Field("failed", kind="mark")


def ranking(noun: str, base: str, values: dict[str, list[float]]) -> Ranking:
    """From each allocator's values in the same rounds."""
    medians = {name: float(numpy.median(each)) for name, each in values.items()}
    order = sorted(medians, key=lambda name: medians[name])
    first, others = order[0], order[1:]
    to_first = _ratios(values, first)
    level = [name for name in others if not is_significant(to_first[name])]
    needed = [statistics.runs_to_see(values[name], values[first], EFFECT, len(others))
              for name in level]
    return Ranking(noun, base, {name: medians[name] for name in order}, _ratios(values, base),
                   [first, *level], len(values[first]), max(needed, default=0))


def _ratios(values: dict[str, list[float]], base: str) -> dict[str, Ratio]:
    """Of all medians to the base's, judged together."""
    tested = [statistics.ratio(each, values[base]) for each in values.values()]
    p_values = statistics.holm([math.nan if name == base else told.p
                                for name, told in zip(values, tested)])
    data, n = numpy.array(list(values.values())), len(values[base])
    drawn = numpy.median(data[:, numpy.random.default_rng(0).integers(n, size=(RESAMPLES, n))], 2)
    drawn /= drawn[list(values).index(base)].copy()
    middle = numpy.median(data, 1) / numpy.median(values[base])
    tail = (1 - statistics.CONFIDENCE) / 2
    low, high = numpy.quantile(drawn, (tail, 1 - tail), 1)
    if n < statistics.FEWEST_FOR_A_VERDICT:
        low[:] = high[:] = math.nan
    return {name: Ratio(n, float(middle[place]), told.least, told.most, float(low[place]),
                        float(high[place]), p_values[place])
            for place, (name, told) in enumerate(zip(values, tested))}


def is_significant(told: Ratio) -> bool:
    return told.p < 1 - statistics.CONFIDENCE and not told.low <= 1 <= told.high


class Judged:
    """The rows of one program: rankings by time and by peak memory, and medians of the rest."""

    def __init__(self, rows: Sequence[Row], base: str) -> None:
        self.rows = {row.allocator: [each for each in rows if each.allocator == row.allocator]
                     for row in rows}
        ranked = [name for name, each in self.rows.items() if all(row.is_ok for row in each)]
        self.is_server = rows[0].cell.startswith(f"{rows[0].command} under ")
        self.program = shlex.split(rows[0].command)[0]
        self.rankings: list[Ranking] = []
        if not ranked:
            return
        base = base if base in ranked else ranked[0]
        time = ("time of the load", "wall_s") if self.is_server else ("CPU time", "cpu_s")
        for noun, figure in (time, ("peak memory", "peak_rss_bytes")):
            values = {name: [max(float(getattr(row, figure)), 1e-9) for row in self.rows[name]]
                      for name in ranked}
            self.rankings.append(ranking(noun, base, values))

    def median(self, name: str, figure: str) -> float | None:
        good = [float(getattr(row, figure)) for row in self.rows[name] if row.is_ok]
        return float(numpy.median(good)) if good else None

    def tables(self) -> list[Table]:
        """Of time and of memory, each sorted by its first figure."""
        def seconds(value: float | None) -> str:
            return f"{significant(value)} s"

        others = ([("CPU time", "cpu_s", seconds)] if self.is_server else
                  [("wall time", "wall_s", seconds)],
                  [("mean", "mean_rss_bytes", size), ("at the end", "end_rss_bytes", size),
                   ("faults", "minor_faults", significant)])
        made = []
        for told, shown, further in zip(self.rankings, (seconds, size), others):
            failed = [name for name in self.rows if name not in told.medians]
            rows = [(Field(name, name == told.level[0]), Field(shown(told.medians.get(name))),
                     told.field(name), *[Field(show(self.median(name, figure)))
                                         for _, figure, show in further])
                    for name in (*told.medians, *failed)]
            made.append(Table(("allocator", told.noun, f": {told.base}",
                               *[head for head, _, _ in further]), tuple(rows)))
        return made

    def answer(self) -> str:
        """One sentence: time, then memory."""
        if not self.rankings or len(self.rankings[0].medians) < 2:
            return "Nothing to compare: fewer than two allocators ended all rounds well."
        count = len(self.rankings[0].medians)
        fewest = statistics.least_pairs(count - 1)
        if self.rankings[0].rounds < fewest:
            lowest = [f"{told.level[0]} has the lowest {told.noun}" for told in self.rankings]
            return (f"On {self.program} {' and '.join(lowest)}, but it takes {fewest} rounds "
                    f"(-n {fewest}) to judge {count} allocators.")
        verbs = (("is fastest", "are fastest"),
                 ("needs the least memory", "need the least memory"))
        return f"On {self.program} {'; '.join(map(claim, self.rankings, *zip(*verbs)))}."

    def notes(self) -> list[str]:
        """What else a reader has to know."""
        said = [f"{name} failed and is not ranked: {row.status}"
                for name, rows in self.rows.items() for row in rows if not row.is_ok]
        statuses = {int(row.figures.get("exit_status", 0)) for rows in self.rows.values()
                    for row in rows if row.is_ok} - {0}
        said += [f"The program ended with status {status} in every run." for status in statuses]
        for told in self.rankings[:1]:
            if told.rounds < statistics.PAIRS_FOR_A_CLAIM:
                said.append(f"Smoke test: {told.rounds} of the {statistics.PAIRS_FOR_A_CLAIM} "
                            "rounds that a claim needs.")
            said.append(f"Medians of {told.rounds} rounds in turn, and their ratio to "
                        f"{told.base}'s with its 95 % interval.")
        return said


def claim(told: Ranking, one: str, several: str) -> str:
    """Who is first, by how much, and who may be as good."""
    first, *others = told.medians
    beside = told.to_base[first]
    half = 50 * (beside.high - beside.low)
    digits = 0 if half >= 1 else 1
    less = (f"{100 * (1 - beside.median):.{digits}f} % ± {half:.{digits}f} less {told.noun} than "
            f"{told.base}")
    if len(told.level) == 1:
        if first == told.base:
            more = 100 * (told.medians[others[0]] / told.medians[first] - 1)
            less = f"{others[0]}, the next, takes {more:.1f} % more {told.noun}"
        return f"{first} {one} ({less})"
    names = told.level if len(told.level) <= 3 else [*told.level[:2],
                                                     f"{len(told.level) - 2} others"]
    listed = f"{', '.join(names[:-1])} and {names[-1]}"
    more_rounds = f"; about {told.rounds_to_see:,} rounds (-n) would show one of " \
        f"{100 * EFFECT:.0f} %" * (told.rounds_to_see > told.rounds)
    if told.base in told.level:
        return f"no significant difference in {told.noun} between {listed}{more_rounds}"
    return (f"{listed} {several} ({first}: {less}), without a significant difference between them"
            f"{more_rounds}")


def is_own(run: Run) -> bool:
    return len(run.cells) == 1 and run.rows[0].group == OWN_GROUP


def show(folder: Path, console: Console) -> None:
    """In the terminal: the answer, then the tables."""
    run = read_run(folder)
    judged = Judged(run.rows, run.base)
    console.print(plain(run.cells[0].name, "dim"))
    console.print(plain(judged.answer(), "bold"))
    console.print()
    curves = run.curves_of(run.cells[0])
    highest = max((each for curve in curves.values() for _, each in curve), default=0)
    longest = max((curve[-1][0] for curve in curves.values()), default=0.0)
    drawn = [{name: _bar(value / max(told.medians.values())) for name, value in
              told.medians.items()} for told in judged.rankings[:1]]
    drawn += [dict.fromkeys(judged.rows, markdown.NO_CURVE) | {
        name: curve_of_characters(curve, longest, highest) for name, curve in curves.items()}]
    style = plots.styles(list(judged.rows))
    for table, drawings, head in zip(judged.tables(), drawn, ("", "RSS over time")):
        heads = [Column(each, place == 0, place * (place > 2))
                 for place, each in enumerate(table.heads)]
        rows = [[plain(row[0].text), Text(drawings.get(row[0].text, ""), style[row[0].text][0]),
                 *[plain(each.text, COLOURS.get(each.kind, "")).append(
                     f" {each.note}" if each.note else "", "dim") for each in row[1:]]]
                for row in table.rows]
        columns.show("", [heads[0], Column(head, True, 9), *heads[1:]], rows, console)
    for note in judged.notes():
        console.print(plain(note, "dim"))


def _bar(share: float) -> str:
    """A bar in eighths of a character."""
    eighths = round(share * BAR_WIDTH * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def curve_of_characters(curve: Curve, longest: float, highest: int) -> str:
    """The highest sample of each of CURVE_WIDTH stretches of time, in eighths of a line."""
    peaks = [0] * CURVE_WIDTH
    for seconds, each in curve:
        place = min(int(seconds / longest * CURVE_WIDTH) if longest else 0, CURVE_WIDTH - 1)
        peaks[place] = max(peaks[place], each)
    last = max((place for place, each in enumerate(peaks) if each), default=-1)
    for place in range(1, last + 1):  # a stretch without a sample is as the one before
        peaks[place] = peaks[place] or peaks[place - 1]
    return "".join(STEPS[max(1, round(each / highest * 8))] if each else " " for each in peaks)


def page(run: Run) -> dict[str, Any]:
    """What own.html shows; pictures beside the tables are bars, a share in percent each."""
    judged, pictures = Judged(run.rows, run.base), []
    for place, drawn in enumerate((plots.memory_plot(run, run.cells[0]),
                                   plots.bars_plot(run, run.cells[0]))):
        pictures.append(plots.for_page(drawn, f"own-{place}-") if drawn else "")
    shares = [{name: 100 * value / max(told.medians.values())
               for name, value in told.medians.items()} for told in judged.rankings]
    return {"program": judged.program, "command": run.cells[0].name, "answer": judged.answer(),
            "notes": judged.notes(), "tables": list(zip(judged.tables(), shares)),
            "colours": {name: colour for name, (colour, _)
                        in plots.styles(list(judged.rows)).items()},
            "curves": pictures[0], "rounds": pictures[1],
            "record": [*markdown.versions(run), *markdown.environment_pairs(run)]}
