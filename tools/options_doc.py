#!/usr/bin/env python3
"""Writes docs/options.md from the table of options: option_table.h,
option_words.h and text_table.h in src/options/.

options_doc.py --json prints the same table for programs instead, --man the page hakmem-options(7).
"""

import json
import re
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "src/options/option_table.h"
WORDS = "src/options/option_words.h"
TEXTS = "src/options/text_table.h"
PAGE = "docs/options.md"

ROW = re.compile(r'^OPTION\((.*?),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.DOTALL | re.MULTILINE)
TEXT = re.compile(r'^TEXT\((\w+),\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)', re.DOTALL | re.MULTILINE)
COLUMNS = re.compile(r"^ \*\s+OPTION\((.*?)\)", re.MULTILINE)
WORD = re.compile(r'^WORD\((\w+), "(\w+)", (\d+)\)', re.MULTILINE)
UNITS = {"SWITCH": "on/off", "POLICY": "word", "LEAKS": "word", "PRICE": "ms of processor time",
         "KIBIBYTES": "KiB", "MEBIBYTES": "MiB", "HEAP_SIZE": "MiB", "MS": "ms"}
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


def joined(strings: str) -> str:
    """Adjacent strings of C as one text."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', strings))


def options_of(table: str, words: str) -> Iterator[Option]:
    modes = modes_of(table)
    meanings = WORD.findall(words)
    for cells, strings in ROW.findall(table):
        name, unit, *numbers = (cell.strip() for cell in cells.split(","))
        least, most, *defaults = map(int, numbers)
        yield Option(name, UNITS.get(unit, unit.lower()), least, most,
                     dict(zip(modes, defaults, strict=True)), joined(strings),
                     {word: int(value) for of, word, value in meanings if of == unit})


def render(table: str, words: str, texts: str = "") -> str:
    """The page for the text of the table, whose head comment names the columns, and of the files
    of the words and of the options that are texts."""
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
    unset = " | ".join("–" * len(modes))
    lines += [f"| `HAKMEM_{name.upper()}` | {joined(strings)} | text |  | {unset} |"
              for name, strings in TEXT.findall(texts)]
    return "\n".join(lines) + "\n"


def roff(text: str) -> str:
    """Text as a line of a manual page."""
    return text.replace("\\", "\\e").replace("-", "\\-").replace("–", "\\(en")


def render_man(table: str, words: str, texts: str = "") -> str:
    """The same as a manual page."""
    modes = modes_of(table)
    lines = ['.TH HAKMEM-OPTIONS 7 "" "HAKMEM" "Miscellaneous"', ".SH NAME",
             "hakmem\\-options \\- settings of the HAKMEM memory allocator", ".SH DESCRIPTION",
             "Each option is read once, when the program starts, from the environment variable of",
             "its name. Set\\-user\\-ID programs ignore all of them.", ".SH MODES", ".TP",
             ".B HAKMEM_MODE", f"A set of defaults: {', '.join(modes)}. The default mode is",
             f".BR {modes[0]} .", ".SH OPTIONS"]
    for option in options_of(table, words):
        takes = f"{option.span() or 'on, off'} {option.unit * option.takes_numbers()}".strip()
        defaults = {option.shown(value) for value in option.defaults.values()}
        shown = defaults.pop() if len(defaults) == 1 else ", ".join(
            f"{option.shown(value)} in {mode}" for mode, value in option.defaults.items())
        lines += [".TP", f".B HAKMEM_{option.name.upper()}", roff(option.sentence) + ".",
                  roff(f"Takes: {takes}. Default: {shown}.")]
    for name, strings in TEXT.findall(texts):
        lines += [".TP", f".B HAKMEM_{name.upper()}", roff(joined(strings)) + "."]
    lines += [".SH SEE ALSO", ".BR hakmem (1),", ".BR hakmem (3)"]
    return "\n".join(lines) + "\n"


def export(table: str, words: str) -> str:
    """The table as JSON: its modes, the default first, and its options."""
    options = [asdict(option) | {"numbers": option.takes_numbers()}
               for option in options_of(table, words)]
    return json.dumps({"modes": modes_of(table), "options": options})


if __name__ == "__main__":
    table, words, texts = [(ROOT / path).read_text(encoding="utf-8")
                           for path in (TABLE, WORDS, TEXTS)]
    if sys.argv[1:] == ["--json"]:
        print(export(table, words))
    elif sys.argv[1:] == ["--man"]:
        print(render_man(table, words, texts), end="")
    else:
        (ROOT / PAGE).write_text(render(table, words, texts), encoding="utf-8")
