"""One command on two allocators in turn, A B A B …, and the ratios pair by pair."""

import os
import shlex
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from hakmem_lab import LabError, preload, runner
from hakmem_lab.runner import Measurement

SYSTEM, HAKMEM = "system malloc", "HAKMEM"


@dataclass
class Comparison:
    title: str
    pairs: list[tuple[Measurement, Measurement]] = field(default_factory=list)


class Subject:
    """A command with its two environments and the proof of which allocator served it."""

    def __init__(self, command: list[str], library: Path, output: BinaryIO) -> None:
        self.command = command
        self.program = preload.find_program(command[0])
        preload.refuse_if_not_preloadable(self.program)
        self.library = library
        self.output = output
        plain = {name: text for name, text in os.environ.items() if name != "LD_PRELOAD"}
        self.environments = {SYSTEM: plain, HAKMEM: plain | {"LD_PRELOAD": str(library)}}
        self.engaged = False
        self.usual_status: int | None = None

    def run(self, allocator: str) -> Measurement:
        self.output.seek(0)
        self.output.truncate()
        measured = runner.run(self.command, self.environments[allocator], self.output,
                              self.look if allocator == HAKMEM else lambda pid: None)
        self.refuse_failure(allocator, measured.status)
        return measured

    def look(self, pid: int) -> None:
        self.engaged = self.engaged or preload.is_mapped(pid, self.library)

    def refuse_failure(self, allocator: str, status: int) -> None:
        """A crash, or an exit status other than the first run's, is no measurement."""
        if self.usual_status is None and status >= 0:
            self.usual_status = status
        if status == self.usual_status:
            return
        ending = f"exited with {status}" if status >= 0 else f"died of {name_of(-status)}"
        raise LabError(f"{shlex.join(self.command)} {ending} on {allocator}{self.last_line()}")

    def last_line(self) -> str:
        self.output.seek(0)
        lines = self.output.read().decode(errors="replace").split("\n")
        said = [line.strip() for line in lines if line.strip()]
        return f": {said[-1]}" if said else ""

    def refuse_disengaged(self) -> None:
        if not self.engaged and not preload.would_be_mapped(
                self.program, self.environments[HAKMEM], self.library):
            raise LabError(f"{self.program} did not load {self.library}: nothing was compared")


def name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def compare(title: str, command: list[str], library: Path, pair_count: int,
            progress: Callable[[int], None]) -> Comparison:
    """Measures `pair_count` pairs after one run of each that does not count.

    Ctrl-C ends it early and keeps the pairs that are complete."""
    result = Comparison(title)
    with tempfile.TemporaryFile() as output:
        subject = Subject(command, library, output)
        try:
            subject.run(SYSTEM)
            subject.run(HAKMEM)
            subject.refuse_disengaged()
            for done in range(pair_count):
                progress(done)
                result.pairs.append((subject.run(SYSTEM), subject.run(HAKMEM)))
        except KeyboardInterrupt:
            pass
    return result
