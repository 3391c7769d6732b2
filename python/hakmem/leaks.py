"""Runs a program in the debug mode and tells which blocks it never frees, by their call stacks."""

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem import frames, next_step, profile, symbols
from hakmem.frames import Name
from hakmem.pprof import Profile, Sample
from hakmem.statistics import shown

# The dynamic loader of glibc keeps blocks for threads and libraries. (That of musl is its libc.)
LOADER = re.compile(r"/ld(-linux[^/]*|-[0-9.]+)\.so[^/]*$")
LEFT_OUT = re.compile(r"samples left out for lack of room: ([0-9]{1,19})")
NOTHING_SEEN = ("no process could be checked: the program ended within a tenth of a second by a "
                "signal, _exit or exec, is statically linked, or removes LD_PRELOAD")
NOTHING_LEAKS = f"nothing leaks: every block was freed\n  -> {next_step.NOTHING_LEAKS}"
LITTLE = 1 << 18  # bytes, which explain no memory that somebody misses
LITTLE_LEAKS = f"that is little; {next_step.NOTHING_LEAKS}"


@dataclass(frozen=True)
class Leak:
    """Blocks that one call stack has allocated and nobody has freed."""

    blocks: int
    size: int
    stack: list[Name]  # innermost first, without what a library does inside


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
    leaks = [Leak(blocks, size, frames.own_first([name for address in stack
                                                  for name in places[address]]))
             for stack, (blocks, size) in sums.items()]
    return sorted(leaks, key=lambda leak: leak.size, reverse=True)


def left_out(found: Profile) -> int:
    """Blocks that the library had no room for."""
    counts = [LEFT_OUT.fullmatch(comment) for comment in found.comments]
    return sum(int(count[1]) for count in counts if count)


def counted(blocks: int) -> str:
    return "1 block" if blocks == 1 else f"{blocks} blocks"


def text_of(process: str, leaks: list[Leak], most: int, deepest: int,
            is_unfinished: bool) -> str:
    total = sum(leak.size for leak in leaks)
    blocks = counted(sum(leak.blocks for leak in leaks))
    lines = [f"process {process} ended early, by a signal, _exit or exec. It held {blocks}, "
             f"{shown(total)}; some of them may be no leaks."
             if is_unfinished else f"process {process}: {blocks} never freed, {shown(total)}"]
    for leak in leaks[:most]:
        lines.append(f"  {shown(leak.size)} in {counted(leak.blocks)}")
        lines += [f"    {name}" for name in leak.stack[:deepest]]
        if len(leak.stack) > deepest:
            lines.append(f"    ... and {len(leak.stack) - deepest} more callers")
    if len(leaks) > most:
        rest = leaks[most:]
        lines.append(f"  {shown(sum(leak.size for leak in rest))} in {len(rest)} more places")
    return "\n".join(lines)


@dataclass(frozen=True)
class Process:
    """What was found of a process."""

    number: str
    leaks: list[Leak]
    is_unfinished: bool
    left_out: int


@dataclass(frozen=True)
class Report:
    """What was found of a program."""

    status: int  # of the program
    processes: list[Process]
    damaged: Sequence[str] = ()  # what is said of profiles that could not be read

    @property
    def has_leaked(self) -> bool:
        """Or something could not be looked at."""
        return (len(self.damaged) != 0 or not self.processes or
                any(each.leaks or each.left_out for each in self.processes))

    def text(self, most: int, deepest: int) -> str:
        if not self.processes:
            return NOTHING_SEEN
        told = [text_of(each.number, each.leaks, most, deepest, each.is_unfinished)
                for each in self.processes if each.leaks]
        if told:  # Before the stacks, which may be longer than a screen.
            head, _, stacks = told[0].partition("\n")
            told[0] = "\n".join([head, *(f"  -> {hint}" for hint in self._hints()), stacks])
        told += [f"process {each.number}: {each.left_out} blocks had no room in the tables "
                 "(docs/profile.md)" for each in self.processes if each.left_out]
        return "\n".join(told) or NOTHING_LEAKS

    def _hints(self) -> list[str]:
        leaks = [leak for each in self.processes for leak in each.leaks]
        is_little = sum(leak.size for leak in leaks) < LITTLE
        return [LITTLE_LEAKS] * is_little + symbols.hint() + \
            frames.hint(name for leak in leaks for name in leak.stack)

    def facts(self) -> dict[str, Any]:
        """All of it for programs; sizes are in bytes, stacks begin with the innermost frame."""
        return {"status": self.status, "processes": [
            {"process": int(each.number), "came_to_its_end": not each.is_unfinished,
             "blocks": sum(leak.blocks for leak in each.leaks),
             "bytes": sum(leak.size for leak in each.leaks), "blocks_without_room": each.left_out,
             "leaks": [{"blocks": leak.blocks, "bytes": leak.size,
                        "stack": [{"function": name.function, "line": name.line, "file": name.file}
                                  for name in leak.stack]} for leak in each.leaks]}
            for each in self.processes],
            "notes": [*self.damaged, *(self._hints() if self.processes else [NOTHING_SEEN])]}


def run(words: Sequence[str], is_quiet: bool = False) -> Report:
    # What the program leaves running may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        found = profile.run(words, 1, Path(folder), {"HAKMEM_MODE": "debug",
                                                     "HAKMEM_LEAK_REPORT": "stacks"}, is_quiet)
        return Report(found.ending.status,
                      [Process(path.stem, of(each), each.is_unfinished, left_out(each))
                       for path, each in found.profiles.items()], found.damaged)
