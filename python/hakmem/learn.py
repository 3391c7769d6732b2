"""Runs a program, learns from its heap profile which code allocates what lives long, and writes a
policy that lets those blocks stand apart from others of their size.

Why that helps: a block that stays holds its page. Where blocks that come and go stand on the same
pages, none of these pages goes back when they are gone. Apart, whole pages and slabs become free.
"""

import math
import os
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from hakmem import policy as policies
from hakmem import pprof, profile, symbols
from hakmem.errors import UserError
from hakmem.foreign import plain, tell
from hakmem.policy import Policy, Site
from hakmem.pprof import Profile
from hakmem.processes import SIGNAL
from hakmem.runs import (WITHOUT_POLICY, NotRepeated, Run, begin_of_input, cost, ratio_of,
                         refuse_unusable, sign_of, told, until_settled)
from hakmem.statistics import shown
from hakmem.uses import Part, parts_of, worth

PRICE_MS = 700  # of processor time for a GiB and second: what the option price is by default
# What a rule costs a call of its size: 53 instructions more than a hit of malloc, 20 more for
# operator new, 25 more for each caller that is read, 50 more for calloc (callgrind). At 3 GHz and 3
# instructions a cycle 53 to 105 of them take 6 to 12 ns.
RULE_NS = 10
# A run of a pair may take so many times as long as the run with a profile, and so much longer.
MOST_TIMES, MOST_MORE_S = 3, 10
MORE = "; --minutes 10 runs more"
ON = "1", "on", "yes", "true"  # as the library reads a switch


def weights_of(profiles: Sequence[Profile]) -> list[float]:
    """By the time that each profile is about, in the mean 1: what a process holds after a minute
    says less than what another holds after a day. All are alike if one does not say its time."""
    times = [found.duration_ns for found in profiles]
    if min(times) == 0:
        return [1.0] * len(times)
    return [time * len(times) / sum(times) for time in times]


def functions_of(parts: Sequence[Part], sites: Collection[Site]) -> dict[Site, str]:
    """What the code of each site is called, with what it calls."""
    called: dict[Site, str] = {}
    if not sites:  # finding names takes a while
        return called
    profiles = {id(part.found): part.found for part in parts}
    names = {each: symbols.names_of(found) for each, found in profiles.items()}
    for part in parts:
        for depth in range(1, policies.MOST_FRAMES + 1):
            site = part.site(depth)
            if site is not None and site in sites and site not in called:
                called[site] = ", by ".join(
                    names[id(part.found)][address][-1].function
                    for address in reversed(part.sample.addresses[:len(site.callers) + 1]))
    return called


def program_of(found: Profile) -> str:
    """The build ID of the program; "" if it has none."""
    return found.mappings[0].build_id[:40] if found.mappings else ""


def policy_of(profiles: Sequence[Profile], weights: Sequence[float] = ()) -> Policy:
    """What was learnt of one program; without a site if there is nothing to gain by it. Without
    weights the profiles are of one run, and count alike."""
    policy = Policy(program_of(profiles[0]))
    parts = parts_of(profiles, weights or [1.0] * len(profiles))
    sites = worth(parts)
    called = functions_of(parts, sites)
    for site, use in sites.items():
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


def learn(words: Sequence[str], mean_kib: int, out: Path, minutes: float) -> tuple[int, str]:
    """The status to end with, and what was learnt as a text. Only a program that ended well and by
    itself is run again, to see what the rules bring; of the others the count alone decides."""
    refuse_unusable(out)
    refuse_other_blocks()
    begin_of_input()  # before the first run reads from it
    # What the program leaves running may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = profile.run(words, mean_kib, Path(folder))
    ending = found.ending
    status = SIGNAL + ending.handed_on if ending.handed_on else ending.status
    if not found.profiles:
        return status, found.nothing_sampled(mean_kib)
    by_program: dict[str, list[Profile]] = defaultdict(list)
    for path, each in found.profiles.items():
        by_program[program_of(each) or path.stem].append(each)
    learnt, texts, calls = dict[Path, Policy](), [], 0
    for program, profiles in by_program.items():
        target = out / f"{program}.policy"
        policy = beside_old(policy_of(profiles), target)
        texts.append(told_of(policy, plain(profiles[0].mappings[0].path
                                           if profiles[0].mappings else program)))
        if policy.groups and policy.program:
            learnt[target] = policy
            calls += calls_of(policy, profiles)
    if not learnt:
        return status, "\n".join(texts)
    if why_not := ending.why_not_again():
        is_worth, verdict = True, f"it is not run again to be compared, since it {why_not}"
    elif not minutes:
        is_worth, verdict = True, "it is not run again to be compared: --minutes 0"
    else:
        texts.append("now the program is run again, at least six times, and what it prints is "
                     "dropped; --minutes 0 leaves this out")
        tell("\n".join(texts), err=True)
        texts = []
        most_s = max(MOST_TIMES * ending.wall_s, ending.wall_s + MOST_MORE_S)
        try:
            is_worth, verdict = judged(words, learnt, minutes, calls, most_s)
        except NotRepeated as error:
            is_worth, verdict = True, f"the profile alone decides: {error}"
        except (KeyboardInterrupt, SystemExit):
            tell("interrupted, so nothing is written: --minutes 0 writes the rules without "
                 "running the program again", err=True)
            raise
    texts.append(verdict)
    if is_worth:
        write(learnt)
        places = out.resolve()
        texts.append(f"written: {', '.join(str(path) for path in learnt)}; to use it, run "
                     f"the program on HAKMEM with HAKMEM_POLICY={places}")
    return status, "\n".join(texts)


def refuse_other_blocks() -> None:
    """Rules name sizes of blocks, and with the option junk a block has a byte more. The mode debug
    turns it on. The library ignores the case of names and values."""
    said = {name.upper(): (f"{name}={value}", value.lower()) for name, value in os.environ.items()
            if name.startswith("HAKMEM_")}
    text, mode = said.get("HAKMEM_MODE", ("", ""))
    text, junk = said.get("HAKMEM_JUNK", (text, ON[0] if mode == "debug" else ""))
    if junk in ON:
        raise UserError(f"{text}: each block has a byte more then, so the rules would not fit a "
                        "usual run: leave it out")


def calls_of(policy: Policy, profiles: Sequence[Profile]) -> int:
    """Of the sizes that have rules: each of them looks for its rule."""
    sizes = {site.size for site in policy.groups}
    return sum(sample.values["alloc_objects"] for found in profiles for sample in found.samples
               if sample.block_size in sizes)


def judged(words: Sequence[str], learnt: Mapping[Path, Policy], minutes: float, calls: int = 0,
           most_s: float = math.inf) -> tuple[bool, str]:
    """Whether runs with the rules cost less than runs without any, and that as a text. The program
    makes so many calls that look for a rule."""
    with tempfile.TemporaryDirectory() as name:
        write({Path(name) / path.name: policy for path, policy in learnt.items()})
        pairs, sign, failed = until_settled(words, WITHOUT_POLICY, {"HAKMEM_POLICY": name},
                                            PRICE_MS, minutes, most_s)
    ratio = ratio_of([cost(new, PRICE_MS) for _, new in pairs],
                     [cost(old, PRICE_MS) for old, _ in pairs])
    text = (f"with it, divided by without: {told(pairs)}\ncost {ratio}, with a GiB for a "
            f"second at {PRICE_MS} ms: ")
    if any(new.status for _, new in pairs):
        return False, f"{text}left out, because the program did not end in the same way each time"
    if sign < 0:
        return True, f"{text}it pays"
    if sign > 0:
        return False, f"{text}left out, because it costs more than it gains"
    if failed:
        text += f"these pairs decide, since a later run failed ({failed}): "
    is_worth, verdict = judged_by_memory(pairs, calls, "" if failed else MORE)
    return is_worth, text + verdict


def judged_by_memory(pairs: Sequence[tuple[Run, Run]], calls: int,
                     advice: str = "") -> tuple[bool, str]:
    """For pairs in which the noise of processor time hides the cost: it is counted instead, where
    memory over time surely falls. The advice is for pairs that say nothing."""
    memory, time = (sign_of([max(getattr(new, name), 1e-9) / max(getattr(old, name), 1e-9)
                             for old, new in pairs]) for name in ("gib_s", "cpu_s"))
    if memory >= 0 or time > 0:
        return False, f"left out, because these pairs do not settle it{advice}"
    saved_ms = PRICE_MS * statistics.fmean(old.gib_s - new.gib_s for old, new in pairs)
    rules_ms = RULE_NS * calls / 1e6
    figures = (f"the memory saved is worth {saved_ms:.3g} ms of processor time a run, and "
               f"{calls:,} calls that look for a rule take {rules_ms:.3g} ms")
    if saved_ms > rules_ms:
        return True, f"these pairs do not settle it, but {figures}: it pays"
    return False, f"left out, because {figures}"


def beside_old(policy: Policy, target: Path) -> Policy:
    """The policy with what the file says already, but for groups, which are learnt anew."""
    if not target.exists():
        return policy
    old = policies.read(target)
    policy.options = old.options
    policy.comments.update({each: text for each, text in old.comments.items()
                            if each in old.options})
    return policy


def write(learnt: Mapping[Path, Policy]) -> None:
    for path, policy in learnt.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None
        policies.write(path, policy)


def told_of(policy: Policy, name: str) -> str:
    """Which rules a program may get."""
    if not policy.program:
        return (f"{name}: no policy can name the program, for it has no build ID: link it with "
                "-Wl,--build-id")
    if not policy.groups:
        return (f"{name}: groups gain nothing: few long-lived blocks lie among short-lived "
                "ones, or one function allocates both")
    count = len(policy.groups)
    return "\n".join([f"{name}: {count} {'rule' if count == 1 else 'rules'}",
                      *(f"  {comment}" for each in policy.groups
                        for comment in policy.comments.get(each, []))])
