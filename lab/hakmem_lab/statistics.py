"""What series of figures say: each alone, and two of them round by round. Pure functions.

Ratios are medians of pairs: the machine's mood is the same for both runs of a round and cancels.
Their interval is the distribution-free one of the median (order statistics, exact), so it holds
without any assumption on how noise is distributed. Sources: W. J. Conover, Practical Nonparametric
Statistics, 3.2 and 5.7; Holm 1979 for many comparisons at once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy
from scipy import stats

CONFIDENCE = 0.95
OUTLIER_DEVIATIONS = 2.0
FEWEST_FOR_A_VERDICT = 6  # below, no 95 % interval of a median exists
PAIRS_FOR_A_CLAIM = 10
POWER = 0.8


@dataclass(frozen=True)
class Series:
    """One figure measured again and again."""

    n: int
    mean: float
    median: float
    deviation: float  # standard, of the sample
    variation: float  # coefficient of variation: deviation / mean
    least: float
    most: float
    low: float  # 95 % confidence interval of the mean, by Student's t
    high: float
    outliers: tuple[int, ...]  # places of values beyond two deviations; marked, never dropped


@dataclass(frozen=True)
class Ratio:
    """An allocator's figure divided by the base's, pair by pair."""

    n: int
    median: float
    least: float
    most: float
    low: float  # 95 % interval of the median; NaN below FEWEST_FOR_A_VERDICT pairs
    high: float
    p: float  # Wilcoxon's signed rank test of log ratio = 0; NaN likewise

    @property
    def is_claim(self) -> bool:
        return self.n >= PAIRS_FOR_A_CLAIM


def series(values: Sequence[float]) -> Series:
    """Describes at least one value. With one, the interval is NaN."""
    data = numpy.asarray(values, float)
    n = len(data)
    mean, deviation = float(data.mean()), float(data.std(ddof=1)) if n > 1 else 0.0
    low = high = math.nan
    if n > 1:
        reach = float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1)) * deviation / math.sqrt(n)
        low, high = mean - reach, mean + reach
    outliers = [place for place, value in enumerate(data)
                if deviation and abs(value - mean) > OUTLIER_DEVIATIONS * deviation]
    return Series(n, mean, float(numpy.median(data)), deviation,
                  deviation / mean if mean else math.nan, float(data.min()), float(data.max()),
                  low, high, tuple(outliers))


def ratio(figures: Sequence[float], base: Sequence[float]) -> Ratio:
    """Compares figures[i] / base[i]; both hold the same rounds in the same order, all above 0."""
    ratios = numpy.asarray(figures, float) / numpy.asarray(base, float)
    n, low, high, p = len(ratios), math.nan, math.nan, math.nan
    if n >= FEWEST_FOR_A_VERDICT:
        low, high = _interval_of_median(numpy.sort(ratios))
        logs = numpy.log(ratios)
        moved = logs[logs != 0]
        p = float(stats.wilcoxon(moved, method="exact").pvalue) if len(moved) else 1.0
    return Ratio(n, float(numpy.median(ratios)), float(ratios.min()), float(ratios.max()),
                 low, high, p)


def _interval_of_median(ordered: "numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]",
                        ) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median with 95 %."""
    n = len(ordered)
    place = int(stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))
    while place > 0 and stats.binom.cdf(place - 1, n, 0.5) > (1 - CONFIDENCE) / 2:
        place -= 1
    place = max(place, 1)
    return float(ordered[place - 1]), float(ordered[n - place])


def holm(p_values: Sequence[float]) -> list[float]:
    """The same p values, adjusted for having asked so many questions. NaN stays NaN."""
    known = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def verdict(compared: Ratio, p: float | None = None) -> str:
    """"less", "more", "same" (no difference seen) or "too few"; `p` is the adjusted one."""
    if math.isnan(compared.low):
        return "too few"
    if (compared.p if p is None else p) >= 1 - CONFIDENCE or compared.low <= 1 <= compared.high:
        return "same"
    return "less" if compared.median < 1 else "more"


def runs_to_see(figures: Sequence[float], base: Sequence[float], effect: float = 0.02) -> int:
    """How many pairs it takes to see a difference of `effect` four times in five.

    From the spread of the log ratios, which one wild pair must not rule: hence the median
    absolute deviation. The interval of a median needs pi / 2 times the pairs that one of a mean
    would (its asymptotic efficiency). 0 with fewer than three pairs: not known."""
    logs = numpy.log(numpy.asarray(figures, float) / numpy.asarray(base, float))
    if len(logs) < 3:
        return 0
    spread = float(stats.median_abs_deviation(logs, scale="normal"))
    both = float(stats.norm.ppf((1 + CONFIDENCE) / 2) + stats.norm.ppf(POWER))
    return max(FEWEST_FOR_A_VERDICT,
               math.ceil(math.pi / 2 * (both * spread / math.log1p(effect)) ** 2))


def geometric_mean(values: Sequence[float]) -> float:
    return float(stats.gmean(values)) if len(values) else math.nan
