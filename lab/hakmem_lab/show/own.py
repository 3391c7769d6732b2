"""What is said of a user's own program: which allocator is fastest on it, which needs the least
memory, and how sure that is. From the rows of one cell.

What is shown is what is ranked: medians over the rounds, and their ratio to the base's. The ratio's
95 % interval is a bootstrap of whole rounds, so that what slows a whole round cancels. A difference
is significant if the interval excludes 1 and Wilcoxon's signed rank test does too, after Holm's
correction for all comparisons made. The same holds for all allocators, HAKMEM too.
"""

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy
from rich.console import Console

from hakmem_lab.judge import statistics
from hakmem_lab.judge.digest import FIGURES, Basis, Run, digest_cell, read_run
from hakmem_lab.judge.statistics import Ratio
from hakmem_lab.measure.ledger import Row, by_distance
from hakmem_lab.measure.subject import OWN_GROUP
from hakmem_lab.show import markdown, own_plots, plots, sentences, table
from hakmem_lab.show.colours import variable
from hakmem_lab.show.columns import plain
from hakmem_lab.show.markdown import Field, Table

OURS, SYSTEM = "hakmem", "system"
EFFECT = 0.02  # the difference that "about N rounds would show" speaks of
RESAMPLES = 2000


@dataclass(frozen=True)
class Ranking:
    """All allocators without a failure by one figure."""

    noun: str
    base: str
    values: dict[str, list[float]]  # round by round, in the order of the medians
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
    return Ranking(noun, base, {name: values[name] for name in order},
                   {name: medians[name] for name in order}, _ratios(values, base),
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

    def __init__(self, rows: Sequence[Row], base: str, distance: str = "") -> None:
        self.rows, self.distance = rows, distance
        self.where = f"With the processors {distance}: " if distance else ""
        self.cell = digest_cell(rows, base)
        self.program = shlex.split(rows[0].command)[0]
        self.statuses = {int(row.figures.get("exit_status", 0)) for row in rows if row.is_ok} - {0}
        ranked = [each.name for each in self.cell.allocators if each.is_ranked]
        base = base if base in ranked else ranked[0] if ranked else ""
        self.owners = {row.allocator: row.owner for row in rows}
        self.rankings = [
            ranking(noun, base, {name: [FIGURES[figure](row) or 1.0 for row in rows
                                        if row.allocator == name] for name in ranked})
            for noun, figure in ((self.cell.basis.value, "time"), ("peak memory", "peak"))
            if ranked]

    def use(self) -> list[str]:
        """How to run the program on the fastest allocator, and on HAKMEM."""
        program, lines = shlex.quote(self.program), []
        names = [name for ranked in self.rankings[:1] for name in (ranked.level[0], OURS)
                 if name in ranked.medians]
        for name in dict.fromkeys(names):
            lines.append(f"To use HAKMEM: make install, then hakmem run {program}" if name == OURS
                         else f"{program} uses the system's allocator already" if name == SYSTEM
                         else f"To use {name}: install it, and set LD_PRELOAD to the path of its "
                         f"library ({self.owners[name]})")
        return lines

    def tables(self) -> list[Table]:
        """Of time and of memory, each sorted by its first figure."""
        time, size = _seconds, markdown.size
        others = ([("CPU time", "cpu", time)] if self.cell.basis is Basis.LOAD else
                  [("wall time", "wall", time)],
                  [("mean", "mean", size), ("at the end", "end", size),
                   ("faults", "faults", markdown.significant)])
        made = []
        # Of the first table: a seventh column would not fit into half of a page.
        for ranked, shown, further, ends in zip(self.rankings, (time, size), others,
                                                ((min, max), ())):
            of = {each.name: each for each in self.cell.allocators}
            order = [*ranked.medians, *[name for name in of if name not in ranked.medians]]
            rows = [(Field(name, name == ranked.level[0]), Field(shown(ranked.medians.get(name))),
                     ranked.field(name),
                     *[Field(shown(end(ranked.values[name]) if name in ranked.values else None))
                       for end in ends],
                     *[Field(show(of[name].median(figure))) for _, figure, show in further])
                    for name in order]
            made.append(Table(("allocator", ranked.noun, f"ratio to {ranked.base}",
                               *["least", "most"][:len(ends)],
                               *[head for head, _, _ in further]), tuple(rows),
                              ("least", "most", "faults", "at the end")))
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

    def standing(self) -> str:
        """HAKMEM's own place, whatever it is; "": it was not compared, or is the base."""
        said = [place for ranking in self.rankings if (place := place_of(ranking))]
        few = sentences.smoke_label(self.rankings[0].rounds) if said else ""
        return " ".join([*[few] * bool(few), f"HAKMEM: {'; '.join(said)}."] if said else [])

    def notes(self) -> list[str]:
        """What else a reader has to know."""
        said = [f"{each.name} failed and is not ranked: {reason}"
                for each in self.cell.allocators for _, reason in each.failures]
        said += [f"The program ended with status {status} in every run."
                 for status in self.statuses]
        for told in self.rankings[:1]:
            said.append(f"Medians of {told.rounds} rounds in turn, and their ratio to "
                        f"{told.base}'s with its 95 % interval. At the end: at the last look "
                        "before the program ended.")
        return said


def place_of(ranking: Ranking) -> str:
    """HAKMEM's place by one figure, and its difference to the base with the 95 % interval."""
    beside = ranking.to_base.get(OURS)
    if beside is None or ranking.base == OURS:
        return ""
    order = list(ranking.medians)
    place = f"place {order.index(OURS) + 1} of {len(order)}"
    change = f"{sentences.percent(abs(beside.median - 1))} " \
        f"{'less' if beside.median < 1 else 'more'} {ranking.noun} than {ranking.base}"
    if math.isnan(beside.low):
        return f"{change}, {place}"
    sure = "" if is_significant(beside) else ", not significant"
    return (f"{change} ({sentences.percent(beside.low - 1)} to "
            f"{sentences.percent(beside.high - 1)}{sure}), {place}")


def claim(ranking: Ranking, one: str, several: str) -> str:
    """Who is first, by how much, and who may be as good."""
    first, *others = ranking.medians
    beside = ranking.to_base[first]
    half = 50 * (beside.high - beside.low)
    digits = 0 if half >= 1 else 1
    less = (f"{100 * (1 - beside.median):.{digits}f} % ± {half:.{digits}f} less {ranking.noun} "
            f"than {ranking.base}")
    if len(ranking.level) == 1:
        more = 100 * (ranking.medians[others[0]] / ranking.medians[first] - 1)
        margin = f"{others[0]}, the next, takes {more:.1f} % more"
        less = margin if first == ranking.base else f"{less}; {margin}"
        return f"{first} {one} ({less})"
    listed = sentences.listed(ranking.level)
    more_rounds = f"; about {ranking.rounds_to_see:,} rounds (-n) would show one of " \
        f"{100 * EFFECT:.0f} %" * (ranking.rounds_to_see > ranking.rounds)
    if ranking.base in ranking.level:
        return f"no significant difference in {ranking.noun} between {listed}{more_rounds}"
    return (f"{listed} {several} ({first}: {less}), without a significant difference between them"
            f"{more_rounds}")


def _known(value: float | None) -> float | None:
    """JSON has no NaN."""
    return None if value is None or math.isnan(value) else value


def _facts_of_ratio(compared: Ratio | None) -> dict[str, Any] | None:
    if compared is None:
        return None
    return {"median": compared.median, "low": _known(compared.low), "high": _known(compared.high),
            "p": _known(compared.p), "is_significant": is_significant(compared)}


def facts(folder: Path) -> dict[str, Any]:
    """All of it for programs: times in seconds, sizes in bytes, ratios to the base's with their
    95 % interval, p adjusted. Of the distance with the most rounds; others are `further`."""
    run = read_run(folder)
    first, *others = sorted(judged(run), key=lambda part: -len(part.rows))
    further = {"further": [_facts_of(run, part) for part in others]} if others else {}
    return _facts_of(run, first) | further


def _facts_of(run: Run, judged: Judged) -> dict[str, Any]:
    by = dict(zip(("time", "peak"), judged.rankings))
    times = ("time", "wall", "cpu")
    return {
        "program": judged.program, "command": run.rows[0].cell, "base": run.base,
        "processors": judged.distance or None,
        "time_is": judged.cell.basis.value, "hakmem": judged.standing(),
        "answer": judged.answer(), "notes": judged.notes(),
        "first": {figure: ranking.level for figure, ranking in by.items()},
        "allocators": [
            {"name": each.name, "version": each.version,
             "failures": [{"round": number, "reason": why} for number, why in each.failures],
             "medians": {figure: _known(told.series.median / (1e9 if figure in times else 1))
                         for figure, told in each.told.items()},
             "ratios": {figure: _facts_of_ratio(ranking.to_base.get(each.name))
                        for figure, ranking in by.items()},
             "runs": [{"round": row.round} | {figure: of(row) / (1e9 if figure in times else 1)
                                              for figure, of in FIGURES.items()}
                      for row in judged.rows if row.allocator == each.name and row.is_ok]}
            for each in judged.cell.allocators]}


def is_own(run: Run) -> bool:
    return len({row.cell for row in run.rows}) == 1 and run.rows[0].group == OWN_GROUP


def judged(run: Run) -> list[Judged]:
    """One for each distance of the processors."""
    return [Judged(rows, run.base, distance)
            for distance, rows in by_distance(run.rows).items()]


def show(folder: Path, console: Console) -> None:
    """In the terminal: the answer, then the tables."""
    run = read_run(folder)
    console.print(plain(run.rows[0].cell, "dim"))
    for part in judged(run):
        for line in filter(None, (part.standing(), part.answer())):
            console.print(plain(part.where + line, "bold"))
        console.print()
        for each in part.tables():
            table.show(each, "", console)
        for note in part.notes():
            console.print(plain(note, "dim"))


def page(run: Run) -> dict[str, Any]:
    """What own.html shows; pictures beside the tables are bars, a share in percent each."""
    parts = judged(run)
    shares = [{name: 100 * value / max(told.medians.values())
               for name, value in told.medians.items()}
              for part in parts for told in part.rankings]
    tables = [each for part in parts for each in part.tables()]
    pictures = [drawn for part in parts for drawn in _drawn(run, part, part is parts[0])]
    return {"program": parts[0].program, "command": run.rows[0].cell,
            "standing": " ".join(part.where + part.standing()
                                 for part in parts if part.standing()),
            "answer": " ".join(part.where + part.answer() for part in parts),
            "use": list(dict.fromkeys(line for part in parts for line in part.use())),
            "notes": [part.where + note for part in parts for note in part.notes()],
            "tables": list(zip(tables, shares)),
            "colours": {name: f"var({variable(colour)})" for name, (colour, _)
                        in plots.styles(run.allocators).items()},
            "pictures": [plots.for_page(drawn, f"own-{place}-")
                         for place, drawn in enumerate(pictures)],
            "record": [*markdown.versions(run), *markdown.environment_pairs(run)]}


def _drawn(run: Run, judged: Judged, has_curves: bool) -> Iterator[str]:
    scaled = [{name: [value / scale for value in values] for name, values in ranked.values.items()}
              for ranked, scale in zip(judged.rankings, (1e9, 1 << 20))]
    if judged.rankings:
        time, memory = judged.rankings
        yield own_plots.trade_off_plot(
            f"{judged.where}each run and the medians: {time.noun} against {memory.noun}",
            (time.noun, memory.noun), scaled[0], scaled[1], run.allocators)
    order = [name for ranked in judged.rankings[1:] for name in ranked.medians]
    if has_curves and (curves := own_plots.memory_plot(run, judged.cell, order)):
        yield curves
    for ranked, values, unit in zip(judged.rankings, scaled, ("seconds", "MiB")):
        yield own_plots.runs_plot(
            f"{judged.where}{ranked.noun}: each run, the median, and the 95 % interval of the "
            f"ratio to {ranked.base}",
            f"{unit}; hollow: beyond two standard deviations", values, ranked.to_base, ranked.base,
            run.allocators)
