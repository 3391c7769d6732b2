#!/usr/bin/env python3
"""Writes the table of verdicts in docs/design.md from bench/verdicts.csv."""

import csv
import io
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "bench/verdicts.csv"
PAGE = "docs/design.md"
BEGIN, END = "<!-- made from bench/verdicts.csv -->", "<!-- end of the verdicts -->"


def table(text: str) -> str:
    rows = list(csv.DictReader(io.StringIO(text)))
    lines = ["| mechanism | lines of `src/` | verdict | measured |", "|---|---|---|---|"]
    lines += [f"| {row['mechanism']} | {row['lines']} | {row['verdict']} | {row['measured']} |"
              for row in rows]
    gone = sum(int(row["lines"]) for row in rows if row["verdict"] == "gone")
    return "\n".join(lines) + f"\n\nIn all {gone:,} lines are gone.\n"


def render(page: str, text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(text)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    page = ROOT / PAGE
    page.write_text(render(page.read_text(encoding="utf-8"),
                           (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
