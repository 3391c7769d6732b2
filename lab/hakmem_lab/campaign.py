"""A campaign: cells × allocators × rounds into one ledger, with a progress bar, to be resumed.

What it was asked is kept beside the rows (plan.json), so that it can go on after an interruption
exactly as it began. Ctrl-C ends it between two runs at the latest; complete rounds are kept.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hakmem_lab import LabError, environment, rounds
from hakmem_lab.allocators import Allocator
from hakmem_lab.ledger import Ledger, Row
from hakmem_lab.statistics import PAIRS_FOR_A_CLAIM
from hakmem_lab.subject import Cell

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
        """Measures what the ledger still lacks; interrupted, says how to go on."""
        ledger = Ledger(self.folder)
        record = environment.record(self.contestants, self.command) | {"base": self.base}
        if plan is not None:
            ledger.write_text(PLAN, json.dumps(plan, indent=1) + "\n")
        if not ledger.rows:
            ledger.write_environment(record)
        if float(record["load_average"]) > 1:
            console.print(f"[yellow]The machine is busy (load {record['load_average']}): ratios "
                          "will scatter.[/]")
        try:
            self._measure(ledger, console)
        except KeyboardInterrupt:
            if not ledger.rows:
                raise LabError("interrupted before the first round was complete") from None
            console.print("[yellow]Interrupted; complete rounds are kept.[/]")
        return ledger

    def _measure(self, ledger: Ledger, console: Console) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=30),
                   MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            total = len(self.cells) * len(self.contestants) * self.round_count
            task = bar.add_task("", total=total)

            def before(cell: Cell, number: int, allocator: Allocator) -> None:
                said = "warm-up" if number < 0 else f"round {number + 1}"
                bar.update(task, description=f"{cell.name}: {said}, {allocator.name}")

            def after(row: Row) -> None:
                if row.round >= 0:
                    bar.advance(task)
                if not row.is_ok:
                    bar.console.print(f"[red]{row.cell} on {row.allocator}:[/] ", end="")
                    bar.console.print(row.status, markup=False)

            for number, cell in enumerate(self.cells):
                rounds.measure_cell(cell, self.contestants, self.round_count, ledger,
                                    rounds.Progress(before, after), self.warms_up)
                bar.update(task, completed=(number + 1) * total // len(self.cells))


def read_plan(folder: Path) -> dict[str, Any]:
    """What a campaign was asked; LabError if the folder holds none."""
    try:
        return dict(json.loads((folder / PLAN).read_text()))
    except (OSError, ValueError):
        raise LabError(f"{folder} holds no run that could be resumed") from None


def smoke_note(round_count: int) -> str:
    """What must be said of few rounds."""
    if round_count >= PAIRS_FOR_A_CLAIM:
        return ""
    return f"Fewer than {PAIRS_FOR_A_CLAIM} rounds are a smoke test, no claim."
