"""`hakmem compare`: a user's own program on every allocator, and which one suits it."""

import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hakmem_lab import LabError, ROOT
from hakmem_lab.measure import allocators, peers, places, workload
from hakmem_lab.show import own
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.measure.ledger import Row
from hakmem_lab.measure.preload import refuse_if_not_preloadable
from hakmem_lab.measure.subject import OWN_GROUP, Cell, Subject, find_program, printable

FAMILY = "own"
PARTS = ("hakmem", "witness", "launch")  # all that a user's program needs of the release


@dataclass(frozen=True)
class Wish:
    allocators: str | None
    runs: int
    load: str | None
    until: str
    limit_s: float
    out: Path | None
    takes_all: bool = False


def compare(command: Sequence[str], wish: Wish, console: Console) -> None:
    """Measures, shows the table, keeps rows, curves and a picture."""
    cell = _cell(command, wish)
    refuse_if_not_preloadable(find_program(cell.subject.command[0]))
    contestants = ready_allocators(wish.allocators, console, wish.takes_all, PARTS)
    folder = places.new_folder(wish.out, printable(Path(cell.subject.command[0]).name[:60]))
    names = [each.name for each in contestants]
    base = allocators.SYSTEM if allocators.SYSTEM in names else names[0]
    campaign = Campaign(folder, places.command_line(), [cell], contestants, wish.runs, base,
                        warms_up=True)
    ledger = campaign.run(console)
    name = printable(Path(cell.subject.command[0]).name)
    if not any(row.is_ok for row in ledger.rows):
        raise LabError(_failure_of_all(name, base, ledger.rows))
    own.show(folder, console)
    processes = max(row.processes for row in ledger.rows if row.is_ok)
    if processes > 1:
        console.print(f"{name} started {processes:,} processes.", markup=False)
    console.print(f"rows: {places.shown(folder)}/results.csv; the same as a page:", style="dim",
                  markup=False)
    subprocess.run([ROOT / "hakmem", "report", folder.absolute()], check=False)
    if not all(row.is_ok for row in ledger.rows):
        raise SystemExit(1)


def _failure_of_all(name: str, base: str, rows: Sequence[Row]) -> str:
    """Why there is no figure; what happens on all allocators is the program's own doing."""
    reasons = {row.allocator: row.status for row in rows}
    endings = {reason.partition(":")[0] for reason in reasons.values()}
    reason = reasons.get(base, rows[0].status)
    if len(endings) > 1 or not reason.startswith("died of "):
        return reason
    ending, colon, words = reason.partition(":")
    where = f"all {len(reasons)} allocators" if len(reasons) > 1 else rows[0].allocator
    return f"{name} {ending} on {where}{colon}{words}"


def ready_allocators(wanted: str | None, console: Console, takes_all: bool = True,
                     targets: Sequence[str] = ()) -> list[allocators.Allocator]:
    """Builds what is missing: HAKMEM, and the other allocators; without `takes_all` not those
    that take minutes, unless they are named."""
    allocators.refuse_unknown(wanted)
    with console.status("building the release"):
        allocators.build_release(*targets)
    missing = allocators.lacking(wanted)
    later = [name for name in missing if wanted is None and not takes_all and peers.is_source(name)]
    peers.build([name for name in missing if name not in later], console)
    if later:
        console.print(f"not built yet: {', '.join(later)}; with --all they take part, many minutes "
                      "once", style="dim")
    return allocators.choose(wanted)


def _cell(command: Sequence[str], wish: Wish) -> Cell:
    if not command:
        return Cell(workload.TITLE, FAMILY, Subject(tuple(workload.default_command())),
                    group=OWN_GROUP)
    try:
        load = tuple(shlex.split(wish.load)) if wish.load else ()
    except ValueError as error:
        raise LabError(f"--load: {error}") from None
    if wish.load is not None and not load:
        raise LabError("--load is empty: what the server is to be timed with")
    if wish.until and not load:
        raise LabError("--until needs --load: what the server is to be timed with")
    if load:
        find_program(load[0])
        _refuse_malformed(wish.until or "port:{port}", command)
    subject = Subject(tuple(command), limit_s=wish.limit_s, load=load, until=wish.until,
                      reads_stdin=not load,
                      placeholders=("port", "folder") if load else ())
    title = subject.words() + (f" under {printable(shlex.join(load))}" if load else "")
    return Cell(title, FAMILY, subject, group=OWN_GROUP)


def _refuse_malformed(until: str, command: Sequence[str]) -> None:
    """LabError if a server could never be ready."""
    kind, _, what = until.partition(":")
    if kind not in ("port", "log", "cmd"):
        raise LabError(f"--until is port:PORT, log:TEXT or cmd:COMMAND, not '{until}'")
    if not what:
        raise LabError(f"--until {until} does not say which")
    if until == "port:{port}" and not any("{port}" in word for word in command):
        raise LabError("no word of the server is or has {port}; put it there, or say with --until "
                       "how to know that the server is ready, as port:6379")
    if kind == "port" and what != "{port}" and not (what.isdecimal() and 0 < int(what) < 65536):
        raise LabError(f"--until port: '{what}' is no port")
    if kind == "cmd":
        try:
            words = shlex.split(what)
        except ValueError as error:
            raise LabError(f"--until cmd: {error}") from None
        find_program(words[0])
