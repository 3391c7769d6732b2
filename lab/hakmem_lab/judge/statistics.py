"""What series of figures say: each alone, and two of them round by round. Pure functions.

Ratios are medians of pairs: the machine's mood is the same for both runs of a round and cancels.
Their interval is the distribution-free one of the median (order statistics, exact), so it holds
without any assumption on how noise is distributed. Sources: W. J. Conover, Practical Nonparametric
Statistics, 3.2 and 5.7; Holm 1979 for many comparisons at once. Over cells: the geometric mean
(Fleming and Wallace 1986), with Student's t on the logarithms (Georges, Buytaert and Eeckhout
2007): cells are a sample of programs, so the interval grows with how much they disagree.
"""

import enum
import functools
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


class Verdict(enum.Enum):
    """What may be said of an allocator's figure beside the base's; its value is shown."""

    BASE = "base"
    LESS = "less"  # significantly
    MORE = "more"
    LEVEL = "level"  # the whole interval lies within EQUIVALENCE of 1
    SAME = "no difference found"  # there may be one, smaller than what could have been seen
    TOO_FEW = "too few rounds"  # to find any difference between so many
    UNPAIRED = "no round in common"
    FAILED = "failed"


@dataclass(frozen=True)
class Mean:
    """A geometric mean of ratios over cells; the interval is NaN below two cells."""

    value: float
    low: float = math.nan
    high: float = math.nan


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


def series(values: Sequence[float]) -> Series:
    """Describes at least one value."""
    data = numpy.asarray(values, float)
    n = len(data)
    mean, deviation = float(data.mean()), float(data.std(ddof=1)) if n > 1 else 0.0
    outliers = [place for place, value in enumerate(data)
                if deviation and abs(value - mean) > OUTLIER_DEVIATIONS * deviation]
    return Series(n, mean, float(numpy.median(data)), deviation,
                  deviation / mean if mean else math.nan, float(data.min()), float(data.max()),
                  tuple(outliers))


@functools.cache
def student(n: int) -> float:
    """How many standard errors the interval of a mean of n values reaches to each side."""
    return float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1))


@functools.cache
def _place(n: int) -> int:
    """The order statistic, counted from both ends, that bounds the median of n with 95 %."""
    return int(stats.binom.ppf((1 - CONFIDENCE) / 2, n, 0.5))


def ratio(figures: Sequence[float], base: Sequence[float]) -> Ratio:
    """Compares figures[i] / base[i]; both hold the same rounds in the same order, all above 0."""
    ratios = numpy.asarray(figures, float) / numpy.asarray(base, float)
    n, low, high, p = len(ratios), math.nan, math.nan, math.nan
    if n >= FEWEST_FOR_A_VERDICT:
        low, high = _interval_of_median(numpy.sort(ratios))
        p = signed_rank(numpy.log(ratios))
    return Ratio(n, float(numpy.median(ratios)), float(ratios.min()), float(ratios.max()),
                 low, high, p)


Values = numpy.ndarray[tuple[int], numpy.dtype[numpy.float64]]


def signed_rank(logs: Values) -> float:
    """Wilcoxon's exact p, as scipy's, which takes a hundred times as long for one small sample."""
    moved = logs[logs != 0]
    sizes = numpy.sort(abs(moved))
    ranks = (numpy.searchsorted(sizes, abs(moved), "left")
             + numpy.searchsorted(sizes, abs(moved), "right") + 1) / 2
    least = min(ranks[moved < 0].sum(), ranks[moved > 0].sum())
    return min(1.0, 2 * float(_rank_sums(len(moved))[:math.ceil(least) + 1].sum()))


@functools.cache
def _rank_sums(n: int) -> Values:
    """How probable each sum of the ranks of one sign is, if both signs are alike."""
    known = numpy.ones(1)
    for rank in range(1, n + 1):
        known = numpy.convolve(known, [0.5, *[0.0] * (rank - 1), 0.5])
    return known


def _interval_of_median(ordered: Values) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median with 95 %."""
    place = _place(len(ordered))
    return float(ordered[place - 1]), float(ordered[-place])


def holm(p_values: Sequence[float]) -> list[float]:
    """The same p values, adjusted for having asked so many questions. NaN stays NaN."""
    known = sorted((p, place) for place, p in enumerate(p_values) if not math.isnan(p))
    adjusted = [math.nan] * len(p_values)
    highest = 0.0
    for rank, (p, place) in enumerate(known):
        highest = max(highest, min(1.0, p * (len(known) - rank)))
        adjusted[place] = highest
    return adjusted


def side(compared: Ratio) -> Verdict:
    """What the interval alone says."""
    if math.isnan(compared.low):
        return Verdict.TOO_FEW
    if compared.low <= 1 <= compared.high:
        return Verdict.SAME
    return Verdict.LESS if compared.median < 1 else Verdict.MORE


def verdict(compared: Ratio, p: float | None = None) -> Verdict:
    """As `side`, with SAME also where Wilcoxon's test sees nothing; `p` is the adjusted one."""
    seen = side(compared)
    if seen in (Verdict.LESS, Verdict.MORE) \
            and (compared.p if p is None else p) >= 1 - CONFIDENCE:
        return Verdict.SAME
    return seen


def is_within(compared: Ratio, margin: float) -> bool:
    """Equivalence: the whole interval lies between 1 / (1 + margin) and 1 + margin."""
    return compared.low >= 1 / (1 + margin) and compared.high <= 1 + margin


def least_pairs(comparisons: int) -> int:
    """The fewest pairs with which a signed rank test, adjusted for so many comparisons, can see
    anything: all pairs on one side have p = 2 / 2^n."""
    alpha = (1 - CONFIDENCE) / max(1, comparisons)
    return max(FEWEST_FOR_A_VERDICT, math.floor(math.log2(2 / alpha)) + 1)


def runs_to_see(figures: Sequence[float], base: Sequence[float], effect: float = 0.02,
                comparisons: int = 1) -> int:
    """How many pairs it takes to see a difference of `effect` four times in five, if it is one
    of so many comparisons. 0 below FEWEST_FOR_A_VERDICT pairs: not known."""
    reach = _reach(figures, base, comparisons)
    if math.isnan(reach):
        return 0
    return max(least_pairs(comparisons), math.ceil((reach / math.log1p(effect)) ** 2))


def smallest_seen(figures: Sequence[float], base: Sequence[float], comparisons: int = 1) -> float:
    """The smallest difference, as 0.02, that so many pairs show four times in five. NaN where
    they are too few to show any."""
    if len(figures) < least_pairs(comparisons):
        return math.nan
    return math.expm1(_reach(figures, base, comparisons) / math.sqrt(len(figures)))


def _reach(figures: Sequence[float], base: Sequence[float], comparisons: int) -> float:
    """The log ratio that a single pair would show; n pairs show one as small as that over the
    root of n.

    From the spread of the log ratios, which one wild pair must not rule: hence the median
    absolute deviation. A verdict needs both the interval of the median, which takes pi / 2 times
    the pairs that one of a mean would, and the signed rank test at the level that Holm leaves it
    at first, which takes pi / 3 times as many (their asymptotic efficiencies)."""
    logs = numpy.log(numpy.asarray(figures, float) / numpy.asarray(base, float))
    if len(logs) < FEWEST_FOR_A_VERDICT:
        return math.nan
    spread = float(numpy.median(abs(logs - numpy.median(logs)))) / _normal(0.25)
    by_interval = math.pi / 2 * (_normal((1 - CONFIDENCE) / 2) + _normal(1 - POWER)) ** 2
    by_test = math.pi / 3 * (_normal((1 - CONFIDENCE) / 2 / max(1, comparisons))
                             + _normal(1 - POWER)) ** 2
    return spread * math.sqrt(max(by_interval, by_test))


@functools.cache
def _normal(tail: float) -> float:
    """Above which a standard normal variable lies with this probability."""
    return float(stats.norm.isf(tail))


def geometric_mean(values: Sequence[float]) -> Mean:
    """Of ratios, one for each cell, with its 95 % interval."""
    if not values:
        return Mean(math.nan)
    logs = numpy.log(numpy.asarray(values, float))
    middle, n = float(logs.mean()), len(logs)
    if n < 2:
        return Mean(math.exp(middle))
    reach = student(n) * float(logs.std(ddof=1)) / math.sqrt(n)
    return Mean(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
