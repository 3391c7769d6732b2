"""Digests of cells summed up, group by group: every allocator over many cells, and where HAKMEM
stands in them. Never over several groups: a mean over programs and over loops that do nothing but
allocate says nothing of either."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from hakmem_lab.judge import statistics
from hakmem_lab.judge.digest import BASES, CellDigest, Place, Position, is_linked
from hakmem_lab.judge.statistics import Mean, Verdict

SUMMED = ("time", "wall", "peak", "area")


@dataclass(frozen=True)
class Summary:
    """One allocator over the cells of a group. Ratios are to the base, over cells both have."""

    name: str
    cells: int
    means: dict[str, Mean]  # by SUMMED
    rank: int  # by the mean time; 0: the rounds are too few to rank
    ahead: int  # cells in which it needs less time than the base, significantly
    behind: int
    lighter: int  # cells in which its peak memory is below the base's, significantly
    heavier: int
    failed: int


@dataclass(frozen=True)
class Tally:
    """The positions of one allocator over several cells, by one figure."""

    name: str
    cells: int  # that have a position
    first: int
    behind: int
    within: int
    unclear: int
    lossless: int  # in which a loss above EQUIVALENCE to the best other can be excluded
    smallest_seen: float  # median of the smallest differences from the best other that could be
    failed: int
    too_few: int  # cells with rivals, but not with rounds enough to rank them


def _summary(name: str, cells: Sequence[CellDigest], base: str) -> Summary:
    found = [own for cell in cells if cell.base == base and (own := cell.of(name)) is not None]
    clean = [own for own in found if not own.failures]
    means = {figure: statistics.geometric_mean(
        [ratio.median for own in clean if (ratio := own.ratio(figure))]) for figure in SUMMED}
    times, peaks = ([own.verdict(figure) for own in clean] for figure in ("time", "peak"))
    return Summary(name, len(clean), means, 0, times.count(Verdict.LESS), times.count(Verdict.MORE),
                   peaks.count(Verdict.LESS), peaks.count(Verdict.MORE), len(found) - len(clean))


def may_rank(cells: Sequence[CellDigest]) -> bool:
    """Whether each of these cells has rounds enough to see a difference from each rival."""
    return bool(cells) and all(
        cell.pairs >= statistics.least_pairs(len(cell.contestants) - 1) for cell in cells)


def summarise(cells: Sequence[CellDigest]) -> list[Summary]:
    """Every allocator but the linked ones, by mean time; ranked if they may be.

    A cell in which an allocator failed, be it once, counts as failed and not for its means."""
    names = dict.fromkeys(each.name for cell in cells for each in cell.allocators)
    base = cells[0].base if cells else ""
    found = [_summary(name, cells, base) for name in names if not is_linked(name)]
    if not may_rank(cells):
        return found
    found.sort(key=lambda each: (math.isnan(each.means["time"].value), each.means["time"].value))
    return [Summary(**{**vars(each), "rank": 0 if math.isnan(each.means["time"].value) else place})
            for place, each in enumerate(found, 1)]


def tally(cells: Sequence[CellDigest], figure: str = "time") -> Tally:
    """In how many cells HAKMEM, or else the base, stands where."""
    names = [each.name for cell in cells for each in cell.allocators]
    name = BASES[0] if BASES[0] in names else cells[0].base if cells else ""
    found = [at for cell in cells if (at := cell.positions.get(figure)) and at.name == name]
    placed = [at for at in found if at.place]
    seen = [at.smallest_seen for at in placed if not math.isnan(at.smallest_seen)]

    def count(place: Place) -> int:
        return sum(at.place is place for at in placed)

    return Tally(
        name, len(placed), count(Place.FIRST), count(Place.BEHIND), count(Place.WITHIN),
        count(Place.UNCLEAR), sum(at.excludes_loss for at in placed),
        median(seen) if seen else math.nan,
        sum(bool(own.failures) for cell in cells if (own := cell.of(name))),
        sum(len(cell.contestants) > 1 and name in [each.name for each in cell.contestants]
            and not ((at := cell.positions.get(figure)) and at.place) for cell in cells))


def beside(cells: Sequence[CellDigest], name: str, other: str, figure: str) -> Mean:
    """The mean ratio of one allocator's figure to another's, over the cells that both have."""
    pairs = [(ours, theirs) for cell in cells
             if (one := cell.of(name)) and (two := cell.of(other))
             and not one.failures and not two.failures
             and (ours := one.ratio(figure)) and (theirs := two.ratio(figure))]
    return statistics.geometric_mean([ours.median / theirs.median for ours, theirs in pairs])


def regrets(cells: Sequence[CellDigest], names: Sequence[str], price_ms: int,
            ) -> dict[str, list[float]]:
    """By which share each of these allocators costs more than the cheapest of them, cell by cell:
    medians of CPU time, and so many milliseconds for each GiB held for a second. Infinite where it
    failed, be it once, or ended too soon to hold memory for a time."""
    found: dict[str, list[float]] = {name: [] for name in names}
    for cell in cells:
        costs = {own.name: (own.median("cpu") or 0) / 1e9 + price_ms / 1e3 * held / 2**30
                 for own in cell.allocators
                 if own.name in found and not own.failures and (held := own.median("area"))}
        for name in found if costs else ():
            found[name].append(costs.get(name, math.inf) / min(costs.values()) - 1)
    return found
