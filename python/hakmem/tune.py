"""Searches the options with which a program takes least, by trying.

A strategy is a set of options beside those that the user has set. All strategies run once in each
round, in an order drawn anew, and play each other: ratings (hakmem/ratings.py) decide. The better
half goes on to twice as many rounds (successive halving: Jamieson and Talwalkar 2016), with
children of the best two. What wins is then compared with the defaults in fresh pairs: the runs that
chose it say too much good of it.
"""

import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hakmem import policy as policies
from hakmem import chart, elf
from hakmem.errors import UserError
from hakmem.foreign import tell
from hakmem.policy import Policy
from hakmem.ratings import START, after_round
from hakmem.runs import (WITHOUT_POLICY, Run, cost, in_pairs, measured, ratio_of,
                         refuse_unusable, told)
from hakmem.tables import aligned

# Options, and values that are worth a try. Eight, for the more there are the better a player is
# chance: prices and policies span what docs/measured.md shows, huge pages may cost or save, small
# caches help many threads, and huge blocks that come and go want to be kept.
SPACE: Mapping[str, tuple[str, ...]] = {
    "price": ("70", "7000"),
    "free_policy": ("keep", "batch"),
    "thp_min_heap_mb": ("0", "off"),
    "tiny_fast_cap": ("16",),
    "bigcache_max_mb": ("4096",),
}
FIRST_ROUNDS = 2
FEW = 4  # strategies of which no more are left out
CHILDREN = 2  # of each generation

Strategy = tuple[tuple[str, str], ...]  # options in order
DEFAULTS: Strategy = ()


def named(strategy: Strategy) -> str:
    return " ".join(f"{name}={value}" for name, value in strategy) or "defaults"


def environment(strategy: Strategy) -> dict[str, str]:
    return {f"HAKMEM_{name.upper()}": value for name, value in strategy}


def first_field(space: Mapping[str, Sequence[str]]) -> list[Strategy]:
    """The defaults, and each other value of each option alone."""
    return [DEFAULTS, *(((name, value),) for name, values in space.items() for value in values)]


def children(parents: Sequence[Strategy], space: Mapping[str, Sequence[str]],
             chance: random.Random) -> list[Strategy]:
    """Both parents' options in one, the first one's where they differ; and the first with one
    option drawn anew."""
    first, second = dict(parents[0]), dict(parents[-1])
    name = chance.choice(list(space))
    value = chance.choice([each for each in (*space[name], "") if each != first.get(name, "")])
    mutant = {**first, name: value}
    return [tuple(sorted((name, value) for name, value in each.items() if value))
            for each in ({**second, **first}, mutant)]


@dataclass
class Contest:
    """All runs of a search, round by round, and what they say."""

    price_ms: int
    rounds: list[dict[Strategy, Run]] = field(default_factory=list)
    ratings: dict[Strategy, float] = field(default_factory=dict)

    def enter(self, strategies: Sequence[Strategy], rating: float = START) -> None:
        for each in strategies:
            self.ratings.setdefault(each, rating)

    def play(self, runs: dict[Strategy, Run]) -> None:
        self.rounds.append(runs)
        costs = {each: cost(run, self.price_ms) for each, run in runs.items()}
        self.ratings = after_round(self.ratings, costs)

    def best_first(self, strategies: Sequence[Strategy]) -> list[Strategy]:
        return sorted(strategies, key=lambda each: -self.ratings[each])

    def beside_defaults(self, strategy: Strategy, of: Callable[[Run], float]) -> float:
        """The median over the rounds in which both took part."""
        return statistics.median(of(runs[strategy]) / max(of(runs[DEFAULTS]), 1e-9)
                                 for runs in self.rounds if strategy in runs)

    def age(self, strategy: Strategy) -> int:
        return sum(strategy in runs for runs in self.rounds)


def next_field(contest: Contest, players: Sequence[Strategy],
               space: Mapping[str, Sequence[str]], chance: random.Random) -> list[Strategy]:
    """The better half, with children while it is many; the defaults stay to be compared with."""
    best = contest.best_first(players)[:len(players) // 2]
    if len(best) > FEW:
        parents = best[:2]
        born = [each for each in dict.fromkeys(children(parents, space, chance))
                if each not in contest.ratings][:CHILDREN]
        contest.enter(born, statistics.mean(contest.ratings[each] for each in parents))
        best += born
    return best if DEFAULTS in best else [*best, DEFAULTS]


def search(run: Callable[[Strategy], Run], contest: Contest, space: Mapping[str, Sequence[str]],
           end_s: float, chance: random.Random, say: Callable[[str], None]) -> list[Strategy]:
    """Plays until few are left or the time is over. The last field, best first."""
    players, rounds = first_field(space), FIRST_ROUNDS
    contest.enter(players)
    while True:
        for _ in range(rounds):
            contest.play({each: run(each) for each in chance.sample(players, len(players))})
            if time.monotonic() > end_s:
                return contest.best_first(players)
        best = contest.best_first(players)
        say(f"{len(contest.rounds)} rounds, {len(players)} strategies: {named(best[0])} leads")
        if len(players) <= FEW:
            return best
        players, rounds = next_field(contest, players, space, chance), 2 * rounds


def runner(words: Sequence[str]) -> Callable[[Strategy], Run]:
    """Runs the program with a strategy. It has to end well each time."""
    def run(strategy: Strategy) -> Run:
        done = measured(words, WITHOUT_POLICY | environment(strategy))
        if done.status:
            raise UserError(f"{words[0]} ended with status {done.status} with {named(strategy)}: "
                            "it must end with 0 each time")
        return done

    return run


def table_of(contest: Contest, most: int = 12) -> str:
    """The strategies, best first."""
    rows = [("strategy", "rating", "rounds", "cost", "processor time", "memory over time")]
    played = [each for each in contest.ratings if contest.age(each)]
    for each in contest.best_first(played)[:most]:
        sides = (lambda run: cost(run, contest.price_ms), lambda run: run.cpu_s,
                 lambda run: run.gib_s)
        cost_of, time_of, memory_of = (f"{contest.beside_defaults(each, side):.2f}"
                                       for side in sides)
        rows.append((named(each), f"{contest.ratings[each]:.0f}", str(contest.age(each)),
                     cost_of, time_of, memory_of))
    return aligned(rows)


def policy_of(strategy: Strategy, program: Path, out: Path, comment: str) -> tuple[Path, Policy]:
    """Where the policy goes, and what it says; rules that stand there already stay, and options
    that no search has set."""
    build_id = elf.build_id(program)[:40]
    target = out / f"{build_id or program.name}.policy"
    found = Policy(build_id, dict(strategy), comments={"": [comment]})
    if not target.exists():
        return target, found
    old = policies.read(target)
    old.options = {name: value for name, value in old.options.items() if name not in SPACE}
    return target, policies.merge(old, found)


def draw(page: Path, program: str, contest: Contest, best: Strategy) -> str:
    """Writes the picture; what to say of it. Without it the search is as good."""
    points = [chart.Point(named(each), contest.beside_defaults(each, lambda run: run.cpu_s),
                          contest.beside_defaults(each, lambda run: run.gib_s), each == best)
              for each in contest.ratings if contest.age(each)]
    try:
        page.write_text(chart.page(f"Strategies for {program}", points), encoding="utf-8")
    except OSError as error:
        return f"no picture: {page}: {error.strerror}"
    return f"picture: {page}"


def program_of(words: Sequence[str], contest: Contest) -> Path:
    """What the words execute."""
    for runs in contest.rounds:
        for run in runs.values():
            if run.program != Path():
                return run.program
    return Path(shutil.which(words[0]) or words[0]).resolve()


def tune(words: Sequence[str], price_ms: int, minutes: float, pairs: int, out: Path,
         seed: int) -> None:
    """Searches, judges, and writes the policy if it holds what it promises."""
    space = {name: values for name, values in SPACE.items()
             if f"HAKMEM_{name.upper()}" not in os.environ}
    if elf.is_static(Path(shutil.which(words[0]) or words[0])):
        raise UserError(f"{words[0]} is statically linked: no library can be preloaded into it")
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}") from None
    refuse_unusable(out)
    contest, run = Contest(price_ms), runner(words)
    best = search(run, contest, space, time.monotonic() + 60 * minutes, random.Random(seed),
                  lambda line: tell(line, err=True))
    tell(table_of(contest), err=True)
    tell(draw(out / "tune.html", words[0], contest, best[0]), err=True)
    if best[0] == DEFAULTS:
        tell("no options rate above the defaults: no policy is written", err=True)
        return
    target, found = policy_of(best[0], program_of(words, contest), out,
                              f"Found by hakmem tune: {named(best[0])}")
    with tempfile.TemporaryDirectory() as folder:
        tried = Path(folder) / "tried.policy"
        policies.write(tried, found)
        # What the file says already is not what this search has found.
        before = {"HAKMEM_POLICY": str(target.resolve())} if target.exists() else WITHOUT_POLICY
        runs = in_pairs(words, before, {"HAKMEM_POLICY": str(tried)}, pairs)
    if status := runs[-1][1].status:
        raise UserError(f"{words[0]} ended with status {status} with {named(best[0])}: no policy "
                        "is written")
    costs = [[cost(each[side], price_ms) for each in runs] for side in (1, 0)]
    ratio = ratio_of(*costs)
    tell(f"{named(best[0])}, divided by fresh runs without: cost {ratio}; {told(runs)}", err=True)
    if not ratio.is_exact or ratio.high >= 1:
        tell("the difference may be chance: no policy is written. More --pairs show smaller ones",
             err=True)
        return
    policies.write(target, found)
    used = (out if found.program else target).resolve()
    tell(f"policy: {target}\nto use it, run the program on HAKMEM with "
         f"HAKMEM_POLICY={used}", err=True)
