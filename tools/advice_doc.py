#!/usr/bin/env python3
"""Writes what each setting brings into the tables of docs/guide.md, from bench/advice.csv.

Where a table stands between the two comments, its last column is made here.
"""

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "bench/advice.csv"
PAGE = "docs/guide.md"
BEGIN, END = "<!-- the last column is made from bench/advice.csv -->", "<!-- end of the advice -->"
ADVICE = re.compile(r"`(\w+=\w+|hakmem_(?:purge|idle)\(\))`")
NAMES = {"pauses": "held in pauses", "rest": "at rest", "peak": "at the peak",
         "huge": "in huge pages", "faults": "page faults"}


def advices(page: str) -> Iterator[tuple[str, str]]:
    """The heading above each row that advises a setting, and the setting; a call counts as one."""
    heading = ""
    for line in page.split("\n"):
        heading = line.lstrip("# ") if line.startswith("#") else heading
        found = ADVICE.findall(line.rpartition("|")[0].rpartition("|")[0])
        if line.startswith("|") and found:
            yield heading, " ".join(found)


def shown(row: dict[str, str], figure: str) -> str:
    """A figure on the defaults, and with the setting."""
    values = [float(row[f"{figure}_{which}"]) for which in ("default", "advised")]
    if figure == "faults":
        return "{:,} → {:,} page faults".format(*(round(value, -2 if value >= 1000 else 0)
                                                  for value in map(int, values)))
    return f"{NAMES[figure]} {values[0]:.0f} → {values[1]:.0f} MiB"


def cell(row: dict[str, str]) -> str:
    figures = dict.fromkeys((row["figure"], "faults"))
    return f"{row['program']}: {'; '.join(shown(row, figure) for figure in figures)}"


def render(page: str, text: str) -> str:
    """The page with the last column of its tables made anew."""
    rows = csv.DictReader(io.StringIO(text))
    cells = {(row["heading"], row["advice"]): cell(row) for row in rows}
    lines, heading, is_inside = [], "", False
    for line in page.split("\n"):
        heading = line.lstrip("# ") if line.startswith("#") else heading
        is_inside = line == BEGIN or is_inside and line != END
        if is_inside and re.match(r"\|(?!---| .*\| measured \|$)", line):
            kept = line.rpartition("|")[0].rpartition("|")[0]
            line = f"{kept}| {cells.get((heading, ' '.join(ADVICE.findall(kept))), '–')} |"
        lines.append(line)
    return "\n".join(lines)


if __name__ == "__main__":
    page = ROOT / PAGE
    page.write_text(render(page.read_text(encoding="utf-8"),
                           (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
