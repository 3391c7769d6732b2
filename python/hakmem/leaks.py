"""Runs a program in the debug mode and tells which blocks it never frees, by their call stacks."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import profile, symbols
from hakmem.pprof import Profile, Sample
from hakmem.statistics import shown

# The dynamic loader of glibc keeps blocks for threads and libraries. (That of musl is its libc.)
LOADER = re.compile(r"/ld(-linux[^/]*|-[0-9.]+)\.so[^/]*$")
LEFT_OUT = re.compile(r"samples left out for lack of room: ([0-9]{1,19})")
NOTHING_SEEN = ("nothing could be looked at: no process of the program has come to the end of main "
                "or to exit (a signal, _exit and exec end it otherwise), or the program is static, "
                "or it drops LD_PRELOAD")


@dataclass(frozen=True)
class Leak:
    """Blocks that one call stack has allocated and nobody has freed."""

    blocks: int
    size: int
    stack: list[str]  # innermost first


def _is_loaders(found: Profile, sample: Sample) -> bool:
    """A static program has none, and no path ends so."""
    mapping = found.mapping_of(sample.addresses[0]) if sample.addresses else None
    return mapping is not None and LOADER.search(mapping.path) is not None


def of(found: Profile) -> list[Leak]:
    """The most bytes first. Blocks of other sizes from the same place are one leak."""
    places = symbols.names_of(found)
    sums: dict[tuple[int, ...], list[int]] = {}
    for sample in found.samples:
        if sample.values["inuse_objects"] and not _is_loaders(found, sample):
            row = sums.setdefault(tuple(sample.addresses), [0, 0])
            row[0] += sample.values["inuse_objects"]
            row[1] += sample.values["inuse_space"]
    leaks = [Leak(blocks, size, [str(name) for address in stack for name in places[address]])
             for stack, (blocks, size) in sums.items()]
    return sorted(leaks, key=lambda leak: leak.size, reverse=True)


def left_out(found: Profile) -> int:
    """Blocks that the library had no room for."""
    counts = [LEFT_OUT.fullmatch(comment) for comment in found.comments]
    return sum(int(count[1]) for count in counts if count)


def counted(blocks: int) -> str:
    return "1 block" if blocks == 1 else f"{blocks} blocks"


def text_of(process: str, leaks: list[Leak], most: int, deepest: int) -> str:
    total = sum(leak.size for leak in leaks)
    lines = [f"process {process}: {counted(sum(leak.blocks for leak in leaks))} never freed, "
             f"{shown(total)}"]
    for leak in leaks[:most]:
        lines.append(f"  {shown(leak.size)} in {counted(leak.blocks)}")
        lines += [f"    {name}" for name in leak.stack[:deepest]]
        if len(leak.stack) > deepest:
            lines.append(f"    ... and {len(leak.stack) - deepest} more callers")
    if len(leaks) > most:
        rest = leaks[most:]
        lines.append(f"  {shown(sum(leak.size for leak in rest))} in {len(rest)} more places")
    return "\n".join(lines)


def run(words: Sequence[str], most: int, deepest: int) -> tuple[int, str, bool]:
    """The program's status, what is to be told, and whether anything leaked."""
    with tempfile.TemporaryDirectory() as folder:
        found = profile.run(words, 1, Path(folder), {"HAKMEM_MODE": "debug",
                                                     "HAKMEM_LEAK_REPORT": "stacks"})
        texts = [(path.stem, of(each)) for path, each in found.profiles.items()]
    told = [text_of(process, leaks, most, deepest) for process, leaks in texts if leaks]
    told += symbols.hint() if told else []
    told += [f"process {path.stem}: {count} blocks had no room in the tables (docs/profile.md)"
             for path, each in found.profiles.items() if (count := left_out(each))]
    if not texts:
        told = [NOTHING_SEEN]
    elif not told:
        told = ["nothing leaks: every block was freed"]
        return found.ending.status, told[0], False
    return found.ending.status, "\n".join(told), True
