#!/usr/bin/env python3
"""Writes docs/options.md from src/policy/option_table.h, the one place where options live."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "src/policy/option_table.h"
PAGE = "docs/options.md"

ROW = re.compile(r'^OPTION\((.*?),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.DOTALL | re.MULTILINE)
COLUMNS = re.compile(r"^ \*\s+OPTION\((.*?)\)", re.MULTILINE)
UNITS = {"SWITCH": "on/off", "MEBIBYTES": "MiB", "MS": "ms"}


def value(text: str, unit: str) -> str:
    if unit == "SWITCH":
        return "on" if text == "1" else "off"
    return text


def render(table: str) -> str:
    """The page for the text of the table, whose head comment names the columns."""
    head = COLUMNS.search(table)
    if head is None:
        raise ValueError(f"{TABLE}: no comment names the columns of OPTION(...)")
    modes = [column.strip() for column in head.group(1).split(",")][4:-1]
    lines = [
        "# Options",
        "",
        f"Made from `{TABLE}` by `tools/options_doc.py`; do not edit. Each option is",
        "read once, when the program starts, from the environment variable of its name.",
        f"`HAKMEM_MODE` picks the defaults: {', '.join(f'`{mode}`' for mode in modes)}.",
        "",
        f"| variable | what it does | unit | range | {' | '.join(modes)} |",
        "|---|---|---|---|" + "---|" * len(modes),
    ]
    for cells, strings in ROW.findall(table):
        name, unit, low, high, *defaults = (cell.strip() for cell in cells.split(","))
        sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings)).replace("|", "\\|")
        span = "" if unit == "SWITCH" else f"{low} – {high}"
        shown = " | ".join(value(default, unit) for default in defaults)
        unit_name = UNITS.get(unit, unit.lower())
        lines.append(f"| `HAKMEM_{name.upper()}` | {sentence} | {unit_name} | {span} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (ROOT / PAGE).write_text(render((ROOT / TABLE).read_text()))
