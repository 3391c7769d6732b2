"""The proof: which library served malloc in every program that a run started.

The record is written by lab/witness.c, preloaded behind the allocator under test, and on the
system's malloc too, so that all allocators pay the same for it.
"""

from dataclasses import dataclass
from pathlib import Path

from hakmem_lab import LabError
from hakmem_lab.allocators import Allocator


@dataclass(frozen=True)
class Proof:
    """What the witness saw of one run."""

    processes: int  # programs that started with the witness
    function: str  # malloc, or the first of its family that was bound elsewhere in the first
    owner: str  # the library that this function was bound to
    strangers: tuple[str, ...]  # programs of the run that were served by something else
    counters: dict[str, int]  # the allocator's own at the end of the last program on HAKMEM


def read(record: Path, allocator: Allocator) -> Proof:
    """What the record says; a program is a stranger unless the allocator served it."""
    processes, first, owner = 0, "", ""
    strangers: list[str] = []
    counters: dict[str, int] = {}
    for line in record.read_text(errors="replace").splitlines():
        columns = line.split("\t")
        if len(columns) != 5:
            continue
        program, function, library, answer, _ = columns
        if function == "counter":
            counters[library] = int(answer)
            continue
        processes += 1
        first, owner = first or function, owner or library
        if not allocator.is_owner(library) or function != "malloc" or answer == "no":
            strangers.append(Path(program).name)
    return Proof(processes, first, owner, tuple(strangers), counters)


def refuse_unless_engaged(proof: Proof, allocator: Allocator, program: str) -> None:
    """LabError unless the first program of the run was served by the allocator."""
    if proof.processes == 0:
        raise LabError(f"{allocator.name} was not engaged: {program} does not let itself be "
                       "preloaded (it is static or setuid, or its start script clears LD_PRELOAD)")
    if not allocator.is_owner(proof.owner):
        raise LabError(f"{allocator.name} was not engaged: {proof.function} of {program} belongs "
                       f"to {Path(proof.owner).name}")
    if proof.strangers:
        raise LabError(f"{allocator.name} was not engaged in {len(proof.strangers)} of "
                       f"{proof.processes} programs: {', '.join(sorted(set(proof.strangers)))}")
