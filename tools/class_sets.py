#!/usr/bin/env python3
"""What rounding costs under the size classes of several allocators, and under the best fixed ones.

    class_sets.py [judge]

`judge` computes bench/class_sets.csv from bench/census.csv.gz (tools/census.py). Without it the
sections of attribution.md about classes are printed (make docs).

The best set of as many classes as HAKMEM has is found by dynamic programming over sizes in steps
of 16 bytes. The set is chosen on half of the programs and judged on the other half, and the other
way round. Each program counts alike, by the share of its bytes that rounding loses.
"""

import csv
import sys
from collections.abc import Mapping, Sequence

import census
import size_classes

TABLE = "bench/class_sets.csv"
SETS = ("hakmem", "mimalloc", "jemalloc", "tcmalloc", "best", "best_lawful")
FIELDS = ("program", "version", "half", "requested", "small_requested",
          *(f"{name}_lost" for name in SETS))
WORSE = 1e-4  # of the requested bytes: less is no difference
MOST_LUCKY = 2  # programs that gain most, without which the sets are compared once more

HEAD = """
# Counted: sets of size classes

What the rounding of blocks up to 32 KiB costs when a program holds most. Figures are per cent of
all bytes that it has asked for. The blocks come from allocation traces (`tools/census.py`).

* **mimalloc, jemalloc**: four classes to each doubling. Their rules differ and their sizes are the
  same. **tcmalloc**: the table of Google's, for an alignment of 16 bytes.
* **best**: as many classes as HAKMEM has, at the best places for the other half of the programs.
  Nobody has a better fixed set without having seen the program. **lawful**: the same set where a
  class may serve a size only if each alignment of that size is kept.
* Classes alone are compared. What more classes cost in slabs that are partly used is not in it.

"""

Weights = Sequence[float]


def lost(rows: Sequence[census.Row], classes: Sequence[int], is_lawful: bool = False) -> int:
    """Bytes that rounding adds to the blocks of up to 32 KiB."""
    total = 0
    for row in rows:
        if int(row["size"]) <= size_classes.MOST:
            served = size_classes.serving(classes, int(row["size"]), is_lawful)
            total += served * int(row["blocks"]) - int(row["bytes"])
    return total


def requested(rows: Sequence[census.Row], most: float = float("inf")) -> int:
    return sum(int(row["bytes"]) for row in rows if int(row["size"]) <= most)


def weights_of(programs: Sequence[Sequence[census.Row]]) -> list[float]:
    """Blocks of each granule, where all bytes of a program count 1."""
    found = [0.0] * (size_classes.MOST // size_classes.GRANULE)
    for rows in programs:
        total = requested(rows)
        for row in rows:
            if int(row["size"]) <= size_classes.MOST:
                found[(int(row["size"]) - 1) // size_classes.GRANULE] += int(row["blocks"]) / total
    return found


def best_set(weights: Weights, count: int) -> list[int]:
    """The sizes of at most `count` classes that serve blocks with the least bytes; the last serves
    the largest granule. A class ends at a granule that has blocks: others cost more."""
    import numpy
    tops = [index for index, weight in enumerate(weights) if weight or index == len(weights) - 1]
    length = len(tops)
    sums = numpy.concatenate(([0.0], numpy.cumsum([weights[top] for top in tops])))
    sizes = [size_classes.GRANULE * (top + 1) for top in tops]
    # cost[i, j]: what is between i and j gets a class of the size of j
    cost = (sums[None, 1:] - sums[:-1, None]) * numpy.array(sizes, dtype=float)[None, :]
    cost[numpy.tril_indices(length, -1)] = numpy.inf
    least = cost[0].copy()  # up to j, with one class
    choices = []
    for _ in range(1, min(count, length)):
        total = cost.copy()
        total[1:] += least[:-1, None]
        first = total.argmin(axis=0)  # of the last class; 0: one class is enough
        choices.append(first)
        least = total[first, numpy.arange(length)]
    found, end = [length - 1], length - 1
    for first in reversed(choices):
        if first[end] == 0:
            break
        end = int(first[end]) - 1
        found.append(end)
    return [sizes[each] for each in sorted(found)]


def judged(programs: Mapping[str, Sequence[census.Row]]) -> list[census.Row]:
    """Halves are every second program by name: nobody has chosen them."""
    names = sorted(programs)
    halves = [names[0::2], names[1::2]]
    found = []
    for half in (0, 1):
        best = best_set(weights_of([programs[name] for name in halves[1 - half]]),
                        len(size_classes.HAKMEM))
        sets = (size_classes.HAKMEM, size_classes.MIMALLOC, size_classes.JEMALLOC,
                size_classes.TCMALLOC, best)
        for name in halves[half]:
            rows = programs[name]
            costs = [*(lost(rows, each) for each in sets), lost(rows, best, is_lawful=True)]
            found.append(dict(zip(FIELDS, map(str, (
                name, rows[0]["version"], half + 1, requested(rows),
                requested(rows, size_classes.MOST), *costs)), strict=True)))
    return sorted(found, key=lambda row: row["program"])


# ---- tables ----

def share(row: census.Row, name: str) -> float:
    return int(row[f"{name}_lost"]) / int(row["requested"])


def sets_table(rows: Sequence[census.Row]) -> str:
    if not rows:
        return "No program was counted.\n"
    titles = ("HAKMEM", "mimalloc, jemalloc", "tcmalloc", "best", "best, lawful")
    names = ("hakmem", "mimalloc", "tcmalloc", "best", "best_lawful")
    lines = [f"| lost to rounding, % of {len(rows)} programs' bytes | "
             + " | ".join(titles) + " |", "|---|" + "---:|" * len(titles)]
    for row in rows:
        lines.append(f"| {row['program']} | "
                     + " | ".join(f"{100 * share(row, name):.2f}" for name in names) + " |")
    lines.append("| **mean** | "
                 + " | ".join(f"**{100 * mean_share(rows, name):.2f}**" for name in names) + " |")
    return "\n".join(lines) + "\n\n" + sentence(rows)


def mean_share(rows: Sequence[census.Row], name: str) -> float:
    return sum(share(row, name) for row in rows) / len(rows)


def sentence(rows: Sequence[census.Row]) -> str:
    """How many programs gain by the best set, and what is left without those that gain most."""
    gains = {row["program"]: share(row, "hakmem") - share(row, "best") for row in rows}
    better = sum(each > WORSE for each in gains.values())
    worse = sum(each < -WORSE for each in gains.values())
    told = (f"Chosen on the other half, the best set loses less than HAKMEM's in {better} of "
            f"{len(rows)} programs and more in {worse}.")
    others = sorted(rows, key=lambda row: gains[row["program"]])[:-MOST_LUCKY]
    if others:
        lucky = sorted(gains, key=lambda program: -gains[program])[:MOST_LUCKY]
        told += (f" {MOST_LUCKY} programs gain most by it: {' and '.join(lucky)}. Without them the "
                 f"mean is {100 * mean_share(others, 'hakmem'):.2f} for HAKMEM's set and "
                 f"{100 * mean_share(others, 'best'):.2f} for the best.")
    return told + "\n"


def main() -> int:
    if sys.argv[1:] == ["judge"]:
        with (census.ROOT / TABLE).open("w", newline="", encoding="utf-8") as out:
            writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
            writer.writeheader()
            writer.writerows(judged(census.programs()))
    rows = census.read_rows(TABLE)
    version = ", ".join(sorted({row["version"] for row in rows}))
    print(HEAD + sets_table(rows) + f"\n*One traced run of each program, commit {version}.*")
    return 0


if __name__ == "__main__":
    sys.exit(main())
