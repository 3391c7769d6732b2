"""A campaign: cells × allocators × rounds into one ledger, with a progress bar, to be resumed.

Rounds are the outer loop, so that those of a cell are spread over the whole run; the order of the
cells is drawn for each round. What was asked is kept beside the rows (plan.json), so that the
campaign can go on after an interruption exactly as it began. Ctrl-C, SIGTERM and SIGHUP end it at
once; complete rounds are kept.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from hakmem_lab import LabError
from hakmem_lab.measure import environment, rounds
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.ledger import ENVIRONMENT, Ledger, Row, locked, read_object
from hakmem_lab.measure.plan import Plan, in_turn
from hakmem_lab.measure.subject import NEVER, Cell

PLAN = "plan.json"
BUSY_CPUS = 0.5  # that others may use when a campaign begins


@dataclass
class Campaign:
    folder: Path
    command: str  # what was typed
    cells: Sequence[Cell]
    contestants: Sequence[Allocator]
    round_count: int  # of each cell; the plan may add some
    base: str = ""  # what relative costs relate to; "": HAKMEM
    warms_up: bool = False  # every allocator, before the first round
    plan: Plan = field(default_factory=Plan)

    def run(self, console: Console, kept: dict[str, Any] | None = None) -> Ledger:
        """Measures what the ledger still lacks; interrupted, it keeps the rounds that are
        complete. `kept` is what a resumption has to know."""
        with locked(self.folder):
            ledger = Ledger(self.folder)
            self._prepare(ledger, console, kept)
            try:
                self._measure(ledger, console)
            except KeyboardInterrupt:
                if not ledger.rows:
                    raise LabError("interrupted before the first round was complete") from None
                console.print("[yellow]Interrupted; complete rounds are kept.[/]")
        return ledger

    def goes_on(self, cell: Cell, rows: Sequence[Row]) -> bool:
        """Does a cell with these rows lack rounds?"""
        return self.plan.goes_on(cell, rows, self.round_count, self.base)

    def _prepare(self, ledger: Ledger, console: Console, kept: dict[str, Any] | None) -> None:
        _refuse_regime(self.plan.regime)
        record = environment.record(self.contestants, self.command) | {
            "base": self.base, "seed": self.plan.seed, "regime": self.plan.regime,
            "may_be_busy": not self.plan.refuses_busy,
            "programs": environment.program_versions(self.cells)}
        if ledger.rows:
            seed = self._refuse_other(read_object(self.folder / ENVIRONMENT), record)
            self.plan = replace(self.plan, seed=seed)
        if self.plan.refuses_busy:
            _refuse_busy()
        if not ledger.rows:
            ledger.write_object(ENVIRONMENT, record)
        if kept is not None:
            ledger.write_object(PLAN, kept)
        names = environment.not_handed_over()
        if names:
            console.print(f"not handed over to what is measured: {', '.join(names)}",
                          style="yellow", markup=False)
        if float(record["load_average"]) > 1:
            console.print(f"[yellow]The machine is busy (load {record['load_average']}): ratios "
                          "will scatter.[/]")

    def _refuse_other(self, then: dict[str, Any], now: dict[str, Any]) -> int:
        """LabError unless what is here now is what the rows were measured on. Their seed."""
        begun, own = then.get("allocators"), now["allocators"]
        if not isinstance(begun, dict) or not isinstance(then.get("seed"), int):
            raise LabError(f"{self.folder / ENVIRONMENT} is damaged: it names no allocators or no "
                           "seed")
        if any(then.get(name) != now[name] for name in ("commit", "dirty")):
            raise LabError(f"{self.folder} holds rows of {_told(then)} and the checkout is at "
                           f"{_told(now)}: check that out, or begin anew with --out and a new "
                           "folder")
        if sorted(begun) != sorted(own):
            raise LabError(f"{self.folder} was begun with {', '.join(begun)}; here are now "
                           f"{', '.join(own)}")
        if changed := [name for name in own if begun[name] != own[name]]:
            raise LabError(f"{self.folder} was begun with another {' and another '.join(changed)} "
                           "of the same name; begin anew with --out and a new folder")
        return int(then["seed"])

    def _measure(self, ledger: Ledger, console: Console) -> None:
        columns = (TextColumn("{task.description}", markup=False), BarColumn(bar_width=30),
                   MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("", total=0)
            told: set[tuple[str, str]] = set()

            def before(cell: Cell, number: int, allocator: Allocator) -> None:
                said = "warm-up" if number < 0 else f"round {number + 1}"
                bar.update(task, description=f"{cell.name}: {said}, {allocator.name}")

            def after(row: Row) -> None:
                said = row.status if not row.is_ok else (
                    "did not end when asked to and was killed" * ("was_killed" in row.figures))
                if said and (row.cell, row.allocator) not in told:
                    told.add((row.cell, row.allocator))
                    bar.console.print(f"{row.cell} on {row.allocator}: ", end="", markup=False,
                                      style="yellow" if row.is_ok else "red")
                    bar.console.print(said, markup=False)

            progress = rounds.Progress(before, after)
            every = [rounds.CellRounds(cell, self.contestants, ledger, self.plan, self.warms_up,
                                       progress) for cell in self.cells]
            self._pass_by_pass(every, lambda done, total: bar.update(task, completed=done,
                                                                     total=total))

    def _pass_by_pass(self, every: Sequence[rounds.CellRounds],
                      tell: Callable[[int, int], None]) -> None:
        """A round of each cell that lacks one, and again. A resumed campaign finds its place: a
        pass adds a round to the cells that have as many as there were passes before."""
        end = time.monotonic() + self.plan.budget_s
        number, total = 0, self.round_count * len(every)
        while wanted := [each for each in every
                         if not each.is_over and self.goes_on(each.cell, each.rows)]:
            due = [each for each in wanted if each.next == number]
            total += len(due) * (number >= self.round_count)
            for each in in_turn(every, number, self.plan.seed):
                if each not in due:
                    continue
                if number >= self.round_count and time.monotonic() > end:
                    return
                each.measure()
                tell(sum(each.next for each in every), total)
            number += 1


def _refuse_regime(regime: str) -> None:
    """LabError if the machine is in another one and no process can choose it for itself."""
    is_now = environment.thp_mode()
    if regime not in ("", NEVER, is_now):
        raise LabError(f"huge pages are in mode '{is_now}' on this machine; as root: echo {regime} "
                       "> /sys/kernel/mm/transparent_hugepage/enabled")


def _refuse_busy() -> None:
    busy = environment.others_cpus()
    if busy > BUSY_CPUS:
        raise LabError(f"the machine is busy, others use {busy:.1f} processors: wait, or measure "
                       "all the same with --busy-ok")


def _told(record: dict[str, Any]) -> str:
    return f"commit {record['commit']}{' with changes' * bool(record['dirty'])}"


def read_plan(folder: Path) -> dict[str, Any]:
    """What a campaign was asked; LabError if the folder holds none."""
    if not (folder / PLAN).exists():
        raise LabError(f"{folder} holds no run that could be resumed")
    return read_object(folder / PLAN)
