#!/usr/bin/env python3
"""Counts what programs of the matrix execute and miss in caches, per allocator.

    counts.py [ALLOCATORS [PROGRAM ...]]

ALLOCATORS as `./hakmem bench --allocators` takes them; without any, the page of the rows that are
there is printed (make docs). Each program runs once under cachegrind: counts depend on neither the
load nor the speed of the machine. The rows go to bench/counts.csv. Servers, and programs that
valgrind cannot run, are left out.
"""

import csv
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean

from tables import NONE, Row, crossed, grid, read

ROOT = Path(__file__).resolve().parents[1]
TABLE = "bench/counts.csv"
FIELDS = ("program", "allocator", "version", "instructions", "l1_misses", "l2_misses")
COUNTS = FIELDS[3:]
OURS = ("hakmem",)

# First-level and last-level cache as small cores have them, so that rows of all machines agree.
CACHES = ("--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64")
# Programs take some forty times as long: what waits for a time waits as much longer.
SLOWED = {"HAKMEM_PURGE_DELAY_MS": "20000", "MIMALLOC_PURGE_DELAY": "40000"}

HEAD = """# Counted: programs without the noise

Times of whole programs scatter by several percent from run to run, also on a quiet machine. What a
program executes and what it misses in caches scatters much less. A second run gives nearly the
same instructions; misses depend a little on where memory happens to lie. Here each program ran
once per allocator under valgrind's cachegrind, with the same input as in `docs/measured.md`. So
these tables tell what a difference in time is made of, and where there is none in the code.

* **What is counted**: user mode only, all processes and threads together. Page faults and what the
  kernel does for them are not in it; `docs/measured.md` and the result files have those.
* **The caches** are simulated: 32 KiB in the first level and 1 MiB behind it, 64 bytes a line, no
  prefetching. Misses are of data. A miss in the first level that hits in the second costs some ten
  cycles; a miss in the second, a hundred and more.
* **Not counted**: servers, some programs with long runs, and snmalloc, which stops under valgrind.
* **Clocks**: a program takes some forty times as long under valgrind, so delays of purging are
  made as much longer. HAKMEM and mimalloc have such delays; rpmalloc and the C library do not go
  by time.
* **To read**: HAKMEM's count, then the same divided by the other's; below 1 it needs less.

`tools/counts.py ALLOCATORS [PROGRAM …]` runs them, keeps the rows in `bench/counts.csv` and prints
this page.

"""


def ratio(row: Row, other: Row, count: str) -> float:
    return int(row[count]) / max(1, int(other[count]))


def table(text: str) -> str:
    """A row per program: what HAKMEM needs, and that divided by what each other needs."""
    found = {program: by for (program,), by in crossed(text, ("program",), ("allocator",)).items()
             if OURS in by and len(by) > 1}
    others = sorted({name for by in found.values() for name in by} - {OURS})
    parts = []
    for count, title, unit in zip(COUNTS, ("Instructions", "First-level misses",
                                           "Second-level misses"), (9, 6, 6), strict=True):
        ratios = {program: {each: ratio(by[OURS], by[each], count) for each in others if each in by}
                  for program, by in sorted(found.items())}
        means = [geometric_mean(by[each] for by in ratios.values() if each in by)
                 for each in others]
        parts.append(grid(
            [title, f"hakmem, 10{'⁹' if unit == 9 else '⁶'}:", *(f"÷ {each}:" for each, in others)],
            [*([program, f"{int(found[program][OURS][count]) / 10**unit:,.2f}",
                *(f"{by[each]:.3f}" if each in by else NONE for each in others)]
               for program, by in ratios.items()),
             ["**geometric mean**", "", *(f"**{each:.3f}**" for each in means)]]))
    return "\n".join(parts)


def counted(cell, allocator, version: str) -> Row | None:
    """One run, all its processes added up; None, and a line that says so, if it failed.

    Of a process that executes another program only that one counts."""
    with tempfile.TemporaryDirectory(prefix="hakmem-counts-") as name:
        place = Path(name)
        (place / "folder").mkdir()

        def fill(word: str) -> str:
            return word.replace("{folder}", str(place / "folder")).replace("{root}", str(ROOT))

        subject = cell.subject
        environment = dict(os.environ) | SLOWED | subject.settings | allocator.settings
        environment["LD_PRELOAD"] = ":".join(map(str, allocator.preload))
        words = ["valgrind", "--tool=cachegrind", "--cache-sim=yes", "--trace-children=yes",
                 f"--log-file={place}/said.%p", f"--cachegrind-out-file={place}/counts.%p", *CACHES,
                 *map(fill, subject.command)]
        done = subprocess.run(words, env=environment, check=False, stdin=subprocess.DEVNULL,
                              capture_output=True, cwd=fill(subject.folder) or None)
        if done.returncode != 0:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            print(f"{cell.name} on {allocator.name}: status {done.returncode} {last}", flush=True)
            return None
        sums = dict.fromkeys(("Ir", "D1m", "LLm"), 0)
        for file in place.glob("counts.*"):
            text = file.read_text(errors="replace")
            events, totals = (re.search(rf"^{head}: (.*)$", text, re.M)
                              for head in ("events", "summary"))
            if events is None or totals is None:
                print(f"{cell.name} on {allocator.name}: a process was killed", flush=True)
                return None
            by = dict(zip(events[1].split(), map(int, totals[1].split()), strict=True))
            sums["Ir"] += by["Ir"]
            sums["D1m"] += by["D1mr"] + by["D1mw"]
            sums["LLm"] += by["DLmr"] + by["DLmw"]
    return dict(zip(FIELDS, (cell.name, allocator.name, version, *map(str, sums.values())),
                    strict=True))


def save(rows: list[Row]) -> None:
    """Puts the rows in the place of those of the same program and allocator."""
    file = ROOT / TABLE
    by = {(row["program"], row["allocator"]): row
          for row in [*(read(file.read_text(encoding="utf-8")) if file.exists() else []), *rows]}
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(by[key] for key in sorted(by))


def main() -> int:
    if not sys.argv[1:]:
        print(HEAD + table((ROOT / TABLE).read_text(encoding="utf-8")), end="")
        return 0
    sys.path.insert(0, str(ROOT / "lab"))
    from hakmem_lab.measure import allocators, environment, programs

    def version_of(allocator: allocators.Allocator) -> str:
        commit, is_dirty = environment.commit_of(allocator)
        return commit + " and changes" * is_dirty or allocator.version

    chosen, wanted = allocators.choose(sys.argv[1]), set(sys.argv[2:])
    cells, _ = programs.ready([cell for cell in programs.cells()[0] if not cell.subject.is_server
                               and (cell.name in wanted or not wanted)])
    runs = [(cell, allocator, version_of(allocator)) for cell in cells for allocator in chosen]
    failed = 0
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for row in pool.map(lambda run: counted(*run), runs):
            failed += row is None
            if row:
                save([row])
                print(", ".join(row.values()), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
