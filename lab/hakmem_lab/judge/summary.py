"""Digests of cells summed up: every allocator over many cells, and where HAKMEM stands in them."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from hakmem_lab.judge import statistics
from hakmem_lab.judge.digest import BASES, FLOOR, CellDigest, is_linked


@dataclass(frozen=True)
class Summary:
    """One allocator over several cells. Ratios are to the base, over the cells both have."""

    name: str
    cells: int
    relative_cost: float  # geometric mean
    best: tuple[float, str]  # relative cost, cell
    worst: tuple[float, str]
    relative_peak: float
    ranked: int  # cells in which it could be ranked
    lowest: int  # of these, those in which its median is the lowest
    first: int  # of these, those in which it costs less than every other for real
    less: int  # cells by verdict
    level: int
    same: int  # not told apart
    more: int
    failed: int


@dataclass(frozen=True)
class Tally:
    """The positions of one allocator over several cells: first + behind + within + unclear are
    all that could be ranked."""

    name: str
    cells: int
    lowest: int
    first: int
    behind: int
    within: int
    unclear: int
    failed: int
    too_few: int  # cells with rivals, but not with rounds enough to rank them


def _summary(name: str, cells: Sequence[CellDigest], base: str) -> Summary:
    found = [(cell, own) for cell in cells if (own := cell.of(name)) is not None]
    clean = [(cell, own) for cell, own in found if cell.base == base and not own.failures]
    costs = [(own.relative_cost.median, cell.name) for cell, own in clean if own.relative_cost]
    peaks = [own.relative_peak.median for _, own in clean if own.relative_peak]
    standings = [cell.standing for cell, own in found if cell.standing and own.is_ranked]
    verdicts = [own.verdict for _, own in clean]
    nothing = (math.nan, "")
    return Summary(
        name, len(costs), statistics.geometric_mean([cost for cost, _ in costs]),
        min(costs, default=nothing), max(costs, default=nothing),
        statistics.geometric_mean(peaks), len(standings),
        sum(each.first == name for each in standings),
        sum(each.first == name and each.is_real for each in standings),
        verdicts.count("less"), verdicts.count("level"), verdicts.count("same"),
        verdicts.count("more"),
        sum(bool(own.failures) for _, own in found))


def may_rank(cells: Sequence[CellDigest]) -> bool:
    """Whether means over these cells have rounds enough in each of them."""
    return min((cell.pairs for cell in cells), default=0) >= statistics.FEWEST_FOR_A_VERDICT


def summarise(cells: Sequence[CellDigest]) -> list[Summary]:
    """Every allocator but the floor and the linked ones, the cheapest first if they may be ranked.

    A cell in which an allocator failed, be it once, counts as failed and not for its means."""
    names = dict.fromkeys(each.name for cell in cells for each in cell.allocators)
    base = cells[0].base if cells else ""
    ranked = [name for name in names if name != FLOOR and not is_linked(name)]
    found = [_summary(name, cells, base) for name in ranked]
    if not may_rank(cells):
        return found
    return sorted(found, key=lambda each: (math.isnan(each.relative_cost), each.relative_cost))


def tally(cells: Sequence[CellDigest]) -> Tally:
    """In how many cells HAKMEM, or else the base, stands where."""
    names = [each.name for cell in cells for each in cell.allocators]
    name = BASES[0] if BASES[0] in names else cells[0].base if cells else ""
    kinds = [cell.position.kind for cell in cells
             if cell.position and cell.position.name == name]
    own = [found for cell in cells if (found := cell.of(name)) is not None]
    lowest = [cell for cell in cells if cell.standing and cell.standing.first == name]
    unranked = [cell for cell in cells if not cell.standing and not cell.position
                and len(cell.contestants) > 1]
    return Tally(name, len(kinds), len(lowest), kinds.count("first"), kinds.count("behind"),
                 kinds.count("within"), kinds.count("unclear"),
                 sum(bool(each.failures) for each in own), len(unranked))
