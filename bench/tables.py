#!/usr/bin/env python3
"""Makes docs/measured.md from the result files in bench/results/ (written by compare.py --csv).

    tables.py            writes the page
    tables.py --check    fails if the page is not what the results say
"""
import collections
import csv
import statistics
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE = ROOT / "docs" / "measured.md"


def read(file):
    """command -> allocator -> its rows in the order of the rounds."""
    table = collections.defaultdict(lambda: collections.defaultdict(list))
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            table[row["command"]][row["allocator"]].append(row)
    return table


def cell(rows, base, floor):
    """What one allocator did: M op/s, net ns/op, ratio of throughput to the base, peak memory."""
    if any(not row["ns_per_operation"] for row in rows):
        return None
    cost = [float(row["ns_per_operation"]) for row in rows]
    ratios = [float(b["ns_per_operation"]) / own for b, own in zip(base, cost)]
    net = "" if floor is None else f"{statistics.median(cost) - floor:.2f}"
    peak = statistics.median(float(row["peak_rss_kib"]) for row in rows) / 1024
    return [f"{1000 / statistics.median(cost):.2f}", net,
            f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})", f"{peak:.1f}"]


def section(command, allocators):
    """One benchmark as a Markdown table; the base is hakmem, or the first allocator."""
    base = "hakmem" if "hakmem" in allocators else next(iter(allocators))
    costs = [row["ns_per_operation"] for row in allocators.get("floor", [])]
    floor = statistics.median(map(float, costs)) if costs and all(costs) else None
    lines = [f"### `{command}`", "",
             f"| allocator | M op/s | net ns/op | throughput : {base} (min–max) | peak MiB |",
             "|---|---|---|---|---|"]
    for name, rows in allocators.items():
        cells = cell(rows, allocators[base], floor) or ["failed", "", "", ""]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines + [""]


def render():
    lines = ["# Measured", "",
             "Made by `bench/tables.py` from `bench/results/`; do not edit. The allocators",
             "of a table ran in turn, round by round; ratios are medians over rounds. Net cost",
             "is ns/op less that of the floor, an allocator that does nothing but hand back",
             "memory; where it is negative the floor is no floor. Absolute figures hold for one",
             "machine and one hour.", ""]
    for file in sorted(RESULTS.glob("*.csv")):
        table = read(file)
        series = [each for allocators in table.values() for each in allocators.values()]
        rows = [row for each in series for row in each]
        rounds = sorted({len(each) for each in series})
        commits = sorted({row["commit"] + ("+" if row["dirty"] == "True" else "")
                          for row in rows})
        versions = {row["allocator"]: row["version"] for row in rows}
        lines += [f"## {file.stem}", "",
                  f"{'–'.join(map(str, rounds))} rounds, commit {', '.join(commits)}, "
                  f"{rows[0]['machine']}, {rows[0]['time'][:10]}. "
                  + "; ".join(f"{name} {text}" for name, text in versions.items()) + ".", ""]
        for command, allocators in table.items():
            lines += section(command, allocators)
    return "\n".join(lines)


def main():
    text = render()
    if sys.argv[1:] == ["--check"]:
        sys.exit(0 if PAGE.read_text() == text else
                 f"{PAGE.relative_to(ROOT)} is not what bench/results says: run bench/tables.py")
    PAGE.write_text(text)


if __name__ == "__main__":
    main()
