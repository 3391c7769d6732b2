#!/usr/bin/env python3
"""Prints as a table what tests/answers has found: whether the first screen of a tool names the
cause and the next step. `make answers` runs the tests and writes the table into docs/profile.md."""

import csv
import io
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "tests/answers/answers.csv"
PAGE = "docs/profile.md"
BEGIN, END = "<!-- made from tests/answers/answers.csv -->", "<!-- end -->"
CAUSES = {"leak": "a leak", "fragmentation": "one block in use on each page",
          "parked": "threads that wait", "same": "huge blocks for a moment, of one size",
          "more": "huge blocks for a moment, each larger", "array": "an array that grows"}
TOOLS = "why", "profile", "leaks"
LANGUAGES = "C", "C++", "Rust", "Python"
BUILDS = [("with symbols", ""), ("stripped", ", stripped")]
MOST = 70  # characters of what a tool says


def cell(row: dict[str, str] | None) -> str:
    """What the first screen has."""
    if row is None:
        return "–"
    return ", ".join(row[each] for each in ("names", "next") if row[each] != "no") or "no"


def table(text: str) -> str:
    """A row for each cause and tool, a column for each kind of program."""
    rows = {(row["cause"], row["tool"], row["language"], row["symbols"]): row
            for row in csv.DictReader(io.StringIO(text))}
    columns = [(language, symbols, f"{language}{suffix}") for language in LANGUAGES
               for symbols, suffix in BUILDS
               if any(key[2:] == (language, symbols) for key in rows)]
    head = ["program", "tool", *(name for _, _, name in columns), "what it says in C"]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for cause, what in CAUSES.items():
        for tool in TOOLS:
            cells = [cell(rows.get((cause, tool, language, symbols)))
                     for language, symbols, _ in columns]
            said = rows.get((cause, tool, "C", "with symbols"), {"says": ""})["says"]
            said = said if len(said) <= MOST else f"{said[:MOST]}…"
            lines.append(f"| {' | '.join([what, tool, *cells, said])} |")
    return "\n".join(lines) + "\n"


def render(page: str, text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(text)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    page = ROOT / PAGE
    page.write_text(render(page.read_text(encoding="utf-8"),
                           (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
