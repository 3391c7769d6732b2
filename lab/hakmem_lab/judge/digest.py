"""What a folder of results says, cell by cell. From result files alone; summary.py goes on.

One convention for the whole laboratory: a *relative* figure of an allocator is its figure divided
by the base's of the same round. The base is 1.00, and below 1 is better than the base.

The burden of proof is on HAKMEM: a claim in its favour, and any between others, has to pass the
interval and the test adjusted for many comparisons; a claim against it only the interval.
"""

import csv
import enum
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hakmem_lab import LabError
from hakmem_lab.judge import statistics
from hakmem_lab.measure import ledger
from hakmem_lab.measure.ledger import Row, by_distance
from hakmem_lab.measure.subject import GROUPS, OWN_GROUP
from hakmem_lab.judge.statistics import Ratio, Series, Verdict

LINKED = "-linked"
BASES = ("hakmem", "system")
NOT_RANKED = "floor"  # older ledgers have rows of an allocator that could not free
EQUIVALENCE = 0.03  # an interval of a ratio within it counts as level
SAMPLED_FROM_S = 0.005  # a shorter run ends before its memory was looked at more than once

Curve = list[tuple[float, int]]  # seconds, bytes


class Basis(enum.Enum):
    """What the time of a cell is; its value is shown."""

    CPU = "CPU time"  # user and system, of all processes: of a program that works by itself
    LOAD = "time of the load"  # of a server
    OPERATION = "time per operation"  # of a benchmark program that counts them
    WALL = "wall time"  # of one that does not


# Programs that were written for the laboratory: rows of before November 27 do not tell them apart.
MADE = ("c++ dom", "c++ market (threads)", "rust index (threads)", "go with cgo (threads)")


def basis_of(row: Row) -> Basis:
    if "load_s" in row.figures or "{port}" in row.command:
        return Basis.LOAD
    if group_of(row) in ("programs", "made", "memory", OWN_GROUP):
        return Basis.CPU
    return Basis.OPERATION if row.operations else Basis.WALL


def group_of(row: Row) -> str:
    """Older rows do not say it."""
    if row.family == "programs" and row.cell in MADE:
        return "made"
    return row.group or ("programs" if row.family == "programs" else "families")


def _time(row: Row) -> float:
    return row.cpu_s * 1e9 if basis_of(row) is Basis.CPU else row.cost_ns


# Times are nanoseconds, sizes bytes. What has a verdict stands first.
FIGURES: dict[str, Callable[[Row], float]] = {
    "time": _time,  # what the cell is judged by
    "wall": lambda row: row.wall_s * 1e9, "peak": lambda row: row.peak_rss_bytes,
    "mean": lambda row: row.mean_rss_bytes,  # this and the next: not of a run that was too short
    "area": lambda row: row.rss_byte_seconds, "end": lambda row: row.end_rss_bytes,
    "cpu": lambda row: row.cpu_s * 1e9, "faults": lambda row: row.minor_faults,
}
JUDGED = ("time", "wall", "peak", "mean", "area", "end")
RANKED = ("time", "peak", "area")


def is_linked(name: str) -> bool:
    return name.endswith(LINKED)


def is_ours(name: str) -> bool:
    return name.removesuffix(LINKED) == BASES[0]


@dataclass(frozen=True)
class Told:
    """One figure of one allocator in one cell, over its good rounds, and beside the base's."""

    series: Series
    ratio: Ratio | None = None  # to the base, whose own is 1.00
    verdict: Verdict = Verdict.UNPAIRED
    adjusted_p: float = math.nan
    smallest_seen: float = math.nan  # the smallest difference that the rounds would have shown


@dataclass(frozen=True)
class AllocatorDigest:
    """One allocator in one cell."""

    name: str
    version: str
    rounds: tuple[int, ...]  # that were good
    told: dict[str, Told]  # by FIGURES; without those that no round has
    most_lazy_free: int = 0  # bytes, of all rounds
    most_major_faults: int = 0
    failures: tuple[tuple[int, str], ...] = ()  # round, reason

    def median(self, figure: str) -> float | None:
        return self.told[figure].series.median if figure in self.told else None

    def ratio(self, figure: str) -> Ratio | None:
        return self.told[figure].ratio if figure in self.told else None

    def verdict(self, figure: str = "time") -> Verdict:
        return self.told[figure].verdict if figure in self.told else \
            Verdict.UNPAIRED if self.told else Verdict.FAILED

    @property
    def is_ranked(self) -> bool:
        return "time" in self.told and not self.failures

    @property
    def outlier_rounds(self) -> tuple[int, ...]:
        return tuple(self.rounds[place] for place in self.told["time"].series.outliers) \
            if "time" in self.told else ()


@dataclass(frozen=True)
class Standing:
    """Whose median is the lowest in a cell, and whom it does not differ from significantly."""

    first: str
    unclear: tuple[str, ...]


class Place(enum.Enum):
    """Where the one that a report is about stands in a cell; against it the interval suffices."""

    FIRST = "first"  # significantly ahead of every other
    BEHIND = "behind"  # somebody is ahead significantly
    WITHIN = "within"  # EQUIVALENCE of the best other
    UNCLEAR = "unclear"


@dataclass(frozen=True)
class Position:
    """Of HAKMEM if it ran, else of the base, beside all others."""

    name: str
    place: Place | None  # None: not behind, and the rounds are too few for more
    ahead: tuple[str, ...]  # who needs less, significantly
    rival: str  # the best other by the median
    beside: Ratio  # its own figure to the rival's
    smallest_seen: float

    @property
    def excludes_loss(self) -> bool:
        """Whether it is proven not to need more than EQUIVALENCE above the best other."""
        return self.beside.high <= 1 + EQUIVALENCE


@dataclass(frozen=True)
class CellDigest:
    name: str
    family: str
    group: str
    command: str
    base: str
    basis: Basis
    allocators: tuple[AllocatorDigest, ...]  # in the order of the ledger
    # By RANKED. A standing takes two to rank and rounds enough; a position takes two to rank.
    standings: dict[str, Standing]
    positions: dict[str, Position]
    distance: str = ""  # of the processors, where the ledger has rows of several

    def of(self, name: str) -> AllocatorDigest | None:
        return next((each for each in self.allocators if each.name == name), None)

    @property
    def contestants(self) -> list[AllocatorDigest]:
        """Linked ones stand beside the preloaded, not among them, unless there are only linked."""
        ranked = [each for each in self.allocators if each.is_ranked]
        return [each for each in ranked if not is_linked(each.name)] or ranked

    @property
    def pairs(self) -> int:
        """The fewest good rounds of a ranked allocator."""
        return min((len(each.rounds) for each in self.allocators if each.is_ranked), default=0)

    @property
    def pairs_to_rank(self) -> int:
        """With fewer, neither a verdict nor a standing tells SAME from TOO_FEW."""
        return statistics.least_pairs(sum(each.name != self.base and each.ratio("time") is not None
                                          for each in self.allocators))


@dataclass(frozen=True)
class Run:
    """A folder of results with all that follows from it."""

    name: str
    rows: tuple[Row, ...]
    environment: dict[str, Any]
    cells: tuple[CellDigest, ...]
    curves: dict[str, dict[str, Curve]]  # by cell, by allocator; of the first round
    # Likewise, of the other rounds of a user's program.
    further_curves: dict[str, dict[str, list[Curve]]] = field(default_factory=dict)

    @property
    def base(self) -> str:
        return choose_base((row.allocator for row in self.rows),
                           str(self.environment.get("base", "")))

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(cell.family for cell in self.cells))

    @property
    def groups(self) -> list[str]:
        present = {cell.group for cell in self.cells}
        return [each for each in (*GROUPS, OWN_GROUP) if each in present]

    @property
    def allocators(self) -> list[str]:
        return list(dict.fromkeys(row.allocator for row in self.rows))

    def of_family(self, family: str) -> list[CellDigest]:
        return [cell for cell in self.cells if cell.family == family]

    def of_group(self, group: str) -> list[CellDigest]:
        return [cell for cell in self.cells if cell.group == group]

    def rows_of(self, cell: CellDigest) -> list[Row]:
        """At its distance of the processors."""
        name_of_cell = cell.name.removesuffix(f", {cell.distance}")
        return by_distance(row for row in self.rows if row.cell == name_of_cell)[cell.distance]

    def curves_of(self, cell: CellDigest) -> dict[str, Curve]:
        """Those of its allocators that ran long enough for one."""
        name_of_cell = cell.name.removesuffix(f", {cell.distance}")
        return {name: curve for name, curve in self.curves.get(name_of_cell, {}).items()
                if len(curve) > 1 and (own := cell.of(name))
                and (own.median("wall") or 0) >= SAMPLED_FROM_S * 1e9}

    @property
    def fewest_pairs(self) -> int:
        return min((cell.pairs for cell in self.cells), default=0)


def choose_base(names: Iterable[str], wanted: str = "") -> str:
    """The wanted one, else HAKMEM, else the system's, else the first."""
    present = list(dict.fromkeys(names))
    usual = [each for base in BASES for each in (base, base + LINKED)]
    return next(name for name in (wanted, *usual, *present) if name in present)


def _good(row: Row) -> Row:
    """A row without a time is none, whatever it says of itself."""
    if row.is_ok and not _time(row) > 0:
        return replace(row, status="no cost was told")
    return row


Pairs = tuple[list[float], list[float]]  # our figures, theirs


def _pairs(ours: Sequence[Row], theirs: Sequence[Row], figure: str) -> Pairs:
    """Of the rounds in which both are good and above 0."""
    value = FIGURES[figure]
    of_base = {row.round: value(row) for row in theirs if row.is_ok}
    found = [(value(row), of_base[row.round]) for row in ours
             if row.is_ok and value(row) > 0 and of_base.get(row.round, 0) > 0]
    return [own for own, _ in found], [base for _, base in found]


def _ratio(pairs: Pairs) -> Ratio | None:
    return statistics.ratio(*pairs) if pairs[0] else None


def _has_memory(good: Sequence[Row]) -> bool:
    return all(row.mean_rss_bytes for row in good) \
        and sum(row.wall_s for row in good) >= SAMPLED_FROM_S * len(good)


def _described(rows: Sequence[Row], base: Sequence[Row]) -> AllocatorDigest:
    good = [row for row in rows if row.is_ok]
    told, is_sampled = {}, _has_memory(good) and _has_memory([row for row in base if row.is_ok])
    for name, figure in FIGURES.items():
        if good and (is_sampled or name not in ("mean", "area")):
            told[name] = Told(statistics.series([figure(row) for row in good]),
                              _ratio(_pairs(rows, base, name)) if name in JUDGED else None)
    return AllocatorDigest(
        rows[0].allocator, rows[0].version, tuple(row.round for row in good),
        told,
        max((row.lazy_free_bytes for row in good), default=0),
        max((row.major_faults for row in good), default=0),
        tuple((row.round, row.status) for row in rows if not row.is_ok))


def _outcome(compared: Ratio, p: float, name: str, base: str, asked: int) -> Verdict:
    """The verdict on `name` beside `base`: against us by the interval, else adjusted, and never
    for a difference within EQUIVALENCE."""
    against_us = Verdict.LESS if is_ours(base) else Verdict.MORE if is_ours(name) else None
    if is_ours(base) != is_ours(name) and statistics.side(compared) == against_us:
        return against_us
    said = statistics.verdict(compared, p)
    if said is Verdict.TOO_FEW:
        return said
    if statistics.is_within(compared, EQUIVALENCE):
        return Verdict.LEVEL
    has_enough = said is not Verdict.SAME or compared.n >= statistics.least_pairs(asked)
    return said if has_enough else Verdict.TOO_FEW


def _outcomes(ratios: dict[str, Ratio], base: str, asked: int, is_base_first: bool = False,
              ) -> dict[str, tuple[Verdict, float]]:
    """Verdict and adjusted p of each beside the base; or of the base beside each, if the ratios
    are so."""
    adjusted = statistics.holm([ratio.p for ratio in ratios.values()])
    return {name: (_outcome(ratio, p, *((base, name) if is_base_first else (name, base)), asked), p)
            for (name, ratio), p in zip(ratios.items(), adjusted)}


def _judged(compared: Sequence[AllocatorDigest], rows: dict[str, list[Row]], base: str,
            ) -> list[AllocatorDigest]:
    """With verdicts, adjusted for as many comparisons as the cell makes."""
    told = {each.name: dict(each.told) for each in compared}
    for figure in JUDGED:
        ratios = {each.name: ratio for each in compared
                  if each.name != base and (ratio := each.ratio(figure))}
        for name, (verdict, p) in _outcomes(ratios, base, len(ratios)).items():
            seen = statistics.smallest_seen(*_pairs(rows[name], rows[base], figure), len(ratios))
            told[name][figure] = replace(told[name][figure], verdict=verdict, adjusted_p=p,
                                         smallest_seen=seen)
        if figure in told[base]:
            told[base][figure] = replace(told[base][figure], verdict=Verdict.BASE)
    return [replace(each, told=told[each.name]) for each in compared]


def _beside(cell: CellDigest, rows: dict[str, list[Row]], figure: str, first: str,
            is_first_ours: bool) -> dict[str, Ratio]:
    """Each other contestant to the first, or the first to each; empty if one has no pair."""
    others = [each.name for each in cell.contestants if each.name != first]
    ratios = {name: _ratio(_pairs(rows[first], rows[name], figure) if is_first_ours
                           else _pairs(rows[name], rows[first], figure)) for name in others}
    return {name: ratio for name, ratio in ratios.items() if ratio} \
        if all(ratios.values()) else {}


def _medians(cell: CellDigest, figure: str) -> dict[str, float]:
    """By ratios to the base; empty if one has none."""
    order = {each.name: ratio.median for each in cell.contestants if (ratio := each.ratio(figure))}
    return order if 2 <= len(order) == len(cell.contestants) else {}


def _standing(cell: CellDigest, rows: dict[str, list[Row]], figure: str) -> Standing | None:
    """The first by the median of ratios to the base, and every other directly beside it. None if
    the rounds are too few for a verdict on one of them."""
    order = _medians(cell, figure)
    first = min(order, key=lambda name: order[name], default="")
    ratios = _beside(cell, rows, figure, first, True) if first else {}
    asked = sum(each.name != cell.base and each.ratio(figure) is not None
                for each in cell.allocators)
    said = {name: verdict for name, (verdict, _)
            in _outcomes(ratios, first, asked, is_base_first=True).items()}
    if not said or Verdict.TOO_FEW in said.values():
        return None
    return Standing(first, tuple(name for name, verdict in said.items()
                                 if verdict is not Verdict.LESS))


def _position(cell: CellDigest, rows: dict[str, list[Row]], figure: str) -> Position | None:
    """HAKMEM is behind by intervals alone, also where the rounds are too few for a standing: the
    adjusted test would be too weak to convict us."""
    name = BASES[0] if BASES[0] in rows else cell.base
    order = _medians(cell, figure)
    if name not in order:
        return None
    ratios = _beside(cell, rows, figure, name, False)
    ahead = tuple(each for each, (verdict, _) in _outcomes(ratios, name, len(ratios)).items()
                  if verdict is Verdict.LESS)
    rival = min((each for each in order if each != name), key=lambda each: order[each])
    pairs = _pairs(rows[name], rows[rival], figure)
    beside, standing = _ratio(pairs), cell.standings.get(figure)
    if beside is None or not ratios:
        return None
    place = Place.BEHIND if ahead else None if standing is None else \
        Place.FIRST if standing == Standing(name, ()) else \
        Place.WITHIN if statistics.is_within(beside, EQUIVALENCE) else Place.UNCLEAR
    return Position(name, place, ahead, rival, beside,
                    statistics.smallest_seen(*pairs, len(ratios)))


def digest_cell(rows: Sequence[Row], wanted_base: str = "") -> CellDigest:
    """All rows of one cell, at least one."""
    by_name: dict[str, list[Row]] = {}
    for row in map(_good, rows):
        known = by_name.setdefault(row.allocator, [])
        if any(each.round == row.round and each.is_ok and row.is_ok for each in known):
            raise LabError(f"{row.cell}: round {row.round} of {row.allocator} is there twice")
        known.append(row)
    base = choose_base(by_name, wanted_base)
    compared = [_described(own, by_name[base]) for own in by_name.values()]
    cell = CellDigest(rows[0].cell, rows[0].family, group_of(rows[0]), rows[0].command, base,
                      basis_of(next((row for row in rows if row.is_ok), rows[0])),
                      tuple(_judged(compared, by_name, base)), {}, {})
    cell = replace(cell, standings={figure: found for figure in RANKED
                                    if (found := _standing(cell, by_name, figure))})
    return replace(cell, positions={figure: at for figure in RANKED
                                    if (at := _position(cell, by_name, figure))})


def digest(rows: Iterable[Row], base: str = "") -> list[CellDigest]:
    """One digest per cell and distance of the processors, in the order of the ledger."""
    by_cell: dict[str, list[Row]] = {}
    for row in rows:
        if row.allocator != NOT_RANKED:
            by_cell.setdefault(row.cell, []).append(row)
    return [replace(digest_cell(part, base), distance=distance,
                    name=f"{cell}, {distance}" if distance else cell)
            for cell, rows in by_cell.items() for distance, part in by_distance(rows).items()]


def _curves(folder: Path) -> dict[str, dict[str, dict[int, Curve]]]:
    """By cell, by allocator, by round; older ledgers have the first round and do not say so."""
    curves: dict[str, dict[str, dict[int, Curve]]] = {}
    try:
        text = (ledger.content(folder, ledger.CURVES) or b"").decode()
        for line in csv.DictReader(io.StringIO(text, newline="")):
            of_cell = curves.setdefault(line["cell"], {})
            of_cell.setdefault(line["allocator"], {}).setdefault(int(line.get("round", 0)), []) \
                .append((float(line["seconds"]), int(line["rss_bytes"])))
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise LabError(f"{folder / ledger.CURVES} is damaged: {error}") from None
    return curves


def read_run(folder: Path) -> Run:
    """Everything in a folder of results; LabError if it has no rows."""
    rows = [row for row in ledger.read_folder(folder) if row.allocator != NOT_RANKED]
    if not rows:
        raise LabError(f"{folder} has no rows yet")
    told = folder / ledger.ENVIRONMENT
    environment = ledger.read_object(told) if told.exists() else {}
    cells = tuple(digest(rows, str(environment.get("base", ""))))
    if not cells:
        raise LabError(f"{folder} has no round in which the processors kept their distance: run it "
                       "again, or with more rounds (-n)")
    curves = _curves(folder)
    return Run(folder.resolve().name, tuple(rows), environment, cells,
               {cell: {name: rounds[0] for name, rounds in of_cell.items() if 0 in rounds}
                for cell, of_cell in curves.items()},
               {cell: {name: [curve for number, curve in rounds.items() if number]
                       for name, rounds in of_cell.items()} for cell, of_cell in curves.items()})
