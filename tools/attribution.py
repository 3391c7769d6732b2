#!/usr/bin/env python3
"""Where does the memory of the programs of the matrix lie that they hold above the C library's?

    attribution.py [--runs 3] [PROGRAM ...]

Each program runs on HAKMEM and on the C library in turn, with the peak sampler (lab/peak.c), and
the run with the median peak goes to bench/attribution.csv. Without programs the first section of
attribution.md is printed (make docs). What rounding loses comes from bench/census.csv.gz, so run
tools/census.py before.
"""

import argparse
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, log
from pathlib import Path
from statistics import median_low

import census
import size_classes

ROOT = Path(__file__).resolve().parents[1]
SAMPLER = ROOT / "out/release/libpeak.so"
MATRIX = ROOT / "lab/programs.toml"
TABLE = "bench/attribution.csv"
OURS, SYSTEM = "hakmem", "system"
# The words of hakmem_statistics_t, and of struct mallinfo2, in their order.
OF_HAKMEM = ("mapped", "used", "cached", "free_in_slabs", "free_pages", "metadata", "huge_used",
             "huge_cached", "purged", "system_calls", "clean_pages", "slab_ends", "cached_threads",
             "cached_depots", "cached_large", "purged_in_slabs")
OF_LIBC = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
           "fordblks", "keepcost")
KEPT = ("used", "slab_ends", "cached_threads", "cached_depots", "free_in_slabs", "free_pages",
        "huge_cached", "purged_in_slabs", "metadata", "arena", "hblkhd")
FIELDS = ("program", "allocator", "version", "runs", "peak", "least_peak", "most_peak", "resident",
          "files", *KEPT)
PARTS = ("rounding", "large", "partial", "caches", "kept", "own", "theirs", "rest")
TITLES = ("rounding ≤ 32 KiB", "of larger blocks", "partly used slabs", "thread caches",
          "kept pages", "own structures", "less the C library's", "the rest")
MIB = 1 << 20

HEAD = """# Counted: where peaks lie

Peak memory of each real program of the laboratory on HAKMEM and on the C library, and the parts of
the difference. A thread in the process looks each millisecond and notes the figures of the
allocator whenever the process holds more than ever before (`lab/peak.c`). All figures are in per
cent of the peak on the C library. The parts add up to the peak on HAKMEM less 100.

* **Rounding**: what blocks have more than was asked for. The share comes from an allocation trace
  of another run, at the moment when most bytes are in use.
* **Partly used slabs**: free blocks in slabs and ends of slabs, without pages that went back.
* **Thread caches**: blocks that wait for the same thread or, in depots, for others.
* **Kept pages**: free pages and huge blocks that were not given back.
* **Less the C library's**: what that holds beyond the bytes that were asked for. These are headers,
  rounding, free memory, and what it has reserved and not touched.
* **The rest**: code, stacks, mappings of the program's own, and other processes of the program.
  Parts of blocks that nobody has written are taken off, of free blocks in slabs too. Only the
  difference between the two runs counts. Partly used slabs that are new are mostly unwritten, and
  come off here again.
* **seen**: how much of the peak the sampler saw, in the process that held most, on HAKMEM.

"""


@dataclass(frozen=True)
class Slack:
    """Shares of the bytes that blocks have, which nobody has asked for."""

    small: float = 0.0
    large: float = 0.0


def slack_of(rows: Sequence[census.Row]) -> Slack:
    small = large = total = 0
    for row in rows:
        size, blocks = int(row["size"]), int(row["blocks"])
        served = size_classes.rounded(size) * blocks
        total += served
        if size <= size_classes.MOST:
            small += served - int(row["bytes"])
        else:
            large += served - int(row["bytes"])
    return Slack(small / total, large / total) if total else Slack()


def parts_of(ours: Mapping[str, str], theirs: Mapping[str, str], slack: Slack) -> dict[str, int]:
    """Bytes of each part of the difference of the peaks."""
    at = {name: int(ours[name]) for name in KEPT[:-2]}
    held_by_libc = int(theirs["arena"]) + int(theirs["hblkhd"])
    parts = {
        "rounding": round(at["used"] * slack.small),
        "large": round(at["used"] * slack.large),
        "partial": at["free_in_slabs"] + at["slab_ends"] - at["purged_in_slabs"],
        "caches": at["cached_threads"] + at["cached_depots"],
        "kept": at["free_pages"] + at["huge_cached"],
        "own": at["metadata"]}
    asked_for = at["used"] - parts["rounding"] - parts["large"]
    held = asked_for + sum(parts.values())
    parts["theirs"] = asked_for - held_by_libc
    parts["rest"] = int(ours["peak"]) - held - (int(theirs["peak"]) - held_by_libc)
    return parts


def largest(parts: Mapping[str, int]) -> str:
    """The part of HAKMEM's own that holds most."""
    own = PARTS[:PARTS.index("theirs")]
    return TITLES[PARTS.index(max(own, key=lambda name: parts[name]))]


def table(rows: Sequence[census.Row], slacks: Mapping[str, Slack]) -> str:
    found: dict[str, dict[str, census.Row]] = {}
    for row in rows:
        found.setdefault(row["program"], {})[row["allocator"]] = row
    found = {program: by for program, by in found.items() if {OURS, SYSTEM} <= by.keys()}
    if not found:
        return "No program was counted.\n"
    lines = ["| program | C library, MiB | HAKMEM | " + " | ".join(TITLES) + " | largest | seen |",
             "|---|---:|---:|" + "---:|" * len(TITLES) + "---|---:|"]
    sums = dict.fromkeys(PARTS, 0.0)
    for program, by in sorted(found.items(), key=lambda item: -ratio(item[1])):
        parts = parts_of(by[OURS], by[SYSTEM], slacks.get(program, Slack()))
        base = int(by[SYSTEM]["peak"])
        shares = {name: 100 * parts[name] / base for name in PARTS}
        for name in PARTS:
            sums[name] += shares[name] / len(found)
        texts = [f"{shares[name]:+.1f}" for name in PARTS]
        if program not in slacks:
            texts[:2] = ["–", "–"]
        seen = 100 * int(by[OURS]["resident"]) / int(by[OURS]["peak"])
        lines.append(f"| {program} | {base / MIB:,.1f} | {100 * ratio(by):.1f} | "
                     + " | ".join(texts) + f" | {largest(parts)} | {seen:.0f} % |")
    ratios = [ratio(by) for by in found.values()]
    mean = exp(sum(map(log, ratios)) / len(ratios))
    lines.append(f"| **mean of {len(found)}** | | **{100 * mean:.1f}** | "
                 + " | ".join(f"**{sums[name]:+.1f}**" for name in PARTS) + " | | |")
    counts: dict[str, int] = {}
    above = [program for program, by in found.items() if ratio(by) > 1]
    for program in above:
        part = largest(parts_of(*(found[program][name] for name in (OURS, SYSTEM)),
                                slacks.get(program, Slack())))
        counts[part] = counts.get(part, 0) + 1
    told = ", ".join(f"{part} in {count}" for part, count in
                     sorted(counts.items(), key=lambda item: -item[1]))
    return "\n".join(lines) + (
        f"\n\nThe mean of HAKMEM is geometric, those of the parts are arithmetic. The peak is "
        f"above the C library's in {len(above)} of {len(found)} programs" +
        (f". The largest part of HAKMEM's own there: {told}.\n" if above else ".\n"))


def ratio(by: Mapping[str, census.Row]) -> float:
    return int(by[OURS]["peak"]) / int(by[SYSTEM]["peak"])


def left_out(rows: Sequence[census.Row]) -> list[str]:
    """The programs of the matrix that have no rows."""
    names = [each["name"] for each in tomllib.loads(MATRIX.read_text(encoding="utf-8"))["program"]]
    return [name for name in names if name not in {row["program"] for row in rows}]


def notes(rows: Sequence[census.Row]) -> str:
    """Commits and runs, and the programs that were left out."""
    versions = sorted({f"{row['allocator']} {row['version']}" for row in rows})
    runs = sorted({row["runs"] for row in rows}, key=int)
    names = ", ".join(left_out(rows)) or "none"
    return (f"\n*The run with the median peak of {' or '.join(runs)}; {', '.join(versions)}. "
            f"Programs left out: {names}.*\n")


# ---- the runs ----

def read_row(folder: Path, names: Sequence[str]) -> dict[str, int]:
    """Of the process that held most."""
    found = [list(map(int, path.read_text().split())) for path in folder.iterdir()
             if path.stat().st_size]
    if not found:
        raise ValueError("the sampler has seen nothing")
    _, resident, files, *words = max(found, key=lambda row: row[1])
    return {"resident": resident, "files": files, **dict(zip(names, words))}


def run_once(cell, allocator) -> dict[str, int]:
    from hakmem_lab.measure import execution
    with tempfile.TemporaryDirectory(prefix="hakmem-attribution-") as name:
        place = Path(name)
        place.chmod(0o1777)
        sampled = replace(allocator, preload=(*allocator.preload, SAMPLER)).with_settings(
            allocator.name, {"PEAK_FILE": f"{place}/%p"})
        measured = execution.run(cell.subject, sampled)
        if measured.status != 0:
            raise ValueError(f"status {measured.status}: {measured.output[-200:]}")
        names = OF_HAKMEM if allocator.name == OURS else OF_LIBC
        return {"peak": measured.peak_rss_bytes} | read_row(place, names)


def row_of(cell, allocator, version: str, runs: Sequence[dict[str, int]]) -> census.Row:
    peaks = [each["peak"] for each in runs]
    chosen = runs[peaks.index(median_low(peaks))]
    return {"program": cell.name, "allocator": allocator.name, "version": version,
            "runs": str(len(runs)), "least_peak": str(min(peaks)), "most_peak": str(max(peaks)),
            **{name: str(chosen.get(name, 0)) for name in
               ("peak", "resident", "files", *KEPT)}}


def measure(wanted: Sequence[str], runs: int) -> None:
    sys.path.insert(0, str(ROOT / "lab"))
    from hakmem_lab import LabError
    from hakmem_lab.measure import allocators, environment, programs as matrix
    chosen = allocators.choose(f"{OURS},{SYSTEM}")
    versions = {}
    for each in chosen:
        commit, is_dirty = environment.commit_of(each)
        versions[each.name] = commit + " and changes" * is_dirty or each.version
    cells, left_out = matrix.ready([cell for cell in matrix.cells()[0] if cell.name in wanted])
    for name, why in left_out:
        print(f"{name}: {why}", flush=True)
    for cell in cells:
        try:
            found: dict[str, list[dict[str, int]]] = {each.name: [] for each in chosen}
            for _ in range(runs):
                for each in chosen:
                    found[each.name].append(run_once(cell, each))
        except (LabError, ValueError) as error:
            print(f"{cell.name}: {error}", flush=True)
            continue
        rows = [row_of(cell, each, versions[each.name], found[each.name]) for each in chosen]
        census.save(TABLE, FIELDS, cell.name, rows)
        print(cell.name, *(f"{row['allocator']} {int(row['peak']) / MIB:.1f} MiB" for row in rows),
              flush=True)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--runs", type=int, default=3)
    given = parser.parse_args()
    if given.programs:
        measure(given.programs, given.runs)
        return 0
    slacks = {program: slack_of(rows) for program, rows in census.programs().items()}
    rows = census.read_rows(TABLE)
    print(HEAD + table(rows, slacks) + notes(rows), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
