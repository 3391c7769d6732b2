#!/usr/bin/env python3
"""Writes the figures of docs/reliability.md from tests/mutants.csv: which mutants tests killed."""

import csv
import io
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "tests/mutants.csv"
PAGE = "docs/reliability.md"
BEGIN, END = "<!-- made from tests/mutants.csv -->", "<!-- end -->"
GROUPS = ("unit", "api", "model", "misuse", "preload", "stress")

Row = dict[str, str]


def line(name: str, judged: int, killed: list[Row]) -> str:
    """Of so many mutants, who killed how many."""
    groups = Counter(row["by"].split("/")[1] for row in killed)
    fields = [name, judged, *(groups[group] or "–" for group in GROUPS), len(killed),
              judged - len(killed), f"{100 * len(killed) / judged:.0f} %"]
    return f"| {' | '.join(map(str, fields))} |"


def figures(text: str) -> str:
    """What became of the sample, and of the survivors of its first round in the second."""
    rows = list(csv.DictReader(io.StringIO(text)))
    verdicts = Counter(row["verdict"] for row in rows)
    judged = verdicts["killed"] + verdicts["survived"]
    killed = [row for row in rows if row["verdict"] == "killed"]
    first = [row for row in killed if row["round"] == "first"]
    second = [row for row in killed if row["round"] == "second"]
    return "\n".join([
        f"Of {len(rows)} mutants {verdicts['not compilable']} do not compile and "
        f"{verdicts['equal']} are equal. The others:",
        "",
        f"| round | judged | {' | '.join(f'by {group}' for group in GROUPS)} | killed | alive | |",
        "|---|" + "---:|" * (len(GROUPS) + 4),
        line("first", judged, first),
        line("second", judged - len(first), second),
        line("together", judged, killed),
    ]) + "\n"


def render(page: str, text: str) -> str:
    """The page with its figures made anew."""
    before, _, rest = page.partition(BEGIN)
    return f"{before}{BEGIN}\n\n{figures(text)}\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    target = ROOT / PAGE
    target.write_text(render(target.read_text(encoding="utf-8"),
                             (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
