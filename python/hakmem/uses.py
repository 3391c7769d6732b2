"""What the places that allocate do with their blocks, as heap profiles tell it: which of them stay,
and stand among others of their size that come and go."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hakmem import policy as policies
from hakmem.policy import Caller, Site
from hakmem.pprof import Profile, Sample

# The longest block that is named. A longer one has pages to itself, which go when it is freed.
PAGE = 4096
SMALL = 32768  # the longest block that stands among others
STAYS = 0.5  # of the blocks of a site are in use at the end: they live long
# What stays at a site, and what comes and goes beside it: so many bytes and samples of each.
# Pairs of runs decide whether all rules of hakmem learn together pay, so few may name a site.
WORTH_BYTES = 64 * 1024
WORTH_SAMPLES = 4
# How likely it may be that blocks of a site stay more often than those of the others by chance.
# There are hundreds of sites and stacks, so some of them look so by chance. More samples than MANY
# count as so many: then no difference is left that matters.
CHANCE = 1e-3
MANY = 1000


@dataclass
class Use:
    """What a site has done with blocks of a size: estimates."""

    allocated: int = 0
    kept: int = 0  # in use at the end, wherever realloc has moved them

    @property
    def stays(self) -> bool:
        return self.kept >= STAYS * max(self.allocated, 1)


@dataclass(frozen=True)
class Part:
    """A sample of one of several profiles."""

    sample: Sample
    found: Profile
    weight: float
    callers: tuple[Caller, ...]  # those that a rule can name

    def site(self, depth: int) -> Site | None:
        """The innermost calls, so many of them if they are known; None: no rule can name it."""
        place = place_of(self.sample, self.found)
        if place is None or self.sample.is_unnamed or not 0 < self.sample.block_size <= SMALL:
            return None
        return Site(*place, self.sample.block_size, self.callers[:depth - 1])


def parts_of(profiles: Sequence[Profile], weights: Sequence[float]) -> list[Part]:
    """All samples. A caller can be named if its return address stood at one place of the stack in
    all samples of what it called: a function that asks for stack as it needs it moves it."""
    slots: dict[object, set[int]] = defaultdict(set)
    found = [(sample, profile, weight)
             for profile, weight in zip(profiles, weights, strict=True)
             for sample in profile.samples]
    for sample, profile, _ in found:
        for depth, slot in enumerate(sample.slots, 1):
            slots[called_by(sample, profile, depth)].add(slot)
    return [Part(sample, profile, weight, callers_of(sample, profile, slots))
            for sample, profile, weight in found]


def called_by(sample: Sample, found: Profile, depth: int) -> object:
    """The innermost calls."""
    return tuple(place_of(sample, found, frame) for frame in range(depth))


def callers_of(sample: Sample, found: Profile,
               slots: Mapping[object, set[int]]) -> tuple[Caller, ...]:
    callers: list[Caller] = []
    for depth, slot in enumerate(sample.slots, 1):
        place = place_of(sample, found, depth)
        last = callers[-1].slot if callers else 0
        if (place is None or slots[called_by(sample, found, depth)] != {slot} or slot <= last
                or slot > policies.MOST_SLOT or slot % policies.WORD):
            break
        callers.append(Caller(slot, *place))
    return tuple(callers)


def uses_of(parts: Sequence[Part], depth: int) -> dict[Site, Use]:
    """Of all processes together. Calls that no rule can name are one site for each size."""
    uses: dict[Site, Use] = defaultdict(Use)
    for part in parts:
        if 0 < part.sample.block_size <= SMALL:
            site = part.site(depth) or Site("", 0, part.sample.block_size)
            uses[site].allocated += round(part.weight * part.sample.values["alloc_space"])
            uses[site].kept += round(part.weight * part.sample.kept)
    return uses


def chosen(uses: dict[Site, Use], period: int) -> dict[Site, Use]:
    """Sites whose blocks stay, of sizes of which others come and go. A sample is `period` bytes."""
    least = max(WORTH_BYTES, WORTH_SAMPLES * period)
    passing: dict[int, int] = defaultdict(int)
    for site, use in uses.items():
        if not use.stays:
            passing[site.size] += use.allocated - use.kept
    return {site: use for site, use in uses.items()
            if site.size <= PAGE and use.stays and min(use.kept, passing[site.size]) >= least}


def is_chance(use: Use, of_all: Use, unit: int) -> bool:
    """Could the blocks of a site be like those of all? A sample is `unit` bytes."""
    count = min(max(round(use.allocated / unit), 1), MANY)
    kept = min(round(count * use.kept / max(use.allocated, 1)), count)
    share = min(of_all.kept / max(of_all.allocated, 1), 1)
    return sum(math.comb(count, number) * share**number * (1 - share)**(count - number)
               for number in range(kept, count + 1)) > CHANCE


def of_all_sizes(uses: Mapping[Site, Use]) -> dict[Site, Use]:
    """The same, and each site as a whole, with 0 as its size."""
    found: dict[Site, Use] = defaultdict(Use, uses)
    for site, use in uses.items():
        whole = found[replace(site, size=0)]
        whole.allocated += use.allocated
        whole.kept += use.kept
    return found


def of_each_size(uses: Mapping[Site, Use]) -> dict[Site, Use]:
    """All sites together, as if no place were known."""
    found: dict[Site, Use] = defaultdict(Use)
    for site, use in uses.items():
        all_of_size = found[Site("", 0, site.size)]
        all_of_size.allocated += use.allocated
        all_of_size.kept += use.kept
    return found


def callee_of(site: Site) -> Site:
    """A call less; of one call, the size alone."""
    return replace(site, callers=site.callers[:-1]) if site.callers else Site("", 0, site.size)


def knows(site: Site, uses: Mapping[Site, Use], below: Mapping[Site, Use], period: int) -> bool:
    """Does the outermost call of a site tell what stays, by blocks of its size, or of a caller by
    blocks of all? `below` are the uses of sites with a call less."""
    for each in (site, replace(site, size=0)) if site.callers else (site,):
        if uses[each].stays and not is_chance(uses[each], below[callee_of(each)],
                                              max(period, each.size, 1)):
            return True
    return False


def worth(parts: Sequence[Part]) -> dict[Site, Use]:
    """The sites that a policy names: of one call, and where a function allocates for others what
    stays and what goes, of two or three."""
    sites = dict[Site, Use]()
    below = of_each_size(uses_of(parts, 1))
    period = round(max((part.weight * part.found.period for part in parts), default=0))
    for depth in range(1, policies.MOST_FRAMES + 1):
        uses = uses_of(parts, depth)
        whole = of_all_sizes(uses)
        here = {site: use for site, use in chosen(uses, period).items()
                if site.build_id and len(site.callers) == depth - 1
                and knows(site, whole, below, period)}
        if depth < policies.MOST_FRAMES:
            deeper = of_all_sizes(uses_of(parts, depth + 1))
            for site in {callee_of(each) for each in deeper if each.size and
                         len(each.callers) == depth and knows(each, deeper, whole, period)}:
                here.pop(site, None)  # a caller knows more
        parts = [part for part in parts if part.site(depth) not in here]
        below = of_all_sizes(uses_of(parts, depth))
        sites |= here
    return of_few_sizes(sites)


def of_few_sizes(sites: Mapping[Site, Use]) -> dict[Site, Use]:
    """Those that hold most, as far as the group has size classes for them."""
    found: dict[Site, Use] = {}
    sizes = set[int]()
    for site in sorted(sites, key=lambda site: (-sites[site].kept, site)):
        if site.size in sizes or len(sizes) < policies.MOST_SIZES:
            sizes.add(site.size)
            found[site] = sites[site]
    return dict(list(found.items())[:policies.MOST_RULES])


def place_of(sample: Sample, found: Profile, frame: int = 0) -> tuple[str, int] | None:
    """Build ID and place of a call, the innermost first; None: no rule can name it."""
    if frame >= len(sample.addresses):
        return None
    mapping = found.mapping_of(sample.addresses[frame])
    if mapping is None or not mapping.build_id:
        return None
    place = sample.addresses[frame] + 1 - mapping.start + mapping.offset
    return (mapping.build_id[:40], place) if place < 1 << 64 else None
