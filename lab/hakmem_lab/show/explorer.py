"""What the page "Explore" of the site draws from: every committed run, its cells with their ratios
and medians, and every row, as one script that a browser reads from the disk.

The page computes nothing but means over the cells that a reader chooses; docs/site/explore.js does
that as judge/summary.py does.
"""

import json
import math
import re
from pathlib import Path
from typing import Any

from hakmem_lab.judge import statistics
from hakmem_lab.judge.digest import AllocatorDigest, CellDigest, Run, read_run
from hakmem_lab.measure.ledger import Row
from hakmem_lab.show import colours, plots, sentences

RATIOS = ("time", "wall", "peak", "mean", "area", "end")
MEDIANS = ("time", "cpu", "wall", "peak", "mean", "end")
# What a row shows: its head, and its figure. Times are whole microseconds, sizes whole KiB.
COLUMNS = ("allocator", "round", "status", "CPU, s", "user, s", "system, s", "wall, s",
           "ns per operation", "peak RSS, MiB", "mean RSS, MiB", "RSS at the end, MiB",
           "page faults", "CPU time of others, s", "layout")
FIRST = "-programs"  # the run that the page opens with is the last one of this name


def _number(value: float | None) -> float | None:
    """Six digits are more than any figure has; JSON knows no NaN."""
    if value is None or not math.isfinite(value):
        return None
    short = float(f"{value:.6g}")
    return int(short) if short == int(short) else short


def _described(own: AllocatorDigest) -> dict[str, Any]:
    ratios = {name: [*map(_number, (ratio.median, ratio.low, ratio.high)),
                     own.verdict(name).name.lower()]
              for name in RATIOS if (ratio := own.ratio(name))}
    return {"rounds": len(own.rounds), "failed": len(own.failures), "ratios": ratios,
            "medians": {name: _number(own.median(name)) for name in MEDIANS if own.median(name)}}


def _styles(names: list[str]) -> list[tuple[str, str]]:
    """A marker each that is told from the others at a glance: "mimalloc-3.4" is "mimalloc3"."""
    roots = []
    for name in names:
        known, major = re.fullmatch(r"(.*?)(?:-(\d+)\.[\d.]+)?", name).groups()  # type: ignore
        root = next((each for each in (f"{known}{major}", known) if each in plots.KNOWN), name)
        roots.append(name if root in roots else root)
    found = plots.styles(roots)
    return [found[root] for root in roots]


def _row(row: Row, names: dict[str, int]) -> list[int | float | str | None]:
    times = [round(each * 1e6) for each in (row.cpu_s, row.user_s, row.system_s, row.wall_s)]
    sizes = [each // 1024 for each in (row.peak_rss_bytes, row.mean_rss_bytes, row.end_rss_bytes)]
    return [names[row.allocator], row.round, "" if row.is_ok else row.status, *times,
            _number(row.cost_ns) if row.operations else None, *sizes, row.minor_faults,
            round(row.others_cpu_s * 1e6), row.layout]


def _cell(cell: CellDigest, rows: list[Row], names: dict[str, int]) -> dict[str, Any]:
    return {"name": cell.name, "family": cell.family, "group": sentences.TITLES[cell.group],
            "base": names[cell.base], "basis": cell.basis.value, "command": cell.command,
            "allocators": {names[own.name]: _described(own) for own in cell.allocators},
            "rows": [_row(row, names) for row in rows]}


def _run(run: Run) -> dict[str, Any]:
    names = {name: place for place, name in enumerate(run.allocators)}
    rows: dict[str, list[Row]] = {}
    for row in run.rows:
        rows.setdefault(row.cell, []).append(row)
    versions = {row.allocator: row.version for row in run.rows}
    allocators = [{"name": name, "version": versions[name],
                   "colour": colours.variable(colour), "marker": marker}
                  for name, (colour, marker) in zip(run.allocators, _styles(run.allocators))]
    cells = []
    for cell in run.cells:
        of_cell = rows[cell.name.removesuffix(f", {cell.distance}") if cell.distance else cell.name]
        cells.append(_cell(cell, [row for row in of_cell if not cell.distance
                                  or row.distance in ("", cell.distance)], names))
    return {"name": run.name, "source": sentences.source_line(run), "base": run.base,
            "allocators": allocators, "cells": cells}


def data(results: Path) -> dict[str, Any]:
    """Of all folders of results, the latest first."""
    runs = [read_run(folder) for folder in sorted(results.iterdir(), reverse=True)
            if folder.is_dir()]
    most = max(len(run.cells) for run in runs)
    first = next((place for place, run in enumerate(runs) if run.name.endswith(FIRST)), 0)
    return {"first": first, "columns": COLUMNS, "runs": [_run(run) for run in runs],
            # How many standard errors the 95 % interval of a mean over so many cells reaches.
            "reach": [0, 0, *[_number(statistics.student(n)) for n in range(2, most + 1)]]}


def script(results: Path) -> str:
    text = json.dumps(data(results), ensure_ascii=False, separators=(",", ":"))
    return f"const MEASURED = {text};\n"


def style() -> str:
    """The allocators' colours on light and on dark paper, by the theme of the page."""
    by_mode = plots.page_colours()
    return (f"#explore {{ {by_mode['light']} }}\n"
            f"body[data-theme=\"dark\"] #explore {{ {by_mode['dark']} }}\n"
            "@media (prefers-color-scheme: dark) {\n"
            f"  body:not([data-theme=\"light\"]) #explore {{ {by_mode['dark']} }}\n}}\n")
