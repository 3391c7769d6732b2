"""Rounds of a cell: in each, every allocator runs once, in an order drawn for that round.

A round is written to the ledger whole or not at all, so its rows may be paired; they stand there in
the order of the contestants. A run that fails is a row with the reason; that allocator is left out
of the cell's further rounds. Order, layout and padding come from the campaign's seed, the cell and
the number of the round: a campaign that is resumed or repeated draws the same.
"""

import csv
import hashlib
import io
import json
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from hakmem_lab import LabError
from hakmem_lab.measure import allocators, environment, execution
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.ledger import CURVES, RAW, Ledger, Row
from hakmem_lab.measure.execution import Measurement
from hakmem_lab.measure.plan import Draw, Plan, drawn, in_turn
from hakmem_lab.measure.subject import OWN_GROUP, Cell, Subject, printable

LONGEST_NAME = 100  # of a log, without its ending
LARGE_BYTES = 64 << 20  # a cell that holds more is warmed up before each of its rounds
LAYOUTS = 4  # of a benchmark program, see CMakeLists.txt

# What HAKMEM says: warnings and reports with process and program, the end of a crime without.
OWN_LINE = re.compile(r"hakmem(?:\[\d+ [^\]]*\])?: (.*)")


@dataclass(frozen=True)
class Progress:
    """Who wants to know how far it is: called before every run, and with its row when that is
    judged, at the end of the round."""

    before_run: Callable[[Cell, int, Allocator], None] = lambda cell, number, allocator: None
    after_run: Callable[[Row], None] = lambda row: None


class CellRounds:
    """The rounds of one cell: those that the ledger holds, and further ones."""

    def __init__(self, cell: Cell, contestants: Sequence[Allocator], ledger: Ledger,
                 plan: Plan, warms_up: bool = False, progress: Progress = Progress()) -> None:
        """With `warms_up` each allocator has a run that does not count before the first round,
        and not only the one that comes first."""
        self.cell, self.ledger, self.plan, self.progress = cell, ledger, plan, progress
        self.contestants = [each for each in contestants
                            if cell.subject.has_json or not each.linked]
        self.warms_up = warms_up
        _drop_half_a_round(cell, self.contestants, ledger)
        self.rows = [row for row in ledger.rows if row.cell == cell.name]
        self.next = 1 + max((row.round for row in self.rows), default=-1)

    @property
    def failed(self) -> set[str]:
        return {row.allocator for row in self.rows if not row.is_ok}

    @property
    def is_over(self) -> bool:
        """Has every allocator failed?"""
        return all(each.name in self.failed for each in self.contestants)

    def measure(self) -> None:
        """Adds the next round; interrupted, it adds nothing."""
        names = [each.name for each in self.contestants]
        where = self.plan.seed, self.cell.name
        taking_part = [each for each in in_turn(self.contestants, self.next, *where)
                       if each.name not in self.failed]
        draw = drawn(layouts(self.cell, self.contestants), self.plan.regime, *where, self.next)
        rows = self._warm_up(taking_part, draw)
        without_figures = {row.allocator for row in rows}
        runs = {}
        for allocator in taking_part:
            if allocator.name in without_figures:
                continue
            self.progress.before_run(self.cell, self.next, allocator)
            row, measured = _one_row(self.cell, allocator, self.next, draw)
            if measured:
                runs[allocator.name] = measured
            rows.append(row)
        reference = _reference([*self.rows, *rows], names)
        rows = sorted((_judged(row, runs, reference) for row in rows),
                      key=lambda row: names.index(row.allocator))
        for row in rows:
            self.progress.after_run(row)
        self.ledger.append(rows)
        self.rows += rows
        _keep_raw(self.ledger, self.cell, self.next, runs)
        if self.next == 0 or self.cell.group == OWN_GROUP:
            _keep_curves(self.ledger, self.cell, self.next, runs)
        self.next += 1

    def _warm_up(self, taking_part: Sequence[Allocator], draw: Draw) -> list[Row]:
        """A run that does not count, of the cell's own kind: what ran before it left the machine's
        memory in another state. Small cells need it once only. What fails in it is a row."""
        last = [row.peak_rss_bytes for row in self.rows if row.round == self.next - 1]
        if self.rows and max(last, default=0) < LARGE_BYTES:
            return []
        rows = []
        for allocator in taking_part[:None if self.warms_up and not self.rows else 1]:
            self.progress.before_run(self.cell, -1, allocator)
            rows.append(_one_row(self.cell, allocator, self.next, draw)[0])
        return [row for row in rows if not row.is_ok]


def layouts(cell: Cell, contestants: Sequence[Allocator]) -> list[int]:
    """Those that a benchmark program of ours has for all contestants; other programs have one."""
    return [layout for layout in range(LAYOUTS)
            if layout == 0 or cell.subject.is_ours and all(
                Path(program_for(cell.subject, each, Draw(layout)).command[0]).exists()
                for each in contestants)]


def _drop_half_a_round(cell: Cell, contestants: Sequence[Allocator], ledger: Ledger) -> None:
    """What a power cut left of a round that was being written is measured again."""
    kept = [row for row in ledger.rows if row.cell == cell.name]
    last = max((row.round for row in kept), default=-1)
    there = {row.allocator for row in kept if row.round == last}
    failed = {row.allocator for row in kept if not row.is_ok and row.round < last}
    if last >= 0 and {each.name for each in contestants} - failed - there:
        ledger.drop(cell.name, last)


def _reference(rows: Iterable[Row], names: Sequence[str]) -> Row | None:
    """What the cell does on the system's allocator, or else on the first that it runs on; it must
    do the same on all others."""
    first: dict[str, Row] = {}
    for row in rows:
        if row.is_ok:
            first.setdefault(row.allocator, row)
    return next((first[name] for name in (allocators.SYSTEM, *names) if name in first), None)


def _failed(row: Row, error: object) -> Row:
    """The row with the reason and without figures."""
    known = ("time", "cell", "family", "command", "allocator", "round", "settings", "version",
             "commit", "dirty", "group", "layout", "regime")
    return Row(status=printable(str(error)), **{name: getattr(row, name) for name in known})


def _one_row(cell: Cell, allocator: Allocator, number: int, draw: Draw,
             ) -> tuple[Row, Measurement | None]:
    commit, dirty = environment.commit_of(allocator)
    blank = Row(time=time.strftime("%Y-%m-%dT%H:%M:%S"), cell=cell.name, family=cell.family,
                command=cell.subject.words(), allocator=allocator.name, round=number, status="ok",
                settings=_told(cell.subject.settings | allocator.settings),
                version=allocator.version, commit=commit, dirty=dirty, group=cell.group,
                layout=draw.layout, regime=draw.regime)
    subject = program_for(cell.subject, allocator, draw)
    try:
        measured = execution.run(subject, allocator)
        row = _with_figures(blank, measured)
        if subject.is_server:  # what it is judged by
            row = replace(row, figures=row.figures | {"load_s": row.wall_s})
        if subject.has_json:
            row = _with_own_figures(row, measured, subject, allocator)
        _refuse_wreck(measured, subject)
        _refuse_complaints(measured, allocator)
    except LabError as error:
        return _failed(blank, error), None
    return row, measured


def _told(settings: dict[str, str]) -> dict[str, str]:
    """Settings without the paths of this machine."""
    return {name: Path(text).name if text.startswith("/") else text
            for name, text in settings.items()}


def program_for(subject: Subject, allocator: Allocator, draw: Draw = Draw()) -> Subject:
    """The subject in the drawn surroundings. A benchmark program of ours exists once per linked
    allocator and layout; preloading takes `_system`."""
    subject = replace(subject, settings=subject.settings | draw.settings())
    if not subject.is_ours:
        return subject
    name = f"{subject.command[0]}_{allocator.linked or 'system'}"
    name += f"_layout{draw.layout}" if draw.layout else ""
    return replace(subject, command=(str(allocators.BUILD / name), *subject.command[1:], "--json"))


_MEASURED = {each.name for each in fields(Row)} & {each.name for each in fields(Measurement)} \
    - {"status"}  # of a row it is a word


def _with_figures(row: Row, measured: Measurement) -> Row:
    endings = {"exit_status": float(measured.status), "was_killed": float(measured.was_killed)}
    return replace(
        row, cost_ns=measured.wall_s * 1e9, cpu_s=measured.cpu_s,
        owner=Path(measured.proof.owner).name, library=environment.hash_of(measured.proof.owner),
        processes=measured.proof.processes, counter=measured.proof.counters.get("system_calls", 0),
        figures={name: value for name, value in endings.items() if value},
        **{name: getattr(measured, name) for name in _MEASURED})


# What a benchmark program prints of itself and what has a column already.
_NO_FIGURES = {"program", "parameters", "operation", "operations", "seconds", "ns_per_operation",
               "peak_rss_kib", "end_rss_kib", "malloc_owner", "hakmem_engaged"}


def _with_own_figures(row: Row, measured: Measurement, subject: Subject,
                      allocator: Allocator) -> Row:
    """The figures that a program of ours took itself, within its own clock, and its proof."""
    if measured.status != 0:
        raise LabError(_ending(measured))
    line = next((each for each in measured.output.splitlines() if each.startswith("{")), None)
    if line is None:
        raise LabError(f"{Path(subject.command[0]).name} printed no figures")
    told = json.loads(line)
    refuse_misread(subject, told["parameters"])
    owner = told["malloc_owner"]
    if not allocator.is_owner(owner) or allocators.is_own(allocator) != told["hakmem_engaged"]:
        raise LabError(f"{allocator.name} was not engaged: malloc belongs to {Path(owner).name}"
                       + ("" if told["hakmem_engaged"] else ", and HAKMEM owns none of its blocks"))
    return replace(
        row, cost_ns=told["ns_per_operation"], operations=told["operations"],
        peak_rss_bytes=told["peak_rss_kib"] * 1024, end_rss_bytes=told["end_rss_kib"] * 1024,
        parameters=told["parameters"], owner=Path(owner).name,
        library=environment.hash_of(owner), processes=1,
        counter=int(told["hakmem_engaged"]),
        figures={name: value for name, value in told.items() if name not in _NO_FIGURES})


def refuse_misread(subject: Subject, understood: dict[str, Any]) -> None:
    """What was asked by name must be what the program says it understood."""
    for word in subject.command[1:]:
        name, equals, value = word.removeprefix("--").partition("=")
        if not word.startswith("--") or not equals:
            continue
        if str(understood.get(name)) != value:
            raise LabError(f"{Path(subject.command[0]).name} was asked for {name}={value} and "
                           f"understood {name}={understood.get(name, 'nothing')}")


def _ending(measured: Measurement) -> str:
    said = measured.output.strip().splitlines()[-1:]
    words = "".join(f": {line.strip()[:200]}" for line in said)
    if measured.status < 0:
        return f"died of {execution.signal_name(-measured.status)}{words}"
    return f"ended with status {measured.status}{words}"


def _refuse_wreck(measured: Measurement, subject: Subject) -> None:
    """A crash is no measurement, nor is a command that goes on after its end."""
    if measured.status < 0:
        raise LabError(_ending(measured))
    if measured.left_behind:
        count = measured.left_behind
        raise LabError(f"{Path(subject.command[0]).name} left {count} process"
                       f"{'es' * (count > 1)} in the background, whose cost is not known; let it "
                       "wait for them, or name a --load if it is a server")


def _judged(row: Row, runs: dict[str, Measurement], reference: Row | None) -> Row:
    """Another exit status or other parameters than the reference's are no measurement."""
    if reference is None or not row.is_ok:
        return row
    measured, status = runs[row.allocator], int(reference.figures.get("exit_status", 0))
    if measured.status != status:
        error = f"{_ending(measured)}; on {reference.allocator} with {status}"
    elif row.parameters != reference.parameters:
        error = (f"understood {row.parameters}, on {reference.allocator} "
                 f"{reference.parameters}")
    else:
        return row
    del runs[row.allocator]
    return _failed(row, error)


def _refuse_complaints(measured: Measurement, allocator: Allocator) -> None:
    """HAKMEM speaks when an option is malformed or a call is a crime: no figure of that. What a
    program has not freed, which HAKMEM tells in debug mode, costs nothing."""
    said = [match.group(1) for match in map(OWN_LINE.match, measured.output.splitlines())
            if match and not match.group(1).startswith("not freed: ")]
    if said and allocators.is_own(allocator):
        raise LabError(f"the allocator said '{said[0][:192]}'")


def log_name(cell: str) -> str:
    """Of the log of a cell: as a file may be called, and the cell's own."""
    name = "".join(each if each.isascii() and each.isalnum() else "-" for each in cell)
    if len(name) <= LONGEST_NAME and cell.isascii():
        return name
    return f"{name[:LONGEST_NAME - 13]}-{hashlib.sha256(cell.encode()).hexdigest()[:12]}"


def _keep_raw(ledger: Ledger, cell: Cell, number: int, runs: dict[str, Measurement]) -> None:
    """What the programs printed, one log per cell."""
    text = "".join(f"== round {number}, {allocator}, status {run.status}, {run.wall_s:.6f} s\n"
                   f"{run.output[-4096:].rstrip()}\n" for allocator, run in runs.items())
    ledger.append_text(f"{RAW}/{log_name(cell.name)}.log", text)


def _keep_curves(ledger: Ledger, cell: Cell, number: int, runs: dict[str, Measurement]) -> None:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if not (ledger.folder / CURVES).exists():
        writer.writerow(("cell", "allocator", "seconds", "rss_bytes", "round"))
    for allocator, run in runs.items():
        writer.writerows((cell.name, allocator, f"{seconds:.4f}", size, number)
                         for seconds, size in run.curve)
    ledger.append_text(CURVES, lines.getvalue())
