#!/usr/bin/env python3
"""Which blocks do programs of the matrix hold when they hold most, and which classes are made?

    census.py PROGRAM ...

Each program runs once on HAKMEM with an allocation trace (docs/trace.md). Of its processes, the
one counts that holds most bytes at a time. The blocks of that moment go to bench/census.csv.gz, by
their size. The size classes that were fitted go to bench/fits.csv, with what was predicted of each
and what the trace tells. tools/class_sets.py and tools/attribution.py use both.
"""

import csv
import gzip
import io
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import size_classes

ROOT = Path(__file__).resolve().parents[1]
COUNTER, RECORDER = ROOT / "out/release/trace_census", ROOT / "out/release/librecorder.so"
TABLE, FITS = "bench/census.csv.gz", "bench/fits.csv"
FIELDS = ("program", "version", "size", "blocks", "bytes")
FIT_FIELDS = ("program", "version", "size", "instead_of", "state", "predicted_bytes",
              "predicted_share", "blocks_then", "true_bytes_then", "true_share_then",
              "true_bytes_at_peak", "true_share_at_peak")
LIMIT_S = 200  # a traced program takes several times as long

Row = dict[str, str]
Blocks = dict[int, int]  # how many, by the size that was asked for


@dataclass(frozen=True)
class Fit:
    """A class that was made, as the statistics tell it."""

    size: int
    instead_of: int
    state: str
    predicted_bytes: int
    share: float  # of the blocks of both classes, predicted
    serves: tuple[int, ...]  # granules, by the size of their largest request
    among: tuple[int, ...]  # those that the fixed class served until then

    @property
    def saves(self) -> int:
        """Bytes of each block."""
        return size_classes.bytes_per_block(self.instead_of) - \
            size_classes.bytes_per_block(self.size)

    @property
    def blocks(self) -> int:
        """Of the fixed class that were in use when the fitted one was made: the estimate was
        their number, times the share, times what each saves."""
        return max(1, round(self.predicted_bytes / self.saves / self.share))

    @property
    def moment(self) -> str:
        """For trace_census: when so many blocks of the fixed class are in use."""
        ranges = ",".join(f"{top - size_classes.GRANULE + 1}-{top}" for top in self.among)
        return f"{ranges}:{self.blocks}"


def fits_of(told: dict) -> list[Fit]:
    """In the order in which they were made."""
    found: list[Fit] = []
    for name, each in told.get("fitted_classes", {}).items():
        size, fixed = int(name), each["instead_of"]
        first = max((other for other in size_classes.HAKMEM if other < fixed), default=0)
        taken = {top for other in found if other.instead_of == fixed for top in other.serves}
        among = tuple(top for top in range(first + size_classes.GRANULE, fixed + 1,
                                           size_classes.GRANULE) if top not in taken)
        found.append(Fit(size, fixed, each["state"], each["predicted_bytes"],
                         each["predicted_share_1024"] / 1024,
                         tuple(top for top in among if size_classes.fits(size, top)), among))
    return found


def truth(fit: Fit, blocks: Blocks) -> tuple[int, float]:
    """The bytes that the class saves of the blocks of a moment, and its share of them."""
    by_granule: Blocks = {}
    for size, count in blocks.items():
        top = size_classes.align_up(max(size, 1), size_classes.GRANULE)
        by_granule[top] = by_granule.get(top, 0) + count
    served = sum(by_granule.get(top, 0) for top in fit.serves)
    among = sum(by_granule.get(top, 0) for top in fit.among)
    return served * fit.saves, served / among if among else 0.0


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


def rows_of_fits(program: str, version: str, fits: Iterable[Fit],
                 moments: dict[str, Blocks]) -> Iterator[Row]:
    for fit in fits:
        then, peak = truth(fit, moments.get(fit.moment, {})), truth(fit, moments["peak"])
        yield dict(zip(FIT_FIELDS, (
            program, version, str(fit.size), str(fit.instead_of), fit.state,
            str(fit.predicted_bytes), f"{fit.share:.3f}", str(fit.blocks), str(then[0]),
            f"{then[1]:.3f}", str(peak[0]), f"{peak[1]:.3f}"), strict=True))


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


def traced(subject, allocator) -> tuple[list[Fit], dict[str, Blocks]]:
    """The fitted classes, and the blocks of each moment, of the process that held most."""
    from hakmem_lab.measure import execution
    with tempfile.TemporaryDirectory(prefix="hakmem-census-") as name:
        place = Path(name)
        place.chmod(0o1777)
        settings = {"RECORDER_FILE": f"{place}/%p.trace", "HAKMEM_STATS": f"{place}/%p.json"}
        recorded = replace(allocator.with_settings(allocator.name, settings), owner=str(RECORDER),
                           preload=(RECORDER, *allocator.preload))
        measured = execution.run(replace(subject, limit_s=LIMIT_S), recorded)
        if measured.status != 0:
            raise ValueError(f"status {measured.status}: {measured.output[-200:]}")
        found = [(held(counted(trace)["peak"]), trace) for trace in place.glob("*.trace")
                 if has_records(trace)]
        if not found:
            raise ValueError("no process was traced")
        _, trace = max(found)
        process = trace.stem.partition("-")[0]  # may have executed one program after another
        told = json.loads((place / f"{process}.json").read_text() or "{}")
        fits = fits_of(told)
        return fits, counted(trace, [fit.moment for fit in fits])


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
            fits, moments = traced(cell.subject, ours)
        except (LabError, ValueError, subprocess.CalledProcessError) as error:
            print(f"{cell.name}: {error}", flush=True)
            continue
        save(TABLE, FIELDS, cell.name, rows_of_blocks(cell.name, version, moments["peak"]))
        save(FITS, FIT_FIELDS, cell.name, rows_of_fits(cell.name, version, fits, moments))
        print(f"{cell.name}: {held(moments['peak']):,} bytes in "
              f"{sum(moments['peak'].values()):,} blocks, {len(fits)} fitted classes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
