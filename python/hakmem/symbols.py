"""Names for addresses of code, by addr2line (binutils)."""

import shutil
import subprocess
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from hakmem.elf import Segment, load_segments
from hakmem.pprof import Mapping, Profile

MOST_AT_ONCE = 500  # addresses of a command line
ASKED = "addr2line"


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


def names_of(profile: Profile, with_lines: bool = False) -> dict[int, list[str]]:
    """The functions at each address, innermost first: several where the compiler has inlined.
    What has no name is told by its file and address. With lines: "function at file.c:12", as far
    as debug information says."""
    by_mapping: dict[Mapping, set[int]] = defaultdict(set)
    names: dict[int, list[str]] = {}
    for address in {each for sample in profile.samples for each in sample.addresses}:
        mapping = profile.mapping_of(address)
        names[address] = [f"{Path(mapping.path).name if mapping else '?'}+{address:#x}"]
        if mapping and mapping.path:
            by_mapping[mapping].add(address)
            offset = address - mapping.start + mapping.offset
            names[address] = [f"{Path(mapping.path).name}+{offset:#x}"]
    if not shutil.which(ASKED):
        return names
    for mapping, addresses in by_mapping.items():
        segments = load_segments(Path(mapping.path))
        linked = {each: in_file(each, mapping, segments) for each in addresses}
        found = _ask(mapping.path, [each for each in linked.values() if each is not None],
                     with_lines)
        for address, place in linked.items():
            if place is not None and found.get(place):
                names[address] = found[place]
    return names


def _ask(path: str, places: Iterable[int], with_lines: bool) -> dict[int, list[str]]:
    answers: dict[int, list[str]] = {}
    wanted = sorted(set(places))
    for at in range(0, len(wanted), MOST_AT_ONCE):
        words = [hex(each) for each in wanted[at:at + MOST_AT_ONCE]]
        done = subprocess.run([ASKED, "-afiC", "-e", path, *words], capture_output=True,
                              text=True, errors="replace", check=False)
        place = 0
        for number, line in enumerate(done.stdout.splitlines()):
            if line.startswith("0x") and ":" not in line and " " not in line:
                place, first = int(line, 16), number
                answers[place] = []
            elif (number - first) % 2 == 1 and line != "??":
                answers[place].append(line)
            elif with_lines and answers[place] and not line.startswith("??"):
                answers[place][-1] += f" at {Path(line.split(' (')[0]).name}"
    return answers
