"""`hakmem compare`: a user's own program on every allocator, and which one suits it."""

import json
import shlex
import subprocess
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click
from rich.console import Console

from hakmem import own_allocator
from hakmem_lab import LabError, ROOT
from hakmem_lab.measure import allocators, peers, places
from hakmem_lab.show import own
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.measure.subject import (OWN_GROUP, Cell, Subject, find_program, printable,
                                        refuse_if_not_preloadable)

FAMILY = "own"
EXAMPLE = "an index of all words in Python's standard library, by perl"
# All that a user's program needs of the release.
PARTS = ("hakmem", "witness", "launch", "distance")


@dataclass(frozen=True)
class Wish:
    allocators: str | None
    runs: int
    load: str | None
    until: str
    limit_s: float
    out: Path | None
    takes_all: bool = False
    as_json: bool = False
    opens: bool = False


def compare(command: Sequence[str], wish: Wish, console: Console) -> None:
    """Measures, shows the table, keeps rows, curves and a picture."""
    if wish.as_json:
        console = Console(stderr=True, highlight=False)
    cell = _cell(command, wish)
    refuse_if_not_preloadable(cell.subject.command[0])
    if brought := own_allocator.of_command(cell.subject.command[0]):
        console.print(brought.line(), style="yellow", markup=False, soft_wrap=True)
    contestants = ready_allocators(wish.allocators, console, wish.takes_all, PARTS)
    folder = places.new_folder(wish.out, printable(Path(cell.subject.command[0]).name[:60]))
    names = [each.name for each in contestants]
    base = allocators.SYSTEM if allocators.SYSTEM in names else names[0]
    campaign = Campaign(folder, places.command_line(), [cell], contestants, wish.runs, base,
                        warms_up=True)
    ledger = campaign.run(console)
    name = printable(Path(cell.subject.command[0]).name)
    if not any(row.is_ok for row in ledger.rows):
        reasons = {row.allocator: row.status for row in ledger.rows}
        raise LabError(f"{name} failed on all of {', '.join(reasons)}: {reasons[base]}")
    if wish.as_json:
        click.echo(json.dumps(own.facts(folder) | {"folder": str(folder.absolute())}, indent=1))
    else:
        own.show(folder, console)
    processes = max(row.processes for row in ledger.rows if row.is_ok)
    if processes > 1:
        console.print(f"{name} started {processes:,} processes; they are in the figures. If it is "
                      "a wrapper, name the program that it starts.", markup=False)
    console.print(f"rows: {places.shown(folder)}/results.csv", style="dim", markup=False)
    subprocess.run([ROOT / "hakmem", "report", *["--open"] * wish.opens, folder.absolute()],
                   check=False, stdout=console.file)
    if not all(row.is_ok for row in ledger.rows):
        raise SystemExit(1)


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


def example() -> tuple[str, ...]:
    """Every machine with git and python3 has it. It makes millions of small strings and growing
    arrays."""
    files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))
    return ("perl", str(ROOT / "lab/inputs/word_index.pl"), *map(str, files))


def _cell(command: Sequence[str], wish: Wish) -> Cell:
    if not command:
        return Cell(EXAMPLE, FAMILY, Subject(example()), group=OWN_GROUP)
    load = () if wish.load is None else _words("--load", wish.load)
    if load:
        _refuse_malformed(wish.until or "port:{port}", command)
    elif wish.until:
        raise LabError("--until needs --load, the command whose time is measured")
    subject = Subject(tuple(command), limit_s=wish.limit_s, load=load, until=wish.until,
                      reads_stdin=not load,
                      placeholders=("port", "folder") if load else ())
    title = subject.words() + (f" under {printable(shlex.join(load))}" if load else "")
    return Cell(title, FAMILY, subject, group=OWN_GROUP)


def _words(option: str, text: str) -> tuple[str, ...]:
    """Of a command whose program is there."""
    try:
        words = tuple(shlex.split(text))
    except ValueError as error:
        raise LabError(f"{option}: {error}") from None
    if not words:
        raise LabError(f"{option} names no program")
    find_program(words[0])
    return words


def _refuse_malformed(until: str, command: Sequence[str]) -> None:
    """LabError if a server could never be ready."""
    kind, _, what = until.partition(":")
    is_port = what == "{port}" or what.isdecimal() and 0 < int(what) < 65536
    if kind not in ("port", "log", "cmd") or not what or kind == "port" and not is_port:
        raise LabError(f"--until is port:PORT, log:TEXT or cmd:COMMAND, not '{until}'")
    if until == "port:{port}" and not any("{port}" in word for word in command):
        raise LabError("no word of the server contains {port}; add it, or say with --until how to "
                       "know that the server is ready, as port:6379")
    if kind == "cmd":
        _words("--until cmd", what)
