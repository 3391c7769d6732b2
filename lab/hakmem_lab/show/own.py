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

from hakmem_lab.judge import statistics
from hakmem_lab.judge.digest import FIGURES, Basis, Run, digest_cell, read_run
from hakmem_lab.judge.statistics import Ratio
from hakmem_lab.measure.ledger import Row
from hakmem_lab.measure.subject import OWN_GROUP
from hakmem_lab.show import markdown, plots, sentences, table
from hakmem_lab.show.columns import plain
from hakmem_lab.show.markdown import Field, Table

EFFECT = 0.02  # the difference that "about N rounds would show" speaks of
RESAMPLES = 2000


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
        if told is None:
            return Field("failed", kind="mark")
        return markdown.ratio(told, kind="" if not is_significant(told) else
                              "better" if told.median < 1 else "worse")


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


def _seconds(value: float | None) -> str:
    """Nanoseconds, in one unit for a whole column."""
    return f"{markdown.significant(value / 1e9)} s" if value else "–"


class Judged:
    """The rows of one program: rankings by time and by peak memory, and medians of the rest."""

    def __init__(self, rows: Sequence[Row], base: str) -> None:
        self.cell = digest_cell(rows, base)
        self.program = shlex.split(rows[0].command)[0]
        self.statuses = {int(row.figures.get("exit_status", 0)) for row in rows if row.is_ok} - {0}
        ranked = [each.name for each in self.cell.allocators if each.is_ranked]
        base = base if base in ranked else ranked[0] if ranked else ""
        self.rankings = [
            ranking(noun, base, {name: [FIGURES[figure](row) or 1.0 for row in rows
                                        if row.allocator == name] for name in ranked})
            for noun, figure in ((self.cell.basis.value, "time"), ("peak memory", "peak"))
            if ranked]

    def tables(self) -> list[Table]:
        """Of time and of memory, each sorted by its first figure."""
        time, size = _seconds, markdown.size
        others = ([("CPU time", "cpu", time)] if self.cell.basis is Basis.LOAD else
                  [("wall time", "wall", time)],
                  [("mean", "mean", size), ("at the end", "end", size),
                   ("faults", "faults", markdown.significant)])
        made = []
        for told, shown, further in zip(self.rankings, (time, size), others):
            of = {each.name: each for each in self.cell.allocators}
            order = [*told.medians, *[name for name in of if name not in told.medians]]
            rows = [(Field(name, name == told.level[0]), Field(shown(told.medians.get(name))),
                     told.field(name), *[Field(show(of[name].median(figure)))
                                         for _, figure, show in further]) for name in order]
            made.append(Table(("allocator", told.noun, f"ratio to {told.base}",
                               *[head for head, _, _ in further]), tuple(rows),
                              ("faults", "at the end")))
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
        said = [f"{each.name} failed and is not ranked: {reason}"
                for each in self.cell.allocators for _, reason in each.failures]
        said += [f"The program ended with status {status} in every run."
                 for status in self.statuses]
        for told in self.rankings[:1]:
            said += [label for label in [sentences.smoke_label(told.rounds)] if label]
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
    listed = sentences.listed(told.level)
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
    for each in judged.tables():
        table.show(each, "", console)
    for note in judged.notes():
        console.print(plain(note, "dim"))


def page(run: Run) -> dict[str, Any]:
    """What own.html shows; pictures beside the tables are bars, a share in percent each."""
    judged = Judged(run.rows, run.base)
    drawn = plots.memory_plot(run, run.cells[0])
    shares = [{name: 100 * value / max(told.medians.values())
               for name, value in told.medians.items()} for told in judged.rankings]
    return {"program": judged.program, "command": run.cells[0].name, "answer": judged.answer(),
            "notes": judged.notes(), "tables": list(zip(judged.tables(), shares)),
            "colours": {name: colour for name, (colour, _)
                        in plots.styles(run.allocators).items()},
            "curves": plots.for_page(drawn, "own-") if drawn else "",
            "record": [*markdown.versions(run), *markdown.environment_pairs(run)]}
