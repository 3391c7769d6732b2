"""Names for addresses of code, by addr2line (binutils)."""

import re
import shutil
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from hakmem.elf import Segment, functions, load_segments
from hakmem.foreign import plain, said
from hakmem.frames import Name
from hakmem.pprof import Mapping, Profile

MOST_AT_ONCE = 500  # addresses of a command line
ASKED = "addr2line"
MOST_S = 10.0  # for an answer: a damaged file may let the program run for ever
MOST_IN_ALL_S = 60.0  # for all names of a profile
MOST_BYTES = 16 << 20  # of an answer


def hint() -> list[str]:
    """A line for who reads addresses where names could stand; none where there are names."""
    return [] if shutil.which(ASKED) else ["install binutils for names of functions"]


def in_file(address: int, mapping: Mapping, segments: list[Segment]) -> int | None:
    """The address that the linker gave to what is mapped at `address`."""
    offset = address - mapping.start + mapping.offset
    for start, length, linked in segments:
        if start <= offset < start + length:
            return offset - start + linked
    return None


def names_of(profile: Profile) -> dict[int, list[Name]]:
    """The functions at each address, innermost first: several where the compiler has inlined.
    What has no name is told by its file and its place there."""
    by_mapping: dict[Mapping, set[int]] = defaultdict(set)
    names: dict[int, list[Name]] = {}
    for address in {each for sample in profile.samples for each in sample.addresses}:
        mapping = profile.mapping_of(address)
        names[address] = [Name(f"?+{address:#x}" if mapping else
                               f"code that is not mapped, place {-address}")]
        if mapping and mapping.path:
            by_mapping[mapping].add(address)
            offset = address - mapping.start + mapping.offset
            names[address] = [Name(f"{plain(Path(mapping.path).name)}+{offset:#x}",
                                   file=mapping.path)]
    if not shutil.which(ASKED):
        return names
    end_s = time.monotonic() + MOST_IN_ALL_S
    for mapping, addresses in by_mapping.items():
        segments = load_segments(Path(mapping.path))
        linked = {each: in_file(each, mapping, segments) for each in addresses}
        found = _ask(mapping.path, [each for each in linked.values() if each is not None], end_s)
        for address, place in linked.items():
            if place is not None and found.get(place):
                names[address] = [each._replace(file=mapping.path) for each in found[place]]
    return names


def _ask(path: str, places: Iterable[int], end_s: float) -> dict[int, list[Name]]:
    answers: dict[int, list[Name]] = {}
    wanted = sorted(set(places))
    for at in range(0, len(wanted), MOST_AT_ONCE):
        some = wanted[at:at + MOST_AT_ONCE]
        for flags in ("-afiC", "-afi"):  # A name may be without end once it is demangled.
            text, is_whole = said([ASKED, flags, "-e", path, *map(hex, some)],
                                  min(MOST_S, end_s - time.monotonic()), MOST_BYTES)
            found = _answers(some, text.split("\n"))
            answers |= {each: names for each, names in found.items() if not answers.get(each)}
            if is_whole:
                break
    return _without_neighbours(path, answers)


def _answers(places: list[int], lines: list[str]) -> dict[int, list[Name]]:
    """What is said of each place: a line with it, then two for each function there. A line is such
    a head only if it has the place that is next: a symbol may have any name."""
    answers: dict[int, list[Name]] = {}
    names: list[Name] = []
    at = 0
    while at + 1 < len(lines):
        head = re.fullmatch(r"0x([0-9a-f]{1,16})", lines[at])
        if head and len(answers) < len(places) and int(head[1], 16) == places[len(answers)]:
            names = answers[places[len(answers)]] = []
            at += 1
            continue
        if lines[at] != "??":
            source = "" if lines[at + 1].startswith("??") else lines[at + 1].split(" (")[0]
            names.append(Name(plain(lines[at]), plain(Path(source).name), source))
        at += 2
    return answers


def _without_neighbours(path: str, answers: dict[int, list[Name]]) -> dict[int, list[Name]]:
    """Without debug information addr2line names the last symbol below an address, also where the
    function there has none. Only the symbol that it lies in counts."""
    ends = dict(functions(Path(path)))
    starts = sorted(ends)
    for place, names in answers.items():
        below = bisect_right(starts, place)
        is_inside = below > 0 and place < ends[starts[below - 1]]
        if not any(name.line for name in names) and not is_inside:
            answers[place] = []
    return answers
