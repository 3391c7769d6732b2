"""The plan of a campaign: in what order, in which surroundings, and when a cell has rounds enough.

Everything is drawn from one seed, the name of the cell and the number of the round, so a campaign
that is resumed or repeated with its seed draws the same. Nothing here measures.
"""

import math
import random
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from hakmem_lab.judge import digest, statistics
from hakmem_lab.measure.ledger import Row, by_distance
from hakmem_lab.measure.subject import NEVER, Cell

Item = TypeVar("Item")
LONG_ROUNDS = statistics.FEWEST_FOR_A_VERDICT  # of a cell that runs for many seconds
PADDING, MOST_PADDING = "LAB_PADDING", 4000  # a variable of the environment, and its bytes


@dataclass(frozen=True)
class Draw:
    """The surroundings of a round of a cell, the same for all allocators."""

    layout: int = 0  # which link of the benchmark program
    padding: int = 0  # bytes in the environment: they move the stack
    regime: str = ""  # of huge pages; not drawn

    def settings(self) -> dict[str, str]:
        return {PADDING: "x" * self.padding} | (
            {"LAUNCH_THP": NEVER} if self.regime == NEVER else {})


@dataclass(frozen=True)
class Plan:
    """When to stop, and in which surroundings to measure.

    A cell has the rounds that were asked for. If `most` is above that it goes on until it could
    have seen a difference of `see`, has `most` rounds, or the time is over. How much its ratios
    scatter decides, never which allocator leads."""

    most: int = 0
    see: float = 0.02
    budget_s: float = math.inf  # of one sitting: a campaign that is resumed has it again
    regime: str = ""  # of huge pages; "": as the machine has it
    seed: int = field(default_factory=lambda: secrets.randbelow(1 << 32))
    refuses_busy: bool = False

    def goes_on(self, cell: Cell, rows: Sequence[Row], asked: int, base: str) -> bool:
        """Does a cell with these rows take another round?"""
        asked = min(asked, LONG_ROUNDS) if cell.is_long else asked
        count = 1 + max((row.round for row in rows), default=-1)
        if count < asked or cell.is_long:
            return count < asked
        return count < self.most and smallest_seen(rows, base) > self.see


def in_turn(items: Sequence[Item], number: int, *where: object) -> list[Item]:
    """The items in the order of a round. An order is drawn for two rounds; the second takes it
    backwards, so that a machine that drifts favours nobody."""
    order = list(items)
    _random("order", *where, number // 2).shuffle(order)
    return order[::-1] if number % 2 else order


def drawn(layouts: Sequence[int], regime: str, seed: int, *where: object) -> Draw:
    """One of the layouts, and padding."""
    draw = _random(seed, "layout", *where)
    return Draw(draw.choice(layouts), draw.randrange(MOST_PADDING + 1), regime)


def _random(*where: object) -> random.Random:
    return random.Random("/".join(map(str, where)))


def smallest_seen(rows: Sequence[Row], wanted_base: str) -> float:
    """The smallest difference in time that these rounds of a cell would have shown between the
    base and whichever allocator scatters most; infinite if they are too few."""
    rows = max(by_distance(rows).values(), key=len, default=[])
    figures: dict[str, dict[int, float]] = {}
    failed = {row.allocator for row in rows if not row.is_ok}
    for row in rows:
        if row.allocator not in failed and (time := digest.FIGURES["time"](row)) > 0:
            figures.setdefault(row.allocator, {})[row.round] = time
    of_base = figures.pop(digest.choose_base(figures, wanted_base)) if figures else {}
    seen = [0.0]
    for own in figures.values():
        shared = sorted(own.keys() & of_base.keys())
        found = statistics.smallest_seen([own[number] for number in shared],
                                         [of_base[number] for number in shared], len(figures))
        seen.append(math.inf if math.isnan(found) else found)
    return max(seen)
