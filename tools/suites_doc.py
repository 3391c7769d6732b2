#!/usr/bin/env python3
"""Writes the table of docs/reliability.md from tests/suites.csv: what others' suites said of us."""

import csv
import io
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "tests/suites.csv"
PAGE = "docs/reliability.md"
BEGIN, END = "<!-- made from tests/suites.csv -->", "<!-- end -->"


def table(text: str) -> str:
    """The rows as they stand, a column each; an empty field was not run."""
    head, *rows = csv.reader(io.StringIO(text))
    lines = [f"| {' | '.join(head)} |", "|---|" + "---:|" * (len(head) - 1)]
    lines += [f"| {' | '.join(field or '–' for field in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


def render(page: str, text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(text)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    page = ROOT / PAGE
    page.write_text(render(page.read_text(encoding="utf-8"),
                           (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
