#!/usr/bin/env python3
"""Writes the table of docs/architecture.md from tests/system_calls.csv, which
tests/preload/test_system_calls.py compares with what strace sees."""

import csv
import io
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "tests/system_calls.csv"
PAGE = "docs/architecture.md"
BEGIN, END = "<!-- made from tests/system_calls.csv -->", "<!-- end -->"
HEADS = {"start": "every program", "heap": "a heap of some size", "threads": "several threads",
         "messages": "messages", "files": "output files", "background": "`background=1`",
         "seldom": "rarely, and not in the test"}


def rows(text: str) -> list[dict[str, str]]:
    """The fields of each row by their names: part, call, when, plain, without."""
    return list(csv.DictReader(io.StringIO(text)))


def table(text: str) -> str:
    lines = ["| for | system call | when | with `plain_syscalls=1` | option that ends it |",
             "|---|---|---|---|---|"]
    before = ""
    for row in rows(text):
        head = HEADS[row["part"]] if row["part"] != before else ""
        before = row["part"]
        option = f"`{row['without']}`" if "=" in row["without"] else row["without"] or "–"
        lines.append(f"| {head} | `{row['call']}` | {row['when']} | {row['plain'] or 'no'} "
                     f"| {option} |")
    return "\n".join(lines) + "\n"


def render(page: str, text: str) -> str:
    """The page with its table made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{table(text)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    page = ROOT / PAGE
    page.write_text(render(page.read_text(encoding="utf-8"),
                           (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
