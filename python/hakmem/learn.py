"""Runs a program, learns from its heap profile which code allocates what lives long, and writes a
policy that lets those blocks stand apart from others of their size.

Why that helps: a block that stays holds its page. Where blocks that come and go stand on the same
pages, none of these pages goes back when they are gone. Apart, whole pages and slabs become free.
"""

import os
import statistics as figures
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import profile, symbols
from hakmem.errors import UserError
from hakmem.place import preloaded
from hakmem.policy import Policy, Site
from hakmem.pprof import Profile
from hakmem.statistics import shown

SMALL = 32768  # the longest block that a group may have
STAYS = 0.5  # of the blocks of a site are in use at the end: they live long
WORTH_BYTES = 256 * 1024  # what stays at a site, and what comes and goes beside it
MOST_RULES = 64


@dataclass
class Use:
    """What a site has done with blocks of a size: estimates."""

    allocated: int = 0
    kept: int = 0  # in use at the end

    @property
    def stays(self) -> bool:
        return self.kept >= STAYS * max(self.allocated, 1)


def uses_of(found: Profile) -> dict[Site, Use]:
    """By the innermost call and the size of the block."""
    uses: dict[Site, Use] = defaultdict(Use)
    for sample in found.samples:
        mapping = found.mapping_of(sample.addresses[0])
        if mapping is None or not mapping.build_id or not 0 < sample.block_size <= SMALL:
            continue
        place = sample.addresses[0] + 1 - mapping.start + mapping.offset
        use = uses[Site(mapping.build_id[:40], place, sample.block_size)]
        use.allocated += sample.values["alloc_space"]
        use.kept += sample.values["inuse_space"]
    return uses


def chosen(uses: dict[Site, Use]) -> dict[Site, Use]:
    """Sites whose blocks stay, of sizes of which others come and go."""
    passing: dict[int, int] = defaultdict(int)
    for site, use in uses.items():
        if not use.stays:
            passing[site.size] += use.allocated - use.kept
    worth = {site: use for site, use in uses.items()
             if use.stays and use.kept >= WORTH_BYTES and passing[site.size] >= WORTH_BYTES}
    most = sorted(worth, key=lambda site: -worth[site].kept)[:MOST_RULES]
    return {site: worth[site] for site in most}


def policy_of(found: Profile) -> Policy:
    """What was learnt; without a site if there is nothing to gain by it."""
    policy = Policy(found.mappings[0].build_id[:40] if found.mappings else "")
    names = symbols.names_of(found)
    by_site = {}
    for sample in found.samples:
        mapping = found.mapping_of(sample.addresses[0])
        if mapping:
            place = sample.addresses[0] + 1 - mapping.start + mapping.offset
            by_site[mapping.build_id[:40], place] = names[sample.addresses[0]][-1]
    for site, use in chosen(uses_of(found)).items():
        policy.groups[site] = 1
        policy.comments[site] = [f"{by_site[site.build_id, site.place]}: of "
                                 f"{shown(use.allocated)} in blocks of {site.size} bytes "
                                 f"{100 * use.kept / use.allocated:.0f} % stay"]
    policy.comments[""] = ["Learnt by hakmem learn: blocks that stay stand apart from blocks of "
                           "their size that come and go."]
    return policy


@dataclass(frozen=True)
class Run:
    """What a run took."""

    cpu_s: float
    wall_s: float
    peak: int


def measured(words: Sequence[str], policy: Path | None) -> Run:
    environment = preloaded(dict(os.environ))
    environment.pop("HAKMEM_POLICY", None)
    if policy:
        environment["HAKMEM_POLICY"] = str(policy.resolve())
    start = time.monotonic()
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0  # it was waited for
    return Run(usage.ru_utime + usage.ru_stime, time.monotonic() - start, usage.ru_maxrss * 1024)


def compared(words: Sequence[str], policy: Path, rounds: int) -> str:
    """Without and with the policy, in turn; the median of the ratios."""
    pairs = []
    for number in range(rounds):
        order = (None, policy) if number % 2 == 0 else (policy, None)
        runs = {each: measured(words, each) for each in order}
        pairs.append((runs[None], runs[policy]))

    def ratio(name: str) -> str:
        ratios = [getattr(new, name) / max(getattr(old, name), 1e-9) for old, new in pairs]
        return f"{figures.median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"

    return (f"with it, of what it takes without ({rounds} pairs, median and range): processor time "
            f"{ratio('cpu_s')}, time {ratio('wall_s')}, peak memory {ratio('peak')}")


def learn(words: Sequence[str], mean_kib: int, out: Path, rounds: int) -> tuple[int, str]:
    """The program's status, and what was learnt as a text."""
    with tempfile.TemporaryDirectory() as folder:
        found = profile.run(words, mean_kib, Path(folder))
    texts = []
    for path, each in found.profiles.items():
        policy = policy_of(each)
        name = each.mappings[0].path if each.mappings else path.stem
        if not policy.groups:
            texts.append(f"{name}: nothing to gain by groups: what stays does not stand among much "
                         "that comes and goes, or its code cannot be told apart")
            continue
        try:
            out.mkdir(parents=True, exist_ok=True)
            target = out / f"{policy.program or path.stem}.policy"
            target.write_text(policy.text())
        except OSError as error:
            raise UserError(f"{out}: {error.strerror}") from None
        texts.append("\n".join([f"{name}: {len(policy.groups)} rules in {target}",
                                *(f"  {comment}" for site in policy.groups
                                  for comment in policy.comments[site])]))
    if not found.profiles:
        texts.append(f"nothing was sampled: the program allocates less than {mean_kib} KiB, is "
                     "static, or drops LD_PRELOAD; try --mean 1")
    if rounds and any(out.glob("*.policy")) and texts:
        texts.append(compared(words, out, rounds))
        texts.append(f"to use it: HAKMEM_POLICY={out.resolve()}")
    return found.status, "\n".join(texts)
