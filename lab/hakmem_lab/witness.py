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
    owner: str  # the library that malloc of the first was bound to
    strangers: tuple[str, ...]  # programs of the run that were served by something else
    counters: dict[str, int]  # the allocator's own at the end of the last program on HAKMEM


def read(record: Path, allocator: Allocator) -> Proof:
    """What the record says; a program is a stranger unless the allocator served it."""
    processes, owner = 0, ""
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
        owner = owner or library
        if not allocator.is_owner(library) or function != "malloc" or answer == "no":
            strangers.append(Path(program).name)
    return Proof(processes, owner, tuple(strangers), counters)


def refuse_unless_engaged(proof: Proof, allocator: Allocator, program: str) -> None:
    """LabError unless the first program of the run was served by the allocator."""
    if proof.processes == 0:
        raise LabError(f"{allocator.name} was not engaged: {program} does not let itself be "
                       "preloaded (it is static or setuid, or its start script clears LD_PRELOAD)")
    if not allocator.is_owner(proof.owner):
        raise LabError(f"{allocator.name} was not engaged: malloc of {program} belongs to "
                       f"{Path(proof.owner).name}")
    if proof.strangers:
        raise LabError(f"{allocator.name} was not engaged in {len(proof.strangers)} of "
                       f"{proof.processes} programs: {', '.join(sorted(set(proof.strangers)))}")
