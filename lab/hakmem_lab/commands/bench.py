"""`hakmem bench` and `hakmem suite`: many cells on many allocators, to be resumed."""

import json
import math
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, get_origin, get_type_hints

from rich.console import Console

from hakmem_lab import LabError
from hakmem_lab.commands import compare
from hakmem_lab.measure import allocators, matrix, places, programs
from hakmem_lab.show import table
from hakmem_lab.measure.campaign import PLAN, Campaign, read_plan
from hakmem_lab.measure.plan import Plan
from hakmem_lab.measure.subject import Cell

QUICK_ROUNDS, FULL_ROUNDS = 5, 10
QUICK_ALLOCATORS = "hakmem,system,mimalloc3,mimalloc2,jemalloc,tcmalloc,snmalloc,rpmalloc"


@dataclass(frozen=True)
class Wish:
    quick: bool = False
    cells: Sequence[str] = ()
    with_programs: bool = True
    runs: int | None = None
    most: int | None = None
    see: float = 2.0  # percent
    budget: float | None = None  # minutes
    seed: int | None = None
    regime: str = ""
    busy_ok: bool = False
    full: bool = False
    allocators: str | None = None
    out: Path | None = None
    suite: str = ""  # the path of a user's programs, instead of the matrix


def matching(cells: Sequence[Cell], texts: Sequence[str]) -> list[Cell]:
    """The cells whose name holds one of the texts. A whole name means that cell, the name of a
    group its cells; nothing is an error."""
    wanted = set()
    for text in texts:
        exact = [cell.name for cell in cells if text in (cell.name, cell.group)]
        found = exact or [cell.name for cell in cells if text.lower() in cell.name.lower()]
        if not found:
            raise LabError(f"no cell is called '{text}'; `hakmem bench --list` lists them")
        wanted |= set(found)
    return [cell for cell in cells if cell.name in wanted]


def selected(wish: Wish, console: Console) -> list[Cell]:
    """What the wish selects. Programs that are missing are named in a line each."""
    if wish.suite:
        found, missing = programs.suite(Path(wish.suite))
    else:
        found, missing = matrix.quick() if wish.quick else matrix.families(), []
        if wish.with_programs:
            real, missing = programs.cells(wish.quick)
            found += real
    _tell(missing, console)
    found = matching(found, wish.cells) if wish.cells else found
    short = [cell for cell in found if wish.full or not cell.is_long]
    if found and not short:
        raise LabError(f"{found[0].name} runs for long: add --full")
    return short


def cells_of(wish: Wish, console: Console) -> list[Cell]:
    """What the wish selects, ready to run: inputs and programs that are missing are made."""
    with console.status("making inputs"):
        found, missing = programs.ready(selected(wish, Console(quiet=True)))
    _tell(missing, console)
    return found


def _tell(missing: Sequence[tuple[str, str]], console: Console) -> None:
    for name, reason in missing:
        console.print(f"skipped: {name}: {reason}", style="yellow", markup=False)


def list_cells(wish: Wish, console: Console) -> None:
    for cell in selected(replace(wish, full=True), console):
        console.print(cell.name, style="bold", soft_wrap=True, markup=False)
        console.print(f"    {cell.title or cell.subject.words()}", soft_wrap=True, markup=False)


def start(wish: Wish, console: Console) -> None:
    wanted = wish.allocators or (QUICK_ALLOCATORS if wish.quick else None)
    selected(wish, console)  # what cannot be meant is said before anything is built
    compare.ready_allocators(wanted, console)
    name = "quick" if wish.quick else "suite" if wish.suite else "bench"
    folder = places.new_folder(wish.out, name)
    runs = wish.runs or (QUICK_ROUNDS if wish.quick else FULL_ROUNDS)
    if (wish.most or runs) < runs:
        raise LabError(f"--most {wish.most} is less than the {runs} rounds of -n")
    seed = secrets.randbelow(1 << 32) if wish.seed is None else wish.seed
    wish = replace(wish, runs=runs, allocators=wanted, seed=seed)
    plan = asdict(wish) | {"out": None}
    _run(folder, wish, plan, console)


def resume(folder: Path, console: Console) -> None:
    """Goes on with what `start` began, with the same cells, allocators and rounds."""
    wish = _wish_of(read_plan(folder), folder)
    compare.ready_allocators(wish.allocators, console)
    _run(folder, wish, None, console)


def _wish_of(plan: dict[str, Any], folder: Path) -> Wish:
    kinds = get_type_hints(Wish)
    for name, value in plan.items():
        if name not in kinds or not isinstance(value, get_origin(kinds[name]) if name == "cells"
                                               else kinds[name]):
            raise LabError(f"{folder / PLAN} is damaged: {name} is {value!r}")
    return Wish(**plan)


def _run(folder: Path, wish: Wish, kept: dict[str, object] | None, console: Console) -> None:
    budget_s = math.inf if wish.budget is None else wish.budget * 60
    plan = Plan(wish.most or 0, wish.see / 100, budget_s, wish.regime, wish.seed or 0,
                not wish.busy_ok)
    campaign = Campaign(folder, places.command_line(), cells_of(wish, console),
                        allocators.choose(wish.allocators), wish.runs or 1, plan=plan)
    ledger = campaign.run(console, json.loads(json.dumps(kept)) if kept else None)
    table.show_matrix(folder, console)
    of_cell = {cell.name: [row for row in ledger.rows if row.cell == cell.name]
               for cell in campaign.cells}
    good = {row.cell for row in ledger.rows if row.is_ok}
    if any(campaign.goes_on(cell, of_cell[cell.name]) for cell in campaign.cells
           if cell.name in good or not of_cell[cell.name]):
        console.print(f"to go on: ./hakmem resume {places.shown(folder)}", markup=False)
    else:
        console.print(f"rows: {places.shown(folder)}; a page with plots: ./hakmem report "
                      f"{places.shown(folder)}", style="dim", markup=False)
    if {name for name, rows in of_cell.items() if rows} - good:
        raise SystemExit(1)
