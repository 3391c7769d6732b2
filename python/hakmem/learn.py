"""Runs a program, learns from its heap profile which code allocates what lives long, and writes a
policy that lets those blocks stand apart from others of their size.

Why that helps: a block that stays holds its page. Where blocks that come and go stand on the same
pages, none of these pages goes back when they are gone. Apart, whole pages and slabs become free.
"""

import tempfile
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from hakmem import policy as policies
from hakmem import pprof, profile, symbols
from hakmem.errors import UserError
from hakmem.foreign import plain, tell
from hakmem.policy import Policy, Site, Wish
from hakmem.pprof import Profile, Sample
from hakmem.runs import WITHOUT_POLICY, Ratio, Run, cost, in_pairs, ratio_of, told
from hakmem.statistics import shown
from hakmem.uses import chosen, place_of, site_of, uses_of

LARGE = 256 * 1024  # the shortest block that rules for large ones are about
WORTH_LARGE = 16 << 20  # allocated at a place in all
MOST_WISHES = 8  # places that are tried together
# What is tried, with the shortest block that makes a place worth it, and how it is told.
TRIALS = (("large freed", "return", LARGE, "freed large blocks go back at once"),
          ("large freed", "keep", LARGE, "freed large blocks wait for longer"),
          ("large pages", "huge", 1 << 21, "large blocks ask for huge pages"),
          ("realloc room", "50", 1, "blocks that realloc moves get half as much more"))
PRICE_MS = 700  # of processor time for a GiB and second: what the option price is by default


def weights_of(profiles: Sequence[Profile]) -> list[float]:
    """By the time that each profile is about, in the mean 1: what a process holds after a minute
    says less than what another holds after a day. All are alike if one does not say its time."""
    times = [found.duration_ns for found in profiles]
    if min(times) == 0:
        return [1.0] * len(times)
    return [time * len(times) / sum(times) for time in times]


def places_of(profiles: Sequence[Profile], shortest: int) -> list[tuple[str, int]]:
    """The places that allocate most in blocks of some length, if it is worth a rule."""
    allocated: dict[tuple[str, int], int] = defaultdict(int)
    for found in profiles:
        for sample in found.samples:
            place = place_of(sample, found)
            if place is not None and sample.block_size >= shortest:
                allocated[place] += sample.values["alloc_space"]
    worth = [place for place, amount in allocated.items() if amount >= WORTH_LARGE]
    return sorted(worth, key=lambda place: (-allocated[place], place))[:MOST_WISHES]


def tried(words: Sequence[str], policy: Policy, target: Path, profiles: Sequence[Profile],
          pairs: int) -> list[str]:
    """Tries what large blocks may wish, by pairs of runs without and with it, and adds what costs
    less for certain to the policy. What came of each, a line each."""
    lines = []
    for about, wanted, shortest, meaning in TRIALS:
        room = policies.MOST_RULES - len(policy.groups) - len(policy.wishes)
        found = [Wish(*place, about) for place in places_of(profiles, shortest)]
        wishes = {wish: wanted for wish in found if wish not in policy.wishes}
        wishes = dict(list(wishes.items())[:room])
        if not wishes:
            continue
        with tempfile.NamedTemporaryFile("w", suffix=".policy", encoding="utf-8") as file:
            trial = replace(policy, wishes={**policy.wishes, **wishes})
            file.write(trial.text())
            file.flush()
            runs = in_pairs(words, {"HAKMEM_POLICY": str(target.resolve())},
                            {"HAKMEM_POLICY": file.name}, pairs)
        ratio = cost_of(runs)
        ends_alike = len({run.status for pair in runs for run in pair}) == 1
        is_better = ends_alike and ratio.is_exact and ratio.high < 1
        if is_better:
            policy.wishes.update(wishes)
            for wish in wishes:
                policy.comments[wish] = [f"{meaning}: cost {ratio} in {pairs} pairs"]
            target.write_text(policy.text(), encoding="utf-8")
        count = f"{len(wishes)} {'place' if len(wishes) == 1 else 'places'}"
        verdict = "taken" if is_better else "left out" if ends_alike else \
            "left out, for the program did not end in the same way each time"
        lines.append(f"  {meaning} ({count}): cost {ratio}, {verdict}")
    return lines


def cost_of(pairs: Sequence[tuple[Run, Run]]) -> Ratio:
    """Of the second of each pair, beside the first."""
    return ratio_of([cost(new, PRICE_MS) for _, new in pairs],
                    [cost(old, PRICE_MS) for old, _ in pairs])


def functions_of(profiles: Sequence[Profile]) -> dict[Site, str]:
    """What the code of each site is called."""
    called = {}
    for found in profiles:
        names = symbols.names_of(found)
        for sample in found.samples:
            if site := site_of(sample, found):
                called[site] = names[sample.addresses[0]][-1].function
    return called


def program_of(found: Profile) -> str:
    """The build ID of the program; "" if it has none."""
    return found.mappings[0].build_id[:40] if found.mappings else ""


def policy_of(profiles: Sequence[Profile], weights: Sequence[float] = ()) -> Policy:
    """What was learnt of one program; without a site if there is nothing to gain by it. Without
    weights the profiles are of one run, and count alike."""
    policy = Policy(program_of(profiles[0]))
    called = functions_of(profiles)
    for site, use in chosen(uses_of(profiles, weights or [1.0] * len(profiles))).items():
        policy.groups[site] = 1
        share = 100 * use.kept / max(use.allocated, 1)
        policy.comments[site] = [f"{called[site]}: of {shown(use.allocated)} in blocks of "
                                 f"{site.size} bytes {share:.0f} % stay"]
    policy.comments[""] = ["Learnt by hakmem learn: blocks that stay stand apart from blocks of "
                           "their size that come and go."]
    return policy


def compiled(paths: Sequence[Path]) -> Policy:
    """The policy that profiles of one program make: of several processes, machines or days, each
    weighted by its time."""
    profiles = [pprof.read(path) for path in paths]
    for path, found in zip(paths, profiles):
        if program_of(found) != program_of(profiles[0]):
            raise UserError(f"{path} is of another program than {paths[0]}")
    return policy_of(profiles, weights_of(profiles))


def advice(pairs: Sequence[tuple[Run, Run]], policy: Path) -> str:
    """Whether the policy is worth its use, by pairs of runs without and with it."""
    ratio = cost_of(pairs)
    use = f"HAKMEM_POLICY={policy}, for a program that runs on HAKMEM (hakmem run, or linked)"
    if not ratio.is_exact:
        return (f"{len(pairs)} pairs are too few to say what it costs, {ratio} of what it did; "
                f"--pairs 6 or more say it. To use it: {use}")
    if ratio.low > 1:
        return (f"it costs more than it brings here: {ratio}, with memory at {PRICE_MS} ms for a "
                f"GiB and second; remove what was learnt from {policy}, or learn from a run that "
                "holds memory longer")
    if ratio.high < 1:
        return f"to use it: {use}"
    return f"these runs show no difference in cost: {ratio}; to use it all the same: {use}"


def compared(words: Sequence[str], policy: Path, count: int) -> str:
    """What the program takes with the policy of what it takes without any."""
    pairs = in_pairs(words, WITHOUT_POLICY, {"HAKMEM_POLICY": str(policy.resolve())}, count)
    return (f"with it, of what it takes without: {told(pairs)}\n"
            f"{advice(pairs, policy.resolve())}")


def learn(words: Sequence[str], mean_kib: int, out: Path, rounds: int,
          trials: int) -> tuple[int, str]:
    """The program's status, and what was learnt as a text. Only a program that ended well and by
    itself is run again, to try rules and to be compared."""
    with tempfile.TemporaryDirectory() as folder:
        found = profile.run(words, mean_kib, Path(folder))
    again = not found.ending.why_not_again()
    texts = []
    by_program: dict[str, list[Profile]] = defaultdict(list)
    for path, each in found.profiles.items():
        by_program[program_of(each) or path.stem].append(each)
    for program, profiles in by_program.items():
        policy = policy_of(profiles)
        name = plain(profiles[0].mappings[0].path if profiles[0].mappings else program)
        target = out / f"{program}.policy"
        try:
            lines = written(words, policy, target, profiles, trials if again else 0)
        except OSError as error:
            raise UserError(f"{out}: {error.strerror}") from None
        texts.append("\n".join([told_of(policy, name, target), *lines]))
        if again and not trials and places_of(profiles, LARGE):
            texts.append(f"{name} allocates large blocks: --trials 6 tries what rules for them "
                         "bring")
    if not found.profiles:
        texts.append(profile.nothing_sampled(found.ending, mean_kib))
    is_written = any((out / f"{program}.policy").exists() for program in by_program)
    if not again and (trials and found.profiles or rounds and is_written):
        texts.append("it is not run again to compare anything, since it "
                     f"{found.ending.why_not_again()}")
    elif rounds and is_written:
        tell("\n".join(texts), err=True)
        texts = [compared(words, out, rounds)]
    return found.ending.status, "\n".join(texts)


def written(words: Sequence[str], policy: Policy, target: Path, profiles: Sequence[Profile],
            trials: int) -> list[str]:
    """Writes the policy, with what the file said already but for groups, which are learnt anew.
    What was tried, a line each."""
    target.parent.mkdir(parents=True, exist_ok=True)
    is_old = target.exists()
    if is_old:
        old = policies.read(target)
        policy.options, policy.wishes = old.options, old.wishes
        stays = {*old.options, *old.wishes}
        policy.comments.update({each: text for each, text in old.comments.items()
                                if each in stays})
    room = policies.MOST_RULES - len(policy.wishes)
    policy.groups = dict(list(policy.groups.items())[:room])
    target.write_text(policy.text(), encoding="utf-8")
    try:
        return tried(words, policy, target, profiles, trials) if trials else []
    finally:
        if not policy.groups and not policy.wishes and not is_old:
            target.unlink()


def told_of(policy: Policy, name: str, target: Path) -> str:
    """Which rules a program got."""
    rules: list[Site | Wish] = [*policy.groups, *policy.wishes]
    if not rules:
        return (f"{name}: nothing to gain by groups: what stays does not stand among much that "
                "comes and goes, or one function allocates both")
    count = len(rules)
    return "\n".join([f"{name}: {count} {'rule' if count == 1 else 'rules'} in {target}",
                      *(f"  {comment}" for each in rules
                        for comment in policy.comments.get(each, []))])
