"""Allocators in turn, round by round: A B C, B C A, … so that no place in the order is anybody's.

A round lands in the ledger whole or not at all, so its rows may be paired. What went wrong on an
allocator is a row too; that allocator is left out of the cell's further rounds.
"""

import csv
import io
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hakmem_lab import LabError, allocators, environment, measure
from hakmem_lab.allocators import Allocator
from hakmem_lab.ledger import CURVES, RAW, Ledger, Row
from hakmem_lab.measure import Measurement
from hakmem_lab.subject import Cell, Subject


@dataclass(frozen=True)
class Progress:
    """Who wants to know how far it is: called before every run."""

    before_run: Callable[[Cell, int, Allocator], None] = lambda cell, number, allocator: None
    after_run: Callable[[Row], None] = lambda row: None


def measure_cell(cell: Cell, contestants: Sequence[Allocator], round_count: int, ledger: Ledger,
                 progress: Progress = Progress(), warms_up: bool = False) -> None:
    """Adds the rounds that the ledger still lacks of this cell.

    With `warms_up` each allocator has one run first that does not count. Interrupted, it keeps
    the rounds that are complete."""
    kept = [row for row in ledger.rows if row.cell == cell.name]
    failed = {row.allocator for row in kept if not row.is_ok}
    first = 1 + max((row.round for row in kept), default=-1)
    contestants = [each for each in contestants
                   if (cell.has_floor or each.name != allocators.FLOOR)
                   and (cell.subject.has_json or not each.linked)]
    reference = _Reference()
    if warms_up and first < round_count:
        for allocator in contestants:
            progress.before_run(cell, -1, allocator)
            row, _ = _one_row(cell, allocator, -1, reference)
            if not row.is_ok:
                failed.add(allocator.name)
                ledger.append([row])
                progress.after_run(row)
    for number in range(first, round_count):
        turn = number % max(1, len(contestants))
        rows, runs = [], {}
        for allocator in [*contestants[turn:], *contestants[:turn]]:
            if allocator.name in failed:
                continue
            progress.before_run(cell, number, allocator)
            row, measured = _one_row(cell, allocator, number, reference)
            if not row.is_ok:
                failed.add(allocator.name)
            if measured:
                runs[allocator.name] = measured
            rows.append(row)
            progress.after_run(row)
        if not rows:
            break
        ledger.append(rows)
        _keep_raw(ledger, cell, number, runs)
        if number == first:
            _keep_curves(ledger, cell, runs)


@dataclass
class _Reference:
    """What the first good run of the cell did; all others must do the same."""

    status: int | None = None
    parameters: dict[str, Any] | None = None


def _one_row(cell: Cell, allocator: Allocator, number: int,
             reference: _Reference) -> tuple[Row, Measurement | None]:
    commit, dirty = environment.commit()
    blank = Row(time=time.strftime("%Y-%m-%dT%H:%M:%S"), cell=cell.name, family=cell.family,
              command=cell.subject.words(), allocator=allocator.name, round=number, status="ok",
              settings=_told(cell.subject.settings | allocator.settings),
              version=allocator.version, commit=commit, dirty=dirty)
    subject = program_for(cell.subject, allocator)
    try:
        measured = measure.run(subject, allocator)
        row = _with_figures(blank, measured)
        if subject.has_json:
            row = _with_own_figures(row, measured, subject, allocator)
        _refuse_unlike(row, measured, reference)
        _refuse_complaints(measured, allocator)
    except LabError as error:
        return replace(blank, status=str(error)), None
    return row, measured


def _told(settings: dict[str, str]) -> dict[str, str]:
    """Settings without the paths of this machine."""
    return {name: Path(text).name if text.startswith("/") else text
            for name, text in settings.items()}


def program_for(subject: Subject, allocator: Allocator) -> Subject:
    """A benchmark program of ours exists once per linked allocator; preloading takes `_system`."""
    if not subject.has_json or "/" in subject.command[0]:
        return subject
    name = f"{subject.command[0]}_{allocator.linked or 'system'}"
    return replace(subject, command=(str(allocators.BUILD / name), *subject.command[1:], "--json"))


def _with_figures(row: Row, measured: Measurement) -> Row:
    return replace(
        row, cost_ns=measured.wall_s * 1e9, wall_s=measured.wall_s, cpu_s=measured.cpu_s,
        peak_rss_bytes=measured.peak_rss_bytes, mean_rss_bytes=measured.mean_rss_bytes,
        end_rss_bytes=measured.end_rss_bytes, rss_byte_seconds=measured.rss_byte_seconds,
        lazy_free_bytes=measured.lazy_free_bytes, minor_faults=measured.minor_faults,
        major_faults=measured.major_faults, owner=Path(measured.proof.owner).name,
        processes=measured.proof.processes,
        counter=measured.proof.counters.get("system_calls", 0),
        figures={"exit_status": measured.status} if measured.status else {})


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
        parameters=told["parameters"], owner=Path(owner).name, processes=1,
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
        return f"died of {measure.signal_name(-measured.status)}{words}"
    return f"ended with status {measured.status}{words}"


def _refuse_unlike(row: Row, measured: Measurement, reference: _Reference) -> None:
    """A crash, or an exit status or parameters other than the first run's, is no measurement."""
    if measured.status < 0:
        raise LabError(_ending(measured))
    if reference.status is None:
        reference.status, reference.parameters = measured.status, row.parameters
    if measured.status != reference.status:
        raise LabError(f"{_ending(measured)}; the first run ended with {reference.status}")
    if row.parameters != reference.parameters:
        raise LabError(f"understood {row.parameters}, the others {reference.parameters}")


def _refuse_complaints(measured: Measurement, allocator: Allocator) -> None:
    """HAKMEM speaks when an option is malformed or a call is a crime: no figure of that."""
    said = [line for line in measured.output.splitlines() if line.startswith("hakmem: ")]
    if said and allocators.is_own(allocator):
        raise LabError(f"the allocator said '{said[0][8:200]}'")


def _keep_raw(ledger: Ledger, cell: Cell, number: int, runs: dict[str, Measurement]) -> None:
    """What the programs printed, one log per cell."""
    name = "".join(each if each.isalnum() else "-" for each in cell.name)
    text = "".join(f"== round {number}, {allocator}, status {run.status}, {run.wall_s:.6f} s\n"
                   f"{run.output[-4096:].rstrip()}\n" for allocator, run in runs.items())
    ledger.append_text(f"{RAW}/{name}.log", text)


def _keep_curves(ledger: Ledger, cell: Cell, runs: dict[str, Measurement]) -> None:
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    if not (ledger.folder / CURVES).exists():
        writer.writerow(("cell", "allocator", "seconds", "rss_bytes"))
    for allocator, run in runs.items():
        writer.writerows((cell.name, allocator, f"{seconds:.4f}", size)
                         for seconds, size in run.curve)
    ledger.append_text(CURVES, lines.getvalue())
