"""What the places that allocate do with their blocks, as heap profiles tell it: which of them stay,
and stand among others of their size that come and go."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from hakmem import policy as policies
from hakmem.policy import Site
from hakmem.pprof import Profile, Sample

SMALL = 32768  # the longest block that a group may have
STAYS = 0.5  # of the blocks of a site are in use at the end: they live long
# What stays at a site, and what comes and goes beside it: a sample of each at the default distance.
# Pairs of runs decide whether all rules together pay, so few samples may name a site.
WORTH_BYTES = 64 * 1024


@dataclass
class Use:
    """What a site has done with blocks of a size: estimates."""

    allocated: int = 0
    kept: int = 0  # in use at the end

    @property
    def stays(self) -> bool:
        return self.kept >= STAYS * max(self.allocated, 1)


def site_of(sample: Sample, found: Profile) -> Site | None:
    """The innermost call and the size of the block; None: no rule can name it."""
    place = place_of(sample, found)
    if place is None or not 0 < sample.block_size <= SMALL:
        return None
    return Site(*place, sample.block_size)


def uses_of(profiles: Sequence[Profile], weights: Sequence[float]) -> dict[Site, Use]:
    """Of all processes together."""
    uses: dict[Site, Use] = defaultdict(Use)
    for found, weight in zip(profiles, weights, strict=True):
        for sample in found.samples:
            if site := site_of(sample, found):
                uses[site].allocated += round(weight * sample.values["alloc_space"])
                uses[site].kept += round(weight * sample.values["inuse_space"])
    return uses


def chosen(uses: dict[Site, Use]) -> dict[Site, Use]:
    """Sites whose blocks stay, of sizes of which others come and go."""
    passing: dict[int, int] = defaultdict(int)
    for site, use in uses.items():
        if not use.stays:
            passing[site.size] += use.allocated - use.kept
    worth = {site: use for site, use in uses.items()
             if use.stays and use.kept >= WORTH_BYTES and passing[site.size] >= WORTH_BYTES}
    most = sorted(worth, key=lambda site: (-worth[site].kept, site))[:policies.MOST_RULES]
    return {site: worth[site] for site in most}


def place_of(sample: Sample, found: Profile) -> tuple[str, int] | None:
    """Build ID and place of the innermost call; None: no rule can name it."""
    mapping = found.mapping_of(sample.addresses[0]) if sample.addresses else None
    if mapping is None or not mapping.build_id:
        return None
    place = sample.addresses[0] + 1 - mapping.start + mapping.offset
    return (mapping.build_id[:40], place) if place < 1 << 64 else None
