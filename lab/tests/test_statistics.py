"""statistics.py: against figures worked out by hand and those of SciPy, and how often an interval
holds. Likewise what the installed command computes without SciPy."""

import math

import numpy
import pytest
from hakmem import runs, uses
from hakmem_lab.judge import statistics
from hakmem_lab.judge.statistics import Verdict
from scipy import stats


def test_a_series_is_described() -> None:
    told = statistics.series([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])
    assert (told.n, told.mean, told.median, told.least, told.most) == (8, 5.0, 4.5, 2.0, 9.0)
    assert told.deviation == pytest.approx(math.sqrt(32 / 7))
    assert told.variation == pytest.approx(told.deviation / 5)


def test_an_outlier_is_marked_and_counted() -> None:
    told = statistics.series([10.0] * 9 + [20.0])
    assert told.outliers == (9,)
    assert told.n == 10 and told.mean == 11.0


def test_one_value_has_no_spread() -> None:
    told = statistics.series([3.0])
    assert told.median == 3.0 and told.deviation == 0 and told.outliers == ()


def test_a_ratio_is_the_median_of_pairs_not_the_pair_of_medians() -> None:
    """The machine was twice as slow in the later rounds: the pairs do not see it."""
    base = [1.0, 1.0, 1.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 2.0]
    told = statistics.ratio([1.1 * value for value in base], base)
    assert told.median == pytest.approx(1.1) and told.low == pytest.approx(1.1)
    assert statistics.verdict(told) == Verdict.MORE


def test_ten_pairs_have_the_interval_of_the_second_and_the_ninth() -> None:
    ratios = [1.0 + place / 100 for place in range(10)]
    told = statistics.ratio(ratios, [1.0] * 10)
    assert (told.low, told.high) == (1.01, 1.08)


def test_five_pairs_are_too_few_for_any_verdict() -> None:
    told = statistics.ratio([2.0] * 5, [1.0] * 5)
    assert math.isnan(told.low) and statistics.verdict(told) == Verdict.TOO_FEW


def test_six_pairs_have_the_interval_of_all() -> None:
    told = statistics.ratio([1.1, 1.2, 1.3, 1.4, 1.5, 1.6], [1.0] * 6)
    assert (told.low, told.high) == (1.1, 1.6) and statistics.side(told) == Verdict.MORE


def test_an_interval_alone_takes_sides_where_the_adjusted_test_does_not() -> None:
    told = statistics.ratio([1.1] * 6, [1.0] * 6)
    assert statistics.side(told) == Verdict.MORE and statistics.verdict(told, 0.2) == Verdict.SAME


def test_equivalence_needs_the_whole_interval() -> None:
    within = statistics.ratio([0.98, 0.99, 1.0, 1.01, 1.02, 1.02], [1.0] * 6)
    wider = statistics.ratio([0.98, 0.99, 1.0, 1.01, 1.02, 1.04], [1.0] * 6)
    few = statistics.ratio([1.0] * 5, [1.0] * 5)
    assert [statistics.is_within(each, 0.03) for each in (within, wider, few)] \
        == [True, False, False]


def test_equal_figures_are_no_difference() -> None:
    assert statistics.verdict(statistics.ratio([1.0] * 10, [1.0] * 10)) == Verdict.SAME


@pytest.mark.parametrize("count", [6, 10, 17, 30])
def test_the_interval_holds_the_median_as_often_as_it_says(count: int) -> None:
    draw = numpy.random.default_rng(7)
    held = 0
    for _ in range(1000):
        told = statistics.ratio(numpy.exp(draw.standard_cauchy(count) / 50).tolist(),
                                [1.0] * count)
        held += told.low <= 1 <= told.high
    assert held / 1000 >= 0.94


def test_noise_alone_is_seldom_called_a_difference() -> None:
    draw = numpy.random.default_rng(8)
    called = 0
    for _ in range(400):
        compared = [statistics.ratio(numpy.exp(draw.normal(0, 0.05, 10)).tolist(), [1.0] * 10)
                    for _ in range(8)]
        adjusted = statistics.holm([each.p for each in compared])
        called += any(statistics.verdict(each, p) != Verdict.SAME
                      for each, p in zip(compared, adjusted))
    assert called / 400 <= 0.06


def test_holm_multiplies_the_smallest_most_and_never_falls() -> None:
    assert statistics.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert math.isnan(statistics.holm([0.5, math.nan])[1])


def test_the_power_hint_grows_with_the_square_of_the_spread() -> None:
    draw = numpy.random.default_rng(9)
    logs = draw.normal(0, 0.02, 200)
    narrow = statistics.runs_to_see(numpy.exp(logs).tolist(), [1.0] * 200)
    wide = statistics.runs_to_see(numpy.exp(2 * logs).tolist(), [1.0] * 200)
    assert wide == pytest.approx(4 * narrow, rel=0.15)
    assert narrow == pytest.approx(math.pi / 2 * (2.80 * 0.02 / math.log(1.02)) ** 2, rel=0.4)


def test_the_power_hint_grows_with_what_is_compared_and_needs_six_pairs() -> None:
    ratios = numpy.exp(numpy.random.default_rng(11).normal(0, 0.02, 50)).tolist()
    needed = [statistics.runs_to_see(ratios, [1.0] * 50, comparisons=count)
              for count in (1, 10, 100)]
    assert needed == sorted(needed) and needed[0] < needed[2]
    assert statistics.runs_to_see(ratios[:5], [1.0] * 5) == 0
    assert [statistics.least_pairs(count) for count in (1, 10, 25)] == [6, 9, 10]
    steady = statistics.runs_to_see([1.0] * 10, [1.0] * 10, comparisons=10)
    assert steady == statistics.least_pairs(10)


def test_the_power_hint_is_true() -> None:
    """With as many pairs as it says, a difference of 2 % is seen about four times in five."""
    draw = numpy.random.default_rng(10)
    needed = statistics.runs_to_see(numpy.exp(draw.normal(0, 0.03, 500)).tolist(), [1.0] * 500)
    seen = sum(statistics.verdict(statistics.ratio(
        numpy.exp(draw.normal(math.log(1.02), 0.03, needed)).tolist(), [1.0] * needed,
    )) == Verdict.MORE
        for _ in range(300))
    assert 0.6 <= seen / 300 <= 0.95


@pytest.mark.parametrize("n", [6, 7, 10, 13, 25])
def test_the_signed_rank_test_is_that_of_scipy(n: int) -> None:
    draw = numpy.random.default_rng(n)
    for _ in range(50):
        logs = draw.normal(0.3, 1, n)
        wanted = stats.wilcoxon(logs, method="exact").pvalue
        assert statistics.signed_rank(logs) == pytest.approx(wanted)


@pytest.mark.parametrize("n", [6, 7, 10, 13])
def test_the_signed_rank_test_rounds_half_a_rank_up(n: int) -> None:
    """Where values are tied. (Versions of scipy differ there: so all signs are tried.)"""
    draw = numpy.random.default_rng(n)
    for _ in range(50):
        tied = draw.normal(0.3, 1, n).round(1)
        tied = tied[tied != 0]
        ranks = stats.rankdata(abs(tied))
        least = math.ceil(min(ranks[tied < 0].sum(), ranks[tied > 0].sum()))
        signs = numpy.arange(2**len(tied))[:, None] >> numpy.arange(len(tied)) & 1
        sums = signs @ numpy.arange(1, len(tied) + 1)
        wanted = min(1.0, 2 * float((sums <= least).mean()))
        assert statistics.signed_rank(tied) == pytest.approx(wanted)


@pytest.mark.parametrize("n", range(6, 60))
def test_the_interval_of_a_median_is_the_narrowest_that_scipy_allows(n: int) -> None:
    ratios = [1 + place / 100 for place in range(n)]
    told, command = statistics.ratio(ratios, [1.0] * n), runs.ratio_of(ratios, [1.0] * n)
    left_out = ratios.index(told.low)
    assert ratios.index(told.high) == n - 1 - left_out
    assert 2 * stats.binom.cdf(left_out, n, 0.5) <= 0.05 < 2 * stats.binom.cdf(left_out + 1, n, 0.5)
    assert (command.low, command.high, command.is_exact) == (told.low, told.high, True)
    assert runs.ratio_of(ratios[:5], [1.0] * 5).is_exact is False


def test_the_bounds_of_the_command_are_those_of_student() -> None:
    """Both sides at 1 %; longer series take the last bound, which is a little too wide."""
    degrees = range(runs.LEAST_PAIRS - 1, runs.LEAST_PAIRS - 1 + len(runs.T_POINTS))
    assert runs.T_POINTS == pytest.approx(stats.t.isf(0.005, degrees), abs=0.0005)


def test_the_command_settles_what_the_test_of_scipy_settles() -> None:
    draw = numpy.random.default_rng(13)
    seen = set()
    for n in range(3, 14):
        for shift in (-0.1, 0, 0.05):
            logs = draw.normal(shift, 0.05, n)
            tested = stats.ttest_1samp(logs, 0)
            wanted = int(numpy.sign(tested.statistic)) if tested.pvalue < 0.01 else 0
            assert runs.sign_of(numpy.exp(logs).tolist()) == wanted
            seen.add(wanted)
    assert seen == {-1, 0, 1}


def test_what_the_command_takes_for_chance_is_the_binomial_test_of_scipy() -> None:
    unit, of_all, seen = 512, uses.Use(allocated=1000, kept=70), set()
    for count in (1, 4, 10, 60):
        for kept in range(count + 1):
            use = uses.Use(allocated=unit * count, kept=unit * kept)
            told = uses.is_chance(use, of_all, unit)
            assert told == (stats.binom.sf(kept - 1, count, 0.07) > uses.CHANCE)
            seen.add(told)
    assert seen == {False, True}


def test_what_could_have_been_seen_is_the_power_hint_turned_round() -> None:
    ratios = numpy.exp(numpy.random.default_rng(12).normal(0, 0.03, 60)).tolist()
    for effect in (0.01, 0.02, 0.05):
        needed = statistics.runs_to_see(ratios, [1.0] * 60, effect, 5)
        seen = statistics.smallest_seen(ratios, [1.0] * 60, 5)
        assert (needed <= 60) == (seen <= effect)
    assert math.isnan(statistics.smallest_seen(ratios[:6], [1.0] * 6, 5))


def test_a_mean_over_cells_has_the_interval_of_its_logarithms() -> None:
    told = statistics.geometric_mean([0.5, 1.0, 2.0])
    reach = 4.302653 * math.log(2) / math.sqrt(3)  # Student's t, 2 degrees, 97.5 %
    assert told.value == pytest.approx(1.0)
    assert told.low == pytest.approx(math.exp(-reach))
    assert told.high == pytest.approx(math.exp(reach))
    assert math.isnan(statistics.geometric_mean([1.5]).low)
    assert math.isnan(statistics.geometric_mean([]).value)
