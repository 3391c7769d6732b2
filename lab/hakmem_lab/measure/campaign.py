"""A campaign: cells × allocators × rounds into one ledger, with a progress bar, to be resumed.

What it was asked is kept beside the rows (plan.json), so that it can go on after an interruption
exactly as it began. Ctrl-C, SIGTERM and SIGHUP end it at once; complete rounds are kept.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hakmem_lab import LabError
from hakmem_lab.measure import environment, rounds
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.ledger import ENVIRONMENT, Ledger, Row, locked, read_object
from hakmem_lab.measure.subject import Cell

PLAN = "plan.json"


@dataclass
class Campaign:
    folder: Path
    command: str  # what was typed
    cells: Sequence[Cell]
    contestants: Sequence[Allocator]
    round_count: int
    base: str = ""  # what relative costs relate to; "": HAKMEM
    warms_up: bool = False

    def run(self, console: Console, plan: dict[str, Any] | None = None) -> Ledger:
        """Measures what the ledger still lacks; interrupted, it keeps the rounds that are
        complete."""
        with locked(self.folder):
            ledger = Ledger(self.folder)
            self._prepare(ledger, console, plan)
            try:
                self._measure(ledger, console)
            except KeyboardInterrupt:
                if not ledger.rows:
                    raise LabError("interrupted before the first round was complete") from None
                console.print("[yellow]Interrupted; complete rounds are kept.[/]")
        return ledger

    def _prepare(self, ledger: Ledger, console: Console, plan: dict[str, Any] | None) -> None:
        record = environment.record(self.contestants, self.command) | {"base": self.base}
        if ledger.rows:
            self._refuse_other(ledger)
        else:
            ledger.write_environment(record)
        if plan is not None:
            ledger.write_text(PLAN, json.dumps(plan, indent=1) + "\n")
        names = environment.not_handed_over()
        if names:
            console.print(f"not handed over to what is measured: {', '.join(names)}",
                          style="yellow", markup=False)
        if float(record["load_average"]) > 1:
            console.print(f"[yellow]The machine is busy (load {record['load_average']}): ratios "
                          "will scatter.[/]")

    def _refuse_other(self, ledger: Ledger) -> None:
        """LabError unless what is here now is what the rows were measured on."""
        then = ledger.rows[0]
        of_then = next((each for each in self.contestants if each.name == then.allocator), None)
        now = environment.commit() if of_then is None else environment.commit_of(of_then)
        if (then.commit, then.dirty) != now:
            raise LabError(f"{self.folder} holds rows of {_told(then.commit, then.dirty)} and the "
                           f"checkout is at {_told(*now)}: check that out, or begin anew with "
                           "--out and a new folder")
        begun = ledger.read_environment().get("allocators")
        own = [each.name for each in self.contestants]
        if not isinstance(begun, dict):
            raise LabError(f"{self.folder / ENVIRONMENT} is damaged: it names no allocators")
        if sorted(begun) != sorted(own):
            raise LabError(f"{self.folder} was begun with {', '.join(begun)}; here are now "
                           f"{', '.join(own)}")

    def _measure(self, ledger: Ledger, console: Console) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=30),
                   MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            total = len(self.cells) * len(self.contestants) * self.round_count
            task = bar.add_task("", total=total)
            told: set[tuple[str, str]] = set()

            def before(cell: Cell, number: int, allocator: Allocator) -> None:
                said = "warm-up" if number < 0 else f"round {number + 1}"
                bar.update(task, advance=number >= 0,
                           description=f"{cell.name}: {said}, {allocator.name}")

            def after(row: Row) -> None:
                said = row.status if not row.is_ok else (
                    "did not end when asked to and was killed" * ("was_killed" in row.figures))
                if said and (row.cell, row.allocator) not in told:
                    told.add((row.cell, row.allocator))
                    bar.console.print(f"{row.cell} on {row.allocator}: ", end="", markup=False,
                                      style="yellow" if row.is_ok else "red")
                    bar.console.print(said, markup=False)

            for number, cell in enumerate(self.cells):
                rounds.measure_cell(cell, self.contestants, self.round_count, ledger,
                                    rounds.Progress(before, after), self.warms_up)
                bar.update(task, completed=(number + 1) * total // len(self.cells))


def _told(commit: str, is_dirty: bool) -> str:
    return f"commit {commit}{' with changes' * is_dirty}"


def read_plan(folder: Path) -> dict[str, Any]:
    """What a campaign was asked; LabError if the folder holds none."""
    if not (folder / PLAN).exists():
        raise LabError(f"{folder} holds no run that could be resumed")
    return read_object(folder / PLAN)
