#!/usr/bin/env python3
"""Writes docs/options.md from src/policy/option_table.h, the one place where options live.

options_doc.py --json prints the same table for programs instead.
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "src/policy/option_table.h"
PAGE = "docs/options.md"

ROW = re.compile(r'^OPTION\((.*?),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.DOTALL | re.MULTILINE)
COLUMNS = re.compile(r"^ \*\s+OPTION\((.*?)\)", re.MULTILINE)
UNITS = {"SWITCH": "on/off", "MEBIBYTES": "MiB", "MS": "ms"}


@dataclass(frozen=True)
class Option:
    """A row of the table."""

    name: str
    unit: str  # as the page shows it
    least: int
    most: int
    defaults: dict[str, int]  # by mode
    sentence: str

    def is_switch(self) -> bool:
        return self.unit == UNITS["SWITCH"]

    def shown(self, value: int) -> str:
        return str(value) if not self.is_switch() else "on" if value else "off"


def modes_of(table: str) -> list[str]:
    """The modes that the table has a column for; the first is the default."""
    head = COLUMNS.search(table)
    if head is None:
        raise ValueError(f"{TABLE}: no comment names the columns of OPTION(...)")
    return [column.strip() for column in head.group(1).split(",")][4:-1]


def options_of(table: str) -> Iterator[Option]:
    modes = modes_of(table)
    for cells, strings in ROW.findall(table):
        name, unit, *numbers = (cell.strip() for cell in cells.split(","))
        least, most, *defaults = map(int, numbers)
        sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings))
        yield Option(name, UNITS.get(unit, unit.lower()), least, most,
                     dict(zip(modes, defaults, strict=True)), sentence)


def render(table: str) -> str:
    """The page for the text of the table, whose head comment names the columns."""
    modes = modes_of(table)
    lines = [
        "# Options",
        "",
        f"Made from `{TABLE}` by `tools/options_doc.py`; do not edit. Each option is",
        "read once, when the program starts, from the environment variable of its name.",
        "",
        f"`HAKMEM_MODE` selects the mode, a column of defaults: {', '.join(modes)}.",
        f"The default mode is `{modes[0]}`.",
        "",
        f"| variable | what it does | unit | range | {' | '.join(modes)} |",
        "|---|---|---|---|" + "---|" * len(modes),
    ]
    for option in options_of(table):
        sentence = option.sentence.replace("|", "\\|")
        span = "" if option.is_switch() else f"{option.least} – {option.most}"
        shown = " | ".join(option.shown(value) for value in option.defaults.values())
        lines.append(f"| `HAKMEM_{option.name.upper()}` | {sentence} | {option.unit} | {span} "
                     f"| {shown} |")
    return "\n".join(lines) + "\n"


def export(table: str) -> str:
    """The table as JSON: its modes, the default first, and its options."""
    options = [asdict(option) | {"switch": option.is_switch()} for option in options_of(table)]
    return json.dumps({"modes": modes_of(table), "options": options})


if __name__ == "__main__":
    declared = (ROOT / TABLE).read_text(encoding="utf-8")
    if sys.argv[1:] == ["--json"]:
        print(export(declared))
    else:
        (ROOT / PAGE).write_text(render(declared), encoding="utf-8")
