"""What a folder of results says, cell by cell. From result files alone; summary.py goes on.

One convention for the whole laboratory: the *relative cost* of an allocator is its cost divided
by the base's cost of the same round. The base is 1.00, below 1 is better than the base, above 1
is worse. The floor, which does nothing but hand back memory, is subtracted and never ranked.

The burden of proof is on HAKMEM: a claim in its favour, and any between others, has to pass the
interval and the test adjusted for many comparisons; a claim against it only the interval.
"""

import csv
import gzip
import io
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from hakmem_lab import LabError
from hakmem_lab.judge import statistics
from hakmem_lab.measure import ledger
from hakmem_lab.measure.ledger import Row
from hakmem_lab.judge.statistics import Ratio, Series

FLOOR = "floor"
LINKED = "-linked"
BASES = ("hakmem", "system")
EFFECT = 0.02  # the difference that the power hint speaks of
EQUIVALENCE = 0.03  # an interval of a ratio within it counts as level
SAMPLED_FROM_S = 0.005  # a shorter run ends before its memory was looked at more than once

Curve = list[tuple[float, int]]  # seconds, bytes
Figure = Callable[[Row], float]


def is_linked(name: str) -> bool:
    return name.endswith(LINKED)


def is_ours(name: str) -> bool:
    return name.removesuffix(LINKED) == BASES[0]


@dataclass(frozen=True)
class AllocatorDigest:
    """One allocator in one cell. Figures are of its good rounds; None where there are none."""

    name: str
    version: str
    rounds: tuple[int, ...]  # that were good
    costs: tuple[float, ...]  # one for each of them
    cost: Series | None = None
    wall: Series | None = None
    cpu: Series | None = None
    peak_rss: Series | None = None
    mean_rss: Series | None = None  # this and the next: also None where a run was too short
    rss_byte_seconds: Series | None = None
    end_rss: Series | None = None
    minor_faults: Series | None = None
    most_lazy_free: int = 0  # bytes, of all rounds
    most_major_faults: int = 0
    net_cost_ns: float | None = None
    relative_cost: Ratio | None = None  # to the base; the base's own is 1.00
    round_ratios: tuple[tuple[int, float], ...] = ()  # round, relative cost
    relative_peak: Ratio | None = None
    adjusted_p: float = math.nan  # of the relative cost
    verdict: str = ""  # "less", "more", "level": within EQUIVALENCE, "same": not told apart;
    # or why there is none: "base", "floor", "failed", "unpaired", "too few"
    peak_verdict: str = ""  # likewise, of the relative peak
    runs_to_see: int = 0  # pairs needed to see EFFECT; 0: not known
    failures: tuple[tuple[int, str], ...] = ()  # round, reason

    @property
    def is_floor(self) -> bool:
        return self.name == FLOOR

    @property
    def is_ranked(self) -> bool:
        return self.cost is not None and not self.is_floor and not self.failures

    @property
    def outlier_rounds(self) -> tuple[int, ...]:
        return tuple(self.rounds[place] for place in self.cost.outliers) if self.cost else ()


ToBase = Callable[[AllocatorDigest], Ratio | None]


@dataclass(frozen=True)
class Standing:
    """Whose median is the lowest in a cell, and whom that cannot be told apart from."""

    first: str
    unclear: tuple[str, ...]

    @property
    def is_real(self) -> bool:
        return not self.unclear


@dataclass(frozen=True)
class Position:
    """Where the one that a report is about stands in a cell, beside all others."""

    name: str
    kind: str  # "first", "behind": for real; "within": EQUIVALENCE of the cheapest other; "unclear"
    ahead: tuple[str, ...]  # who costs less, for real


@dataclass(frozen=True)
class CellDigest:
    name: str
    family: str
    command: str
    base: str
    counts_operations: bool
    allocators: tuple[AllocatorDigest, ...]  # in the order of the ledger
    standing: Standing | None  # None: fewer than two to rank, or too few rounds in common
    memory: Standing | None  # the same by peak RSS
    position: Position | None  # of HAKMEM if it ran, else of the base; None if it has none

    def of(self, name: str) -> AllocatorDigest | None:
        return next((each for each in self.allocators if each.name == name), None)

    @property
    def contestants(self) -> list[AllocatorDigest]:
        """Linked ones stand beside the preloaded, not among them, unless there are only linked."""
        ranked = [each for each in self.allocators if each.is_ranked]
        return [each for each in ranked if not is_linked(each.name)] or ranked

    @property
    def floor_holds(self) -> bool:
        """Whether nobody costs less than the floor, which does nothing."""
        return all(each.net_cost_ns is None or each.net_cost_ns >= 0 for each in self.allocators)

    @property
    def pairs(self) -> int:
        """The fewest good rounds of a ranked allocator."""
        return min((len(each.rounds) for each in self.allocators if each.is_ranked), default=0)

    @property
    def pairs_to_rank(self) -> int:
        """With fewer, neither a verdict nor a standing tells "not told apart" from "too few"."""
        return statistics.least_pairs(_asked(self.allocators, self.base))

    @property
    def is_smoke(self) -> bool:
        return self.pairs < statistics.PAIRS_FOR_A_CLAIM


def _asked(compared: Iterable[AllocatorDigest], base: str) -> int:
    """How many comparisons with the base the cell makes."""
    return sum(each.name != base and not each.is_floor and each.relative_cost is not None
               for each in compared)


@dataclass(frozen=True)
class Run:
    """A folder of results with all that follows from it."""

    name: str
    rows: tuple[Row, ...]
    environment: dict[str, Any]
    cells: tuple[CellDigest, ...]
    curves: dict[str, dict[str, Curve]]  # by cell, by allocator

    @property
    def base(self) -> str:
        return choose_base((row.allocator for row in self.rows),
                           str(self.environment.get("base", "")))

    @property
    def families(self) -> list[str]:
        return list(dict.fromkeys(cell.family for cell in self.cells))

    @property
    def allocators(self) -> list[str]:
        return list(dict.fromkeys(row.allocator for row in self.rows))

    def of_family(self, family: str) -> list[CellDigest]:
        return [cell for cell in self.cells if cell.family == family]

    def curves_of(self, cell: CellDigest) -> dict[str, Curve]:
        """Those of its allocators that ran long enough for one."""
        return {name: curve for name, curve in self.curves.get(cell.name, {}).items()
                if len(curve) > 1 and (own := cell.of(name)) and own.wall
                and own.wall.median >= SAMPLED_FROM_S}

    def cell(self, name: str) -> CellDigest:
        for cell in self.cells:
            if cell.name == name:
                return cell
        raise LabError(f"{self.name} has no cell {name}")

    @property
    def fewest_pairs(self) -> int:
        return min((cell.pairs for cell in self.cells), default=0)

    @property
    def is_smoke(self) -> bool:
        return self.fewest_pairs < statistics.PAIRS_FOR_A_CLAIM


def choose_base(names: Iterable[str], wanted: str = "") -> str:
    """The wanted one, else HAKMEM, else the system's, else the first that is not the floor."""
    present = [name for name in dict.fromkeys(names) if name != FLOOR]
    if wanted in present:
        return wanted
    usual = [each for base in BASES for each in (base, base + LINKED)]
    return next((name for name in usual if name in present), present[0] if present else FLOOR)


def _good(row: Row) -> Row:
    """A row without a cost is none, whatever it says of itself."""
    if row.is_ok and not row.cost_ns > 0:
        return replace(row, status="no cost was told")
    return row


def _described(rows: Sequence[Row], floor_ns: float | None) -> AllocatorDigest:
    good = [row for row in rows if row.is_ok]
    failures = tuple((row.round, row.status) for row in rows if not row.is_ok)
    known = AllocatorDigest(rows[0].allocator, rows[0].version, tuple(row.round for row in good),
                            tuple(row.cost_ns for row in good), failures=failures)
    if not good:
        return known

    def series(figure: Figure) -> Series:
        return statistics.series([figure(row) for row in good])

    cost, wall = series(lambda row: row.cost_ns), series(lambda row: row.wall_s)
    is_sampled = wall.median >= SAMPLED_FROM_S and all(row.mean_rss_bytes for row in good)
    return replace(
        known, cost=cost, wall=wall, cpu=series(lambda row: row.cpu_s),
        peak_rss=series(lambda row: row.peak_rss_bytes),
        mean_rss=series(lambda row: row.mean_rss_bytes) if is_sampled else None,
        rss_byte_seconds=series(lambda row: row.rss_byte_seconds) if is_sampled else None,
        end_rss=series(lambda row: row.end_rss_bytes),
        minor_faults=series(lambda row: row.minor_faults),
        most_lazy_free=max(row.lazy_free_bytes for row in good),
        most_major_faults=max(row.major_faults for row in good),
        net_cost_ns=None if floor_ns is None else cost.median - floor_ns)


def _pairs(ours: Sequence[Row], theirs: Sequence[Row], figure: Figure,
           ) -> list[tuple[int, float, float]]:
    """Round, our figure, theirs: the rounds in which both are good and above 0."""
    of_base = {row.round: figure(row) for row in theirs if row.is_ok}
    return [(row.round, figure(row), of_base[row.round]) for row in ours
            if row.is_ok and figure(row) > 0 and of_base.get(row.round, 0) > 0]


def _ratio(ours: Sequence[Row], theirs: Sequence[Row], figure: Figure) -> Ratio | None:
    pairs = _pairs(ours, theirs, figure)
    if not pairs:
        return None
    return statistics.ratio([own for _, own, _ in pairs], [base for _, _, base in pairs])


def _cost(row: Row) -> float:
    return row.cost_ns


def _peak(row: Row) -> float:
    return row.peak_rss_bytes


def _compared(known: AllocatorDigest, rows: Sequence[Row], base: Sequence[Row],
              ) -> AllocatorDigest:
    pairs = _pairs(rows, base, _cost)
    return replace(known, relative_cost=_ratio(rows, base, _cost),
                   relative_peak=_ratio(rows, base, _peak),
                   round_ratios=tuple((number, own / theirs) for number, own, theirs in pairs))


def _said(compared: Ratio, p: float, name: str, base: str) -> str:
    """The verdict on `name` beside `base`: against us by the interval, else adjusted, and never
    for a difference within EQUIVALENCE."""
    against_us = "less" if is_ours(base) else "more" if is_ours(name) else ""
    if is_ours(base) != is_ours(name) and statistics.side(compared) == against_us:
        return against_us
    said = statistics.verdict(compared, p)
    return "same" if said != "too few" and statistics.is_within(compared, EQUIVALENCE) else said


def _outcome(compared: Ratio, p: float, name: str, base: str, asked: int) -> str:
    """What is said, with "level" for "same" within EQUIVALENCE, and "too few" for it where so few
    rounds could not have told them apart."""
    said = _said(compared, p, name, base)
    if said != "same":
        return said
    if statistics.is_within(compared, EQUIVALENCE):
        return "level"
    return said if compared.n >= statistics.least_pairs(asked) else "too few"


def _verdict(each: AllocatorDigest, compared: Ratio | None, p: float, base: str, asked: int,
             ) -> str:
    if each.cost is None:
        return "failed"
    if each.name == base or each.is_floor:
        return "base" if each.name == base else FLOOR
    if compared is None:
        return "unpaired"
    return _outcome(compared, p, each.name, base, asked)


def _verdicts(compared: Sequence[AllocatorDigest], base: str, to_base: ToBase,
              ) -> list[tuple[str, float]]:
    """Verdict and p of each, adjusted for as many comparisons as the cell makes."""
    asked = [each.name for each in compared
             if each.name != base and not each.is_floor and to_base(each)]
    adjusted = statistics.holm([ratio.p for each in compared
                                if each.name in asked and (ratio := to_base(each))])
    p_of = dict(zip(asked, adjusted))
    return [(_verdict(each, to_base(each), p_of.get(each.name, math.nan), base,
                      _asked(compared, base)), p_of.get(each.name, math.nan)) for each in compared]


def _runs_to_see(each: AllocatorDigest, base: str, asked: int) -> int:
    if each.name == base or each.is_floor or not each.round_ratios:
        return 0
    ratios = [value for _, value in each.round_ratios]
    return statistics.runs_to_see(ratios, [1.0] * len(ratios), EFFECT, asked)


def _judged(compared: Sequence[AllocatorDigest], base: str) -> list[AllocatorDigest]:
    """Verdicts on cost and peak memory, and power hints."""
    costs = _verdicts(compared, base, lambda own: own.relative_cost)
    peaks = _verdicts(compared, base, lambda own: own.relative_peak)
    asked = _asked(compared, base)
    return [replace(each, verdict=verdict, adjusted_p=p, peak_verdict=of_peak,
                    runs_to_see=_runs_to_see(each, base, asked))
            for each, (verdict, p), (of_peak, _) in zip(compared, costs, peaks)]


def _standing(cell: CellDigest, rows: dict[str, list[Row]], figure: Figure,
              to_base: ToBase) -> Standing | None:
    """The first by the median of ratios to the base, and every other directly beside it. None if
    the rounds are too few to tell one of them from it."""
    ranked = cell.contestants
    order = {each.name: ratio.median for each in ranked if (ratio := to_base(each))}
    if len(ranked) < 2 or len(order) < len(ranked):
        return None
    first = min(order, key=lambda name: order[name])
    others = [name for name in order if name != first]
    found = [_ratio(rows[first], rows[name], figure) for name in others]
    ratios = [ratio for ratio in found if ratio]
    if len(ratios) < len(others):
        return None
    adjusted = statistics.holm([ratio.p for ratio in ratios])
    asked = _asked(cell.allocators, cell.base)
    said = [_outcome(ratio, p, first, name, asked)
            for name, ratio, p in zip(others, ratios, adjusted)]
    if "too few" in said:
        return None
    return Standing(first, tuple(name for name, each in zip(others, said) if each != "less"))


def _position(cell: CellDigest, rows: dict[str, list[Row]]) -> Position | None:
    """HAKMEM is behind by intervals alone, also where the rounds are too few for a standing: the
    adjusted test would be too weak to convict us."""
    name = BASES[0] if BASES[0] in rows else cell.base
    others = {each.name: each.relative_cost.median for each in cell.contestants
              if each.name != name and each.relative_cost}
    ratios = {each: ratio for each in others if (ratio := _ratio(rows[each], rows[name], _cost))}
    if not ratios or len(ratios) + 1 < len(cell.contestants) \
            or name not in [each.name for each in cell.contestants]:
        return None
    adjusted = statistics.holm([ratio.p for ratio in ratios.values()])
    ahead = tuple(each for (each, ratio), p in zip(ratios.items(), adjusted)
                  if _said(ratio, p, each, name) == "less")
    if ahead:
        return Position(name, "behind", ahead)
    if cell.standing is None:
        return None
    if cell.standing == Standing(name, ()):
        return Position(name, "first", ())
    cheapest = min(ratios, key=lambda each: others[each])
    is_within = statistics.is_within(ratios[cheapest], EQUIVALENCE)
    return Position(name, "within" if is_within else "unclear", ())


def digest_cell(rows: Sequence[Row], wanted_base: str = "") -> CellDigest:
    """All rows of one cell, at least one."""
    by_name: dict[str, list[Row]] = {}
    for row in map(_good, rows):
        known = by_name.setdefault(row.allocator, [])
        if any(each.round == row.round and each.is_ok and row.is_ok for each in known):
            raise LabError(f"{row.cell}: round {row.round} of {row.allocator} is there twice")
        known.append(row)
    floor = [row.cost_ns for row in by_name.get(FLOOR, []) if row.is_ok]
    floor_ns = median(floor) if floor else None
    base = choose_base(by_name, wanted_base)
    compared = [_compared(_described(own, floor_ns), own, by_name[base])
                for own in by_name.values()]
    cell = CellDigest(rows[0].cell, rows[0].family, rows[0].command, base,
                      any(row.operations for row in rows),
                      tuple(_judged(compared, base)), None, None, None)
    cell = replace(cell, standing=_standing(cell, by_name, _cost, lambda own: own.relative_cost),
                   memory=_standing(cell, by_name, _peak, lambda own: own.relative_peak))
    return replace(cell, position=_position(cell, by_name))


def digest(rows: Iterable[Row], base: str = "") -> list[CellDigest]:
    """One digest per cell, in the order of the ledger."""
    by_cell: dict[str, list[Row]] = {}
    for row in rows:
        by_cell.setdefault(row.cell, []).append(row)
    return [digest_cell(each, base) for each in by_cell.values()]


def _opened(folder: Path, name: str) -> str | None:
    """The text of a file of the folder, plain or compressed; None if it has neither."""
    plain = folder / name.removesuffix(".gz")
    packed = plain.with_name(plain.name + ".gz")
    try:
        if packed.exists():
            return gzip.decompress(packed.read_bytes()).decode()
        if plain.exists():
            return plain.read_bytes().decode()
    except (OSError, EOFError, ValueError) as error:
        raise LabError(f"{folder}: {name} cannot be read: {error}") from None
    return None


def _curves(folder: Path) -> dict[str, dict[str, Curve]]:
    curves: dict[str, dict[str, Curve]] = {}
    try:
        text = io.StringIO(_opened(folder, ledger.CURVES) or "", newline="")
        for line in csv.DictReader(text):
            of_cell = curves.setdefault(line["cell"], {})
            of_cell.setdefault(line["allocator"], []).append(
                (float(line["seconds"]), int(line["rss_bytes"])))
    except (KeyError, ValueError, TypeError, csv.Error) as error:
        raise LabError(f"{folder / ledger.CURVES} is damaged: {error}") from None
    return curves


def read_run(folder: Path) -> Run:
    """Everything in a folder of results; LabError if it has no rows."""
    rows = ledger.read_folder(folder)
    if not rows:
        raise LabError(f"{folder} has no rows yet")
    try:
        environment = json.loads(_opened(folder, ledger.ENVIRONMENT) or "{}")
    except ValueError as error:
        raise LabError(f"{folder / ledger.ENVIRONMENT} is damaged: {error}") from None
    cells = tuple(digest(rows, str(environment.get("base", ""))))
    return Run(folder.resolve().name, tuple(rows), environment, cells, _curves(folder))
