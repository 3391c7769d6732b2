"""What a folder of results says: per cell, per family, over all. From result files alone.

One convention for the whole laboratory: the *relative cost* of an allocator is its cost divided
by the base's cost of the same round. The base is 1.00, below 1 is better than the base, above 1
is worse. The floor, which does nothing but hand back memory, is subtracted and never ranked.
"""

import csv
import gzip
import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from hakmem_lab import LabError, ledger, statistics
from hakmem_lab.ledger import Row
from hakmem_lab.statistics import Ratio, Series

FLOOR = "floor"
LINKED = "-linked"
BASES = ("hakmem", "system")
EFFECT = 0.02  # the difference that the power hint speaks of
LEAST_NET = 0.05  # of the floor's cost: a net cost below it is noise, and no ratio is formed

Curve = list[tuple[float, int]]  # seconds, bytes


def is_linked(name: str) -> bool:
    return name.endswith(LINKED)


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
    mean_rss: Series | None = None
    rss_byte_seconds: Series | None = None
    minor_faults: Series | None = None
    net_cost_ns: float | None = None
    relative_cost: Ratio | None = None  # to the base; the base's own is 1.00
    round_ratios: tuple[tuple[int, float], ...] = ()  # round, relative cost
    relative_peak: Ratio | None = None
    adjusted_p: float = math.nan
    verdict: str = ""  # "base", "less", "more", "same", "too few", "floor", "failed", "unpaired"
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


@dataclass(frozen=True)
class Standing:
    """Who costs least in a cell, and whom that cannot be told apart from."""

    first: str
    level: tuple[str, ...]  # within the noise of the first

    @property
    def is_alone(self) -> bool:
        return not self.level


@dataclass(frozen=True)
class CellDigest:
    name: str
    family: str
    command: str
    base: str
    counts_operations: bool
    floor_cost_ns: float | None
    allocators: tuple[AllocatorDigest, ...]  # in the order of the ledger
    standing: Standing | None  # None: fewer than two can be ranked

    def of(self, name: str) -> AllocatorDigest | None:
        return next((each for each in self.allocators if each.name == name), None)

    @property
    def pairs(self) -> int:
        """The fewest good rounds of a ranked allocator."""
        return min((len(each.rounds) for each in self.allocators if each.is_ranked), default=0)

    @property
    def is_smoke(self) -> bool:
        return self.pairs < statistics.PAIRS_FOR_A_CLAIM


@dataclass(frozen=True)
class Summary:
    """One allocator over several cells. Ratios are to the base, over the cells both have."""

    name: str
    cells: int
    relative_cost: float  # geometric mean
    best: tuple[float, str]  # relative cost, cell
    worst: tuple[float, str]
    relative_peak: float
    net_ratio: float  # geometric mean over `net_cells`, where both nets are above noise
    net_cells: int
    first_alone: int
    first_level: int
    less: int  # cells by verdict
    same: int
    more: int
    failed: int


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

    def series(figure: Callable[[Row], float]) -> Series:
        return statistics.series([figure(row) for row in good])

    cost = series(lambda row: row.cost_ns)
    return replace(
        known, cost=cost, wall=series(lambda row: row.wall_s), cpu=series(lambda row: row.cpu_s),
        peak_rss=series(lambda row: row.peak_rss_bytes),
        mean_rss=series(lambda row: row.mean_rss_bytes),
        rss_byte_seconds=series(lambda row: row.rss_byte_seconds),
        minor_faults=series(lambda row: row.minor_faults),
        net_cost_ns=None if floor_ns is None else cost.median - floor_ns)


def _pairs(ours: Sequence[Row], theirs: Sequence[Row], figure: Callable[[Row], float],
           ) -> list[tuple[int, float, float]]:
    """Round, our figure, theirs: the rounds in which both are good and above 0."""
    of_base = {row.round: figure(row) for row in theirs if row.is_ok}
    return [(row.round, figure(row), of_base[row.round]) for row in ours
            if row.is_ok and figure(row) > 0 and of_base.get(row.round, 0) > 0]


def _ratio(pairs: Sequence[tuple[int, float, float]]) -> Ratio | None:
    if not pairs:
        return None
    return statistics.ratio([own for _, own, _ in pairs], [base for _, _, base in pairs])


def _compared(known: AllocatorDigest, rows: Sequence[Row], base: Sequence[Row],
              ) -> AllocatorDigest:
    pairs = _pairs(rows, base, lambda row: row.cost_ns)
    peaks = _pairs(rows, base, lambda row: row.peak_rss_bytes)
    needed = statistics.runs_to_see([own for _, own, _ in pairs],
                                    [theirs for _, _, theirs in pairs], EFFECT) if pairs else 0
    is_base = known.name == base[0].allocator
    return replace(known, relative_cost=_ratio(pairs), relative_peak=_ratio(peaks),
                   round_ratios=tuple((number, own / theirs) for number, own, theirs in pairs),
                   runs_to_see=0 if is_base else needed)


def _judged(compared: Sequence[AllocatorDigest], base: str) -> list[AllocatorDigest]:
    """Verdicts, with p adjusted for as many questions as the cell asks."""
    asked = [each for each in compared
             if each.name != base and not each.is_floor and each.relative_cost]
    adjusted = statistics.holm([each.relative_cost.p if each.relative_cost else math.nan
                                for each in asked])
    p_of = {each.name: p for each, p in zip(asked, adjusted)}

    def verdict(each: AllocatorDigest) -> str:
        if each.cost is None:
            return "failed"
        if each.name == base or each.is_floor:
            return "base" if each.name == base else FLOOR
        if each.relative_cost is None:
            return "unpaired"
        said = statistics.verdict(each.relative_cost, p_of[each.name])
        # The least p that a signed rank test of so many pairs can have, adjusted as the others.
        least_p = 2.0 ** (1 - each.relative_cost.n) * len(asked)
        return "too few" if said == "same" and least_p >= 1 - statistics.CONFIDENCE else said

    return [replace(each, verdict=verdict(each), adjusted_p=p_of.get(each.name, math.nan))
            for each in compared]


def _standing(judged: Sequence[AllocatorDigest], rows: dict[str, list[Row]]) -> Standing | None:
    """Linked ones stand beside the preloaded, not among them, unless there are only linked."""
    ranked = [each for each in judged if each.is_ranked]
    ranked = [each for each in ranked if not is_linked(each.name)] or ranked
    if len(ranked) < 2:
        return None
    paired = all(each.relative_cost for each in ranked)

    def order(each: AllocatorDigest) -> float:
        if paired and each.relative_cost:
            return each.relative_cost.median
        return each.cost.median if each.cost else math.inf

    first = min(ranked, key=order)
    others = [each for each in ranked if each is not first]
    ratios = [_ratio(_pairs(rows[first.name], rows[each.name], lambda row: row.cost_ns))
              for each in others]
    adjusted = statistics.holm([ratio.p if ratio else math.nan for ratio in ratios])
    level = [each.name for each, ratio, p in zip(others, ratios, adjusted)
             if ratio is None or statistics.verdict(ratio, p) != "less"]
    return Standing(first.name, tuple(level))


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
    judged = _judged(compared, base)
    return CellDigest(rows[0].cell, rows[0].family, rows[0].command, base,
                      any(row.operations for row in rows), floor_ns, tuple(judged),
                      _standing(judged, by_name))


def digest(rows: Iterable[Row], base: str = "") -> list[CellDigest]:
    """One digest per cell, in the order of the ledger."""
    by_cell: dict[str, list[Row]] = {}
    for row in rows:
        by_cell.setdefault(row.cell, []).append(row)
    return [digest_cell(each, base) for each in by_cell.values()]


def _net_ratio(cell: CellDigest, each: AllocatorDigest) -> float | None:
    base = cell.of(cell.base)
    least = LEAST_NET * (cell.floor_cost_ns or 0)
    if base is None or not base.net_cost_ns or not each.net_cost_ns \
            or min(base.net_cost_ns, each.net_cost_ns) <= least:
        return None
    return each.net_cost_ns / base.net_cost_ns


def _summary(name: str, cells: Sequence[CellDigest], base: str) -> Summary:
    found = [(cell, own) for cell in cells if (own := cell.of(name)) is not None]
    clean = [(cell, own) for cell, own in found if cell.base == base and not own.failures]
    costs = [(own.relative_cost.median, cell.name) for cell, own in clean if own.relative_cost]
    peaks = [own.relative_peak.median for _, own in clean if own.relative_peak]
    nets = [net for cell, own in clean if (net := _net_ratio(cell, own)) is not None]
    standings = [cell.standing for cell, _ in found if cell.standing]
    verdicts = [own.verdict for _, own in clean]
    nothing = (math.nan, "")
    return Summary(
        name, len(costs), statistics.geometric_mean([cost for cost, _ in costs]),
        min(costs, default=nothing), max(costs, default=nothing),
        statistics.geometric_mean(peaks), statistics.geometric_mean(nets), len(nets),
        sum(each.is_alone and each.first == name for each in standings),
        sum(not each.is_alone and name in (each.first, *each.level) for each in standings),
        verdicts.count("less"), verdicts.count("same"), verdicts.count("more"),
        sum(bool(own.failures) for _, own in found))


def summarise(cells: Sequence[CellDigest]) -> list[Summary]:
    """Every allocator but the floor and the linked ones, the cheapest first.

    A cell in which an allocator failed, be it once, counts as failed and not for its means."""
    names = dict.fromkeys(each.name for cell in cells for each in cell.allocators)
    base = cells[0].base if cells else ""
    ranked = [name for name in names if name != FLOOR and not is_linked(name)]
    found = [_summary(name, cells, base) for name in ranked]
    return sorted(found, key=lambda each: (math.isnan(each.relative_cost), each.relative_cost))


def _opened(folder: Path, name: str) -> str | None:
    """The text of a file of the folder, plain or compressed; None if it has neither."""
    plain = folder / name.removesuffix(".gz")
    packed = plain.with_name(plain.name + ".gz")
    try:
        if packed.exists():
            return gzip.decompress(packed.read_bytes()).decode()
        if plain.exists():
            return plain.read_text()
    except (OSError, EOFError, ValueError) as error:
        raise LabError(f"{folder}: {name} cannot be read: {error}") from None
    return None


def _curves(folder: Path) -> dict[str, dict[str, Curve]]:
    curves: dict[str, dict[str, Curve]] = {}
    try:
        for line in csv.DictReader((_opened(folder, ledger.CURVES) or "").splitlines()):
            of_cell = curves.setdefault(line["cell"], {})
            of_cell.setdefault(line["allocator"], []).append(
                (float(line["seconds"]), int(line["rss_bytes"])))
    except (KeyError, ValueError, TypeError) as error:
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
    return Run(folder.resolve().name, tuple(rows), environment, cells,
               _curves(folder))
