"""`hakmem tune`: ratings, the search on made-up programs, ratios of pairs, and a program that keeps
memory which another setting would give back."""
import random
import re
import sys
import time
from pathlib import Path

import pytest
from files import ROOT, run

sys.path.insert(0, str(ROOT / "python"))
from hakmem import chart, elf, policy, ratings, runs, tune  # noqa: E402
from hakmem.errors import UserError  # noqa: E402
from hakmem.runs import Run  # noqa: E402


def test_ratings_follow_results_and_their_sum_stays():
    before = {"a": 1500.0, "b": 1500.0, "c": 1600.0}
    after = ratings.after_round(before, {"a": 1.0, "b": 2.0, "c": 2.001})
    assert sum(after.values()) == pytest.approx(sum(before.values()))
    assert after["a"] > before["a"] and after["b"] < before["b"]
    # a draw takes from the one that was rated higher
    drawn = ratings.after_round({"b": 1500.0, "c": 1600.0}, {"b": 2.0, "c": 2.001})
    assert drawn["b"] > 1500 and drawn["c"] < 1600


def test_who_did_not_play_keeps_the_rating():
    after = ratings.after_round({"a": 1500.0, "b": 1500.0, "c": 1700.0}, {"a": 1.0, "b": 2.0})
    assert after["c"] == 1700.0


def test_ten_times_as_many_wins_are_expected_for_400_points():
    assert ratings.expected(1900, 1500) == pytest.approx(10 / 11)


def made_up(cpu_s, gib_s=0.0):
    return Run(0, Path("/nonesuch"), cpu_s, cpu_s, 1 << 20, gib_s)


SPACE = {"price": ("70", "7000"), "bigcache": ("0",), "tiny_fast_cap": ("16", "48")}


def searched(run, price_ms=0, seconds=60.0, seed=1, space=None):
    contest = tune.Contest(price_ms)
    best = tune.search(run, contest, space or SPACE, time.monotonic() + seconds,
                       random.Random(seed), lambda _: None)
    return contest, best


def test_the_best_option_is_found_in_noise():
    noise = random.Random(7)

    def run(strategy):
        gain = 0.8 if ("price", "7000") in strategy else 1.0
        return made_up(gain * noise.uniform(0.95, 1.05))

    contest, best = searched(run)
    assert ("price", "7000") in best[0]
    assert contest.beside_defaults(best[0], lambda run: run.cpu_s) == pytest.approx(0.8, rel=0.1)


def test_two_options_that_help_come_together_in_a_child():
    def run(strategy):
        options = dict(strategy)
        return made_up((0.8 if options.get("price") == "7000" else 1.0)
                       * (0.8 if options.get("tiny_fast_cap") == "48" else 1.0))

    space = {**SPACE, "free_policy": ("keep", "adaptive"), "bigcache_max_mb": ("0", "512", "4096"),
             "thp_min_heap_mb": ("0", "64")}
    _, best = searched(run, space=space)
    assert {("price", "7000"), ("tiny_fast_cap", "48")} <= set(best[0])


def test_memory_counts_by_its_price():
    def run(strategy):
        return made_up(1.1, 1.0) if ("price", "70") in strategy else made_up(1.0, 2.0)

    assert ("price", "70") in searched(run, price_ms=700)[1][0]
    assert ("price", "70") not in searched(run, price_ms=0)[1][0]


def test_the_defaults_play_to_the_end():
    contest, best = searched(lambda strategy: made_up(2.0 if not strategy else 1.0))
    assert tune.DEFAULTS in best and contest.age(tune.DEFAULTS) == len(contest.rounds)


def test_the_same_runs_and_seed_give_the_same_search():
    def run(strategy):
        return made_up(1.0 + sum(map(ord, str(strategy))) % 97 / 300)

    first, second = searched(run), searched(run)
    assert first[0].ratings == second[0].ratings and first[1] == second[1]


def test_the_time_is_kept():
    contest, best = searched(lambda _: made_up(1.0), seconds=-1)
    assert len(contest.rounds) == 1 and best


def test_children_have_the_options_of_both_and_one_drawn_anew():
    both, mutant = tune.children([(("price", "70"),), (("price", "7000"), ("bigcache", "0"))],
                                 SPACE, random.Random(3))
    assert both == (("bigcache", "0"), ("price", "70"))
    assert len(set(mutant) ^ {("price", "70")}) in (1, 2) and mutant == tuple(sorted(mutant))


@pytest.mark.parametrize(("count", "left_out"), [(6, 0), (8, 0), (9, 1), (10, 1), (12, 2), (20, 5)])
def test_the_interval_of_a_median_is_exact(count, left_out):
    # the ranks of Conover's table A3 for a sign test of 5 per cent
    ratio = runs.ratio_of([1.0 + each for each in range(count)], [1.0] * count)
    assert (ratio.low, ratio.high) == (1.0 + left_out, float(count - left_out)) and ratio.is_exact


def test_below_six_pairs_there_is_only_a_range():
    ratio = runs.ratio_of([1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5)
    assert (ratio.low, ratio.high) == (1.0, 5.0) and not ratio.is_exact


def test_a_build_id_is_that_of_readelf(compiled, tmp_path):
    program = compiled("int main(void) { return 0; }")
    assert elf.build_id(program) in run("readelf", "-n", program)
    assert len(elf.build_id(program)) == 40
    assert elf.build_id(tmp_path / "program.c") == elf.build_id(tmp_path / "none") == ""


def test_a_picture_names_its_points():
    text = chart.page("of <it>", [chart.Point("a=1 & b", 1.0, 1.0, True),
                                  chart.Point("defaults", 1.0, 1.0, False)])
    assert "of &lt;it&gt;" in text and "a=1 &amp; b" in text and text.count("<circle") == 2


def test_rules_that_stand_there_already_stay(tmp_path):
    there = tmp_path / "program.policy"
    there.write_text("hakmem policy 1\nsite 0123456789 1b3c 48 group 1\n")
    target, found = tune.policy_of((("price", "70"),), tmp_path / "program", tmp_path, "why")
    assert target == there and found.groups and found.options == {"price": "70"}
    assert policy.parse(found.text()) == found


def test_a_program_that_fails_is_refused(monkeypatch):
    done = iter([0, 3])
    monkeypatch.setattr(tune, "measured", lambda *_: Run(next(done), Path(), 1, 1, 1, 1))
    play = tune.runner(["program"])
    play(tune.DEFAULTS)
    with pytest.raises(UserError, match="status 3 with price=70: it must end with 0"):
        play((("price", "70"),))


def test_a_search_ends_with_the_first_run_that_fails(tmp_path, hakmem):
    (tmp_path / "fail").write_text("echo run >> runs; kill -9 $$")
    done = hakmem("tune", "sh", "fail")
    assert done.returncode == 1 and (tmp_path / "runs").read_text() == "run\n"
    assert re.fullmatch("hakmem: sh ended with status 137 with .*\n", done.stderr), done.stderr


def test_a_policy_with_which_the_program_fails_is_not_written(tmp_path, monkeypatch):
    strategy = (("price", "70"),)

    def search(run, contest, *_):
        contest.enter([tune.DEFAULTS, strategy])
        contest.play({tune.DEFAULTS: made_up(1.0), strategy: made_up(0.5)})
        return [strategy, tune.DEFAULTS]

    monkeypatch.setattr(tune, "search", search)
    failed = Run(3, Path(), 0.1, 0.1, 1, 0.1)
    monkeypatch.setattr(tune, "in_pairs", lambda *_: [(made_up(1.0), failed)])
    with pytest.raises(UserError, match="true ended with status 3 with price=70: no policy is"):
        tune.tune(["true"], 700, 1, 6, tmp_path, 1)
    assert not list(tmp_path.glob("*.policy"))


def test_a_picture_that_cannot_be_written_costs_no_search(tmp_path):
    contest = tune.Contest(700)
    contest.enter([tune.DEFAULTS])
    contest.play({tune.DEFAULTS: made_up(1.0)})
    assert tune.draw(tmp_path, "x", contest, tune.DEFAULTS).startswith(f"no picture: {tmp_path}: ")
    with pytest.raises(UserError, match="No such file"):
        policy.write(tmp_path / "none" / "a.policy", policy.Policy())


def test_pairs_end_with_a_run_that_fails(monkeypatch):
    ends = iter([0, 0, 3, 0])  # the new one is first in the second pair
    monkeypatch.setattr(runs, "measured", lambda *_: Run(next(ends), Path(), 1, 1, 1, 1))
    assert [new.status for _, new in runs.in_pairs(["x"], {}, {"a": "b"}, 6)] == [0, 3]


# ---- a program ----

# Memory that goes back at once, and is wanted again: to keep it costs less where time counts alone.
SOURCE = """
#include <stdlib.h>
#include <string.h>
int main(void)
{
    static char *blocks[5000];
    for (int round = 0; round < 3; round++) {
        for (int index = 0; index < 5000; index++)
            blocks[index] = memset(malloc(20000), 1, 20000);
        for (int index = 0; index < 5000; index++)
            free(blocks[index]);
    }
    return 0;
}
"""


# What the environment says is not tried: so the short search comes to what pays.
PINNED = ["price=700", "thp_min_heap_mb=8", "tiny_fast_cap=124", "bigcache_max_mb=64"]


def test_a_program_is_tuned_and_its_policy_is_taken(tmp_path, hakmem, compiled):
    program = compiled(SOURCE, "-O1")
    for seed in range(1, 5):  # a short search beside other work may find nothing
        done = hakmem("tune", "--price", "1", "--minutes", "0.1", "--pairs", "6", "--seed",
                      str(seed), "--out", "found", *PINNED, "./program")
        assert done.returncode == 0, done.stderr
        assert (tmp_path / "found" / "tune.html").exists()
        assert ("6 pairs" in done.stderr) != ("no options rate above" in done.stderr)
        if policies := [*(tmp_path / "found").glob("*.policy")]:
            break
    path, = policies
    assert path.stem == elf.build_id(program)
    assert hakmem("policy", "check", path).stdout == f"{path} is a policy\n"
    refused = hakmem("tune", "false-such-program")
    assert refused.returncode == 127 and "false-such-program" in refused.stderr
