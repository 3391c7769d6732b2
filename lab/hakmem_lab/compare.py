"""`hakmem compare`: a user's own program on every allocator, and which one suits it."""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hakmem_lab import LabError, allocators, cli, table, workload
from hakmem_lab.campaign import Campaign
from hakmem_lab.preload import refuse_if_not_preloadable
from hakmem_lab.report import write_report
from hakmem_lab.subject import Cell, Subject, find_program

FAMILY = "own"


@dataclass(frozen=True)
class Wish:
    allocators: str | None
    runs: int
    load: str | None
    until: str
    limit_s: float
    out: Path | None


def compare(command: Sequence[str], wish: Wish, console: Console) -> None:
    """Measures, shows the table, keeps rows, curves and a picture."""
    cell = _cell(command, wish)
    refuse_if_not_preloadable(find_program(cell.subject.command[0]))
    contestants = ready_allocators(wish.allocators, console)
    folder = cli.new_folder(wish.out, Path(cell.subject.command[0]).name)
    names = [each.name for each in contestants]
    base = allocators.SYSTEM if allocators.SYSTEM in names else names[0]
    campaign = Campaign(folder, f"hakmem compare -n {wish.runs} -- {cell.subject.words()}",
                        [cell], contestants, wish.runs, base, warms_up=True)
    ledger = campaign.run(console)
    if not any(row.is_ok for row in ledger.rows):
        raise LabError(ledger.rows[0].status)
    table.show_comparison(folder, console)
    write_report([folder], folder / "report.html")
    console.print(f"plots: {cli.shown(folder)}/report.html; rows: results.csv beside it",
                  style="dim", markup=False)


def ready_allocators(wanted: str | None, console: Console) -> list[allocators.Allocator]:
    """Builds what is missing, HAKMEM always, the peers at the first time they are wanted."""
    with console.status("building the release"):
        allocators.build_release()
    missing = allocators.unbuilt_peers(wanted)
    if missing:
        console.print("Other allocators are built once, from their registries: some minutes. "
                      "`--allocators hakmem,system` does without.", style="dim")
        allocators.build_peers(missing)
    return allocators.choose(wanted)


def _cell(command: Sequence[str], wish: Wish) -> Cell:
    if not command:
        return Cell(workload.TITLE, FAMILY, Subject(tuple(workload.default_command())))
    try:
        load = tuple(shlex.split(wish.load)) if wish.load else ()
    except ValueError as error:
        raise LabError(f"--load: {error}") from None
    if wish.until and not load:
        raise LabError("--until needs --load: what the server is to be timed with")
    if wish.until and wish.until.partition(":")[0] not in ("port", "log", "cmd"):
        raise LabError(f"--until is port:PORT, log:TEXT or cmd:COMMAND, not '{wish.until}'")
    if load:
        find_program(load[0])
    subject = Subject(tuple(command), limit_s=wish.limit_s, load=load, until=wish.until)
    title = subject.words() + (f" under {shlex.join(load)}" if load else "")
    return Cell(title, FAMILY, subject)
