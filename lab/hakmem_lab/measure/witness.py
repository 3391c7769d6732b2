"""The proof: which library served malloc in every program that a run started.

The record is written by lab/witness.c, preloaded behind the allocator under test, and on the
system's malloc too, so that all allocators pay the same for it. A program that starts without the
preloaded libraries writes none; memory.py sees it if it lives for some milliseconds.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from hakmem_lab import LabError
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.memory import Suspect


@dataclass(frozen=True)
class Proof:
    """What the witness saw of one run."""

    processes: int  # programs that started with the witness
    function: str  # malloc, or the first of its family that was bound elsewhere in the first
    owner: str  # the library that this function was bound to
    strangers: tuple[str, ...]  # programs of the run that were served by something else
    counters: dict[str, int]  # the allocator's own at the end of the last program on HAKMEM


def read(record: Path, allocator: Allocator, suspects: Iterable[Suspect] = ()) -> Proof:
    """What the record says; a program is a stranger unless the allocator served it. So is one that
    was seen without the libraries, unless it has a line in the record."""
    processes, first, owner = 0, "", ""
    strangers: list[str] = []
    counters: dict[str, int] = {}
    proven: set[tuple[int, str]] = set()
    for line in record.read_text(errors="replace").splitlines():
        columns = line.split("\t")
        if len(columns) != 5 or not columns[4].isdecimal():
            continue
        program, function, library, answer, pid = columns
        if function == "counter":
            counters[library] = int(answer)
            continue
        processes += 1
        proven |= {(int(pid), program), (int(pid), "")}
        first, owner = first or function, owner or library
        if not allocator.is_owner(library) or function != "malloc" or answer == "no":
            strangers.append(Path(program).name)
    for each in suspects:
        if (each.pid, each.program if each.program.startswith("/") else "") not in proven:
            strangers.append(f"{Path(each.program).name} ({each.reason})")
            processes += processes > 0
    return Proof(processes, first, owner, tuple(strangers), counters)


def refuse_unless_engaged(proof: Proof, allocator: Allocator, program: str) -> None:
    """LabError unless all programs of the run were served by the allocator."""
    if proof.processes == 0:
        raise LabError(f"{allocator.name} was not engaged: {program} does not let itself be "
                       "preloaded (it is static or setuid, or its start script clears LD_PRELOAD)")
    if not allocator.is_owner(proof.owner):
        raise LabError(f"{allocator.name} was not engaged: {proof.function} of {program} belongs "
                       f"to {Path(proof.owner).name}")
    if proof.strangers:
        raise LabError(f"{allocator.name} was not engaged in {len(proof.strangers)} of "
                       f"{proof.processes} programs: {', '.join(sorted(set(proof.strangers)))}")
    if proof.counters.get("system_calls") == 0:
        raise LabError(f"{allocator.name} was not engaged: it asked the kernel for nothing")
