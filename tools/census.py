#!/usr/bin/env python3
"""Which blocks do programs of the matrix hold when they hold most?

    census.py PROGRAM ...

Each program runs once on HAKMEM with an allocation trace (docs/trace.md). Of its processes, the
one counts that holds most bytes at a time. The blocks of that moment go to bench/census.csv.gz, by
their size. tools/class_sets.py and tools/attribution.py use them.
"""

import csv
import gzip
import io
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import size_classes

ROOT = Path(__file__).resolve().parents[1]
COUNTER, RECORDER = ROOT / "out/release/trace_census", ROOT / "out/release/librecorder.so"
TABLE = "bench/census.csv.gz"
FIELDS = ("program", "version", "size", "blocks", "bytes")
LIMIT_S = 200  # a traced program takes several times as long

Row = dict[str, str]
Blocks = dict[int, int]  # how many, by the size that was asked for


def counted(trace: Path, moments: Iterable[str] = ()) -> dict[str, Blocks]:
    """The blocks of the peak, and of further moments, by the names of these."""
    done = subprocess.run([COUNTER, trace, *moments], check=True, capture_output=True, text=True)
    found: dict[str, Blocks] = {"peak": {}}
    for line in done.stdout.splitlines():
        name, size, count = line.split()
        found.setdefault(name, {})[int(size)] = int(count)
    return found


def held(blocks: Blocks) -> int:
    return sum(size * count for size, count in blocks.items())


def rows_of_blocks(program: str, version: str, blocks: Blocks) -> Iterator[Row]:
    """Sizes that every allocator rounds up alike are put together."""
    sums: dict[int, list[int]] = {}
    for size, count in blocks.items():
        step = size_classes.PAGE if size > size_classes.MOST else 8 if size <= 8 else 16
        each = sums.setdefault(size_classes.align_up(max(size, 1), step), [0, 0])
        each[0] += count
        each[1] += size * count
    for size, (count, total) in sorted(sums.items()):
        yield dict(zip(FIELDS, (program, version, str(size), str(count), str(total)), strict=True))


# ---- the tables ----

def read_rows(name: str) -> list[Row]:
    file = ROOT / name
    if not file.exists():
        return []
    data = file.read_bytes()
    text = (gzip.decompress(data) if name.endswith(".gz") else data).decode("utf-8")
    return list(csv.DictReader(io.StringIO(text)))


def save(name: str, fields: Iterable[str], program: str, rows: Iterable[Row]) -> None:
    """Puts the rows in the place of those of the program."""
    kept = [row for row in read_rows(name) if row["program"] != program]
    text = io.StringIO()
    writer = csv.DictWriter(text, list(fields), lineterminator="\n")
    writer.writeheader()
    writer.writerows(sorted([*kept, *rows], key=lambda row: row["program"]))
    data = text.getvalue().encode("utf-8")
    (ROOT / name).write_bytes(gzip.compress(data, mtime=0) if name.endswith(".gz") else data)


def programs() -> dict[str, list[Row]]:
    """The rows of each program of the census."""
    found: dict[str, list[Row]] = {}
    for row in read_rows(TABLE):
        found.setdefault(row["program"], []).append(row)
    return found


# ---- the runs ----

def has_records(trace: Path) -> bool:
    with trace.open("rb") as file:
        return any(file.read(24)[16:])


def traced(subject, allocator) -> Blocks:
    """The blocks of the peak, of the process that held most."""
    from hakmem_lab.measure import execution
    with tempfile.TemporaryDirectory(prefix="hakmem-census-") as name:
        place = Path(name)
        place.chmod(0o1777)
        recorded = replace(allocator.with_settings(allocator.name,
                                                   {"RECORDER_FILE": f"{place}/%p.trace"}),
                           owner=str(RECORDER), preload=(RECORDER, *allocator.preload))
        measured = execution.run(replace(subject, limit_s=LIMIT_S), recorded)
        if measured.status != 0:
            raise ValueError(f"status {measured.status}: {measured.output[-200:]}")
        found = [counted(trace)["peak"] for trace in place.glob("*.trace") if has_records(trace)]
        if not found:
            raise ValueError("no process was traced")
        return max(found, key=held)


def main() -> int:
    sys.path.insert(0, str(ROOT / "lab"))
    from hakmem_lab import LabError
    from hakmem_lab.measure import allocators, environment, programs as matrix
    ours, = allocators.choose("hakmem")
    commit, is_dirty = environment.commit_of(ours)
    version = commit + " and changes" * is_dirty
    cells, left_out = matrix.ready([cell for cell in matrix.cells()[0]
                                    if cell.name in sys.argv[1:]])
    for each, why in left_out:
        print(f"{each}: {why}", flush=True)
    for cell in cells:
        try:
            peak = traced(cell.subject, ours)
        except (LabError, ValueError, subprocess.CalledProcessError) as error:
            print(f"{cell.name}: {error}", flush=True)
            continue
        save(TABLE, FIELDS, cell.name, rows_of_blocks(cell.name, version, peak))
        print(f"{cell.name}: {held(peak):,} bytes in {sum(peak.values()):,} blocks", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
