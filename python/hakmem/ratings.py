"""Ratings in the manner of Elo (The Rating of Chessplayers, Past and Present, 1978): who often
takes less than others that take little is rated high. Pure functions of the results."""

import itertools
from collections.abc import Hashable, Mapping
from typing import TypeVar

Player = TypeVar("Player", bound=Hashable)

START = 1500.0
POINTS = 400.0  # the better one is expected to win ten times as often
STAKE = 32.0  # what a match can bring at most
MARGIN = 0.01  # costs that differ by less are a draw


def expected(rating: float, opponent: float) -> float:
    """The share of wins: between 0 and 1."""
    return 1 / (1 + 10 ** ((opponent - rating) / POINTS))


def result(cost: float, opponent: float) -> float:
    """1 for the one that takes less, 0 for the other, a half for a draw."""
    if abs(cost - opponent) <= MARGIN * max(cost, opponent):
        return 0.5
    return 1.0 if cost < opponent else 0.0


def after_round(ratings: Mapping[Player, float], costs: Mapping[Player, float]
                ) -> dict[Player, float]:
    """All who took part have played each other once. What a round can bring does not grow with
    their number, and the sum of the ratings stays."""
    changed = dict(ratings)
    stake = STAKE / max(len(costs) - 1, 1)
    for one, other in itertools.combinations(costs, 2):
        gain = stake * (result(costs[one], costs[other]) - expected(ratings[one], ratings[other]))
        changed[one] += gain
        changed[other] -= gain
    return changed
