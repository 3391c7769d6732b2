"""What to do next about what a heap profile shows: the command, the option or the change of the
program that mends its cause."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from hakmem import frames
from hakmem.frames import Name
from hakmem.pprof import Profile, Sample
from hakmem.statistics import shown
from hakmem.uses import parts_of, worth

LARGE = 1 << 20  # a block of which clearing its pages takes a time worth a word
OFTEN = 5  # so many of them at one place, of which
PASSES = 4  # times as much was allocated as is held at the end
MOST = 0.5  # of the peak is held at the end
KEEPS = "HAKMEM_FREE_POLICY=keep HAKMEM_BIGCACHE_MAX_MB=1024"
LEAKS = "much of it was held at the end too: hakmem leaks PROGRAM lists what is never freed"
WHY = ("hakmem run stats=/tmp/hakmem-%p.json PROGRAM & hakmem why $! tells what else holds memory: "
       "caches, free pages, fragmentation")
NOTHING_LEAKS = f"hakmem profile PROGRAM shows its peak; {WHY}"


@dataclass
class Place:
    """What a function has done with large blocks."""

    count: int = 0
    size: int = 0  # of all of them
    held: int = 0  # at the end


def size_of(sample: Sample) -> int:
    """Of a block, in the mean: the label that says it is a class of sizes."""
    return sample.values["alloc_space"] // max(sample.values["alloc_objects"], 1)


def _own(addresses: Sequence[int], names: Mapping[int, list[Name]]) -> str:
    """The program's own function there, or else the innermost."""
    stack = frames.own_first([name for address in addresses for name in names[address]])
    own = next((name for name in stack if not name.is_library), stack[0] if stack else None)
    return frames.short(own.function) if own else "the program"


def _passing(found: Profile, names: Mapping[int, list[Name]]) -> str:
    """What a function does again and again with large blocks; "": none does."""
    places: dict[str, Place] = defaultdict(Place)
    for sample in found.samples:
        if size_of(sample) >= LARGE:
            place = places[_own(sample.addresses, names)]
            place.count += sample.values["alloc_objects"]
            place.size += sample.values["alloc_space"]
            place.held += sample.values["inuse_space"]
    name, most = max(places.items(), key=lambda each: each[1].size, default=("", Place()))
    if most.count < OFTEN or most.size < PASSES * max(most.held, 1):
        return ""
    return (f"{name} has allocated {most.count:,} blocks of {shown(most.size / most.count)} in the "
            "mean, one after the other: use one buffer again, or give an array its last size at "
            f"once; {KEEPS} keep the pages of freed blocks")


def of_profile(end: Profile, peak: int, names: Mapping[int, list[Name]]) -> list[str]:
    """Of the profile at the end of a program, and the bytes that it held at its peak; one step at
    least."""
    steps = []
    held = end.total("inuse_space")
    if passing := _passing(end, names):
        steps.append(passing)
    if worth(parts_of([end], [1.0])):
        steps.append("blocks that stay stand among others of their size that come and go: hakmem "
                     "learn PROGRAM sets them apart (docs/learning.md)")
    if held and held >= MOST * peak:
        steps.append(LEAKS)
    return steps or [WHY]
