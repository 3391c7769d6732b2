#!/usr/bin/env python3
"""Writes docs/options.md from src/policy/option_table.h and option_words.h, where options live.

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
WORDS = "src/policy/option_words.h"
PAGE = "docs/options.md"

ROW = re.compile(r'^OPTION\((.*?),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.DOTALL | re.MULTILINE)
COLUMNS = re.compile(r"^ \*\s+OPTION\((.*?)\)", re.MULTILINE)
WORD = re.compile(r'^WORD\((\w+), "(\w+)", (\d+)\)', re.MULTILINE)
UNITS = {"SWITCH": "on/off", "POLICY": "word", "PRICE": "ms of processor time", "MEBIBYTES": "MiB",
         "MS": "ms"}
WITHOUT_NUMBERS = (UNITS["SWITCH"], UNITS["POLICY"])


@dataclass(frozen=True)
class Option:
    """A row of the table."""

    name: str
    unit: str  # as the page shows it
    least: int
    most: int
    defaults: dict[str, int]  # by mode
    sentence: str
    words: dict[str, int]  # that stand for values, the first of each value as the page shows it

    def takes_numbers(self) -> bool:
        return self.unit not in WITHOUT_NUMBERS

    def shown(self, value: int) -> str:
        if self.takes_numbers():
            return str(value)
        return next(word for word, meant in self.words.items() if meant == value)

    def span(self) -> str:
        if self.unit == UNITS["SWITCH"]:
            return ""
        words = [f"{word} = {value}" if self.takes_numbers() else word
                 for word, value in self.words.items()]
        numbers = [f"{self.least} – {self.most}"] if self.takes_numbers() else []
        return ", ".join(numbers + words)


def modes_of(table: str) -> list[str]:
    """The modes that the table has a column for; the first is the default."""
    head = COLUMNS.search(table)
    if head is None:
        raise ValueError(f"{TABLE}: no comment names the columns of OPTION(...)")
    return [column.strip() for column in head.group(1).split(",")][4:-1]


def options_of(table: str, words: str) -> Iterator[Option]:
    modes = modes_of(table)
    meanings = WORD.findall(words)
    for cells, strings in ROW.findall(table):
        name, unit, *numbers = (cell.strip() for cell in cells.split(","))
        least, most, *defaults = map(int, numbers)
        sentence = "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings))
        yield Option(name, UNITS.get(unit, unit.lower()), least, most,
                     dict(zip(modes, defaults, strict=True)), sentence,
                     {word: int(value) for of, word, value in meanings if of == unit})


def render(table: str, words: str) -> str:
    """The page for the texts of the table, whose head comment names the columns, and the words."""
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
    for option in options_of(table, words):
        sentence = option.sentence.replace("|", "\\|")
        shown = " | ".join(option.shown(value) for value in option.defaults.values())
        lines.append(f"| `HAKMEM_{option.name.upper()}` | {sentence} | {option.unit} "
                     f"| {option.span()} | {shown} |")
    return "\n".join(lines) + "\n"


def export(table: str, words: str) -> str:
    """The table as JSON: its modes, the default first, and its options."""
    options = [asdict(option) | {"numbers": option.takes_numbers()}
               for option in options_of(table, words)]
    return json.dumps({"modes": modes_of(table), "options": options})


if __name__ == "__main__":
    texts = [(ROOT / path).read_text(encoding="utf-8") for path in (TABLE, WORDS)]
    if sys.argv[1:] == ["--json"]:
        print(export(*texts))
    else:
        (ROOT / PAGE).write_text(render(*texts), encoding="utf-8")
