#!/usr/bin/env python3
"""Counts how often a program comes to each lock of the allocator, and for how many instructions.

From the counts follows how many threads it takes until one of them always holds the lock (the
bound of asymptotic analysis; Lazowska and others, Quantitative System Performance, 1984). They do
nothing but allocate, and each handover of a lock costs as much as HANDOVER instructions. The depots
of all classes are counted as one, and so are the central lists: in truth each class has its own.
Times are not taken: callgrind counts. Usage: locks.py [FOLDER OF A BUILD]
"""

import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

SKIPPED = 77
HANDOVER = 300  # a line of cache that comes from another core, twice: some 100 ns
# Functions that hold the lock for most of their time.
LOCKS = {
    "depots": ("depot_take", "depot_give"),
    "central lists": ("central_list_take", "central_list_give"),
    "page heap": ("page_heap_alloc", "page_heap_alloc_slab", "page_heap_free",
                  "page_heap_free_slab", "page_heap_extend", "page_heap_shrink"),
    "memory for structures": ("meta_alloc", "meta_free"),
    "window": ("page_map_grow", "page_map_unmap"),
}
# Programs of bench/ that go on with the memory they have, and the threads that each kind of lock
# has to bear there: of the classes, then of those of all classes. Where memory is new or goes
# back, page faults cost far more than what is counted here. In the last program no block is freed
# by the thread that has allocated it.
PROGRAMS = {
    "bench_random_mixed": (["--cycles=1000000"], 64, 256),
    "bench_migrate": (["--cycles=500000"], 64, 256),
    "bench_ring": (["--cycles=10000"], 64, 256),
    "bench_producer_consumer": (["--items=1000000"], 8, 256),
}
SHARED = ("page heap", "memory for structures", "window")


@dataclass
class Counts:
    """What callgrind has counted: all instructions; calls of each function, and theirs."""

    total: int = 0
    calls: Counter[str] = field(default_factory=Counter)
    instructions: Counter[str] = field(default_factory=Counter)


def read(path: Path) -> Counts:
    counts, names = Counts(), {}
    caller = callee = ""
    lines = iter(path.read_text(encoding="utf-8").splitlines())
    for line in lines:
        if match := re.match(r"(c?)fn=\((\d+)\)(?: (.*))?", line):
            if match[3]:
                names[match[2]] = match[3].split("'")[0]
            if match[1]:
                callee = names[match[2]]
            else:
                caller = names[match[2]]
        elif line.startswith("calls="):
            cost = int(next(lines).split()[1])
            if callee != caller:
                counts.calls[callee] += int(line[6:].split()[0])
                counts.instructions[callee] += cost
        elif line.startswith("totals:"):
            counts.total = int(line.split()[1])
    return counts


def threads_borne(counts: Counts, functions: tuple[str, ...]) -> float:
    """So many threads keep the lock busy; infinite, if nobody comes to it."""
    held = sum(counts.instructions[name] + HANDOVER * counts.calls[name] for name in functions)
    return counts.total / held if held else float("inf")


def count(program: Path, arguments: list[str]) -> Counts:
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "counts"
        subprocess.run(["valgrind", "--tool=callgrind", f"--callgrind-out-file={output}", program,
                        *arguments], check=True, capture_output=True)
        return read(output)


def complaints(counts: Counts, own: int, shared: int) -> list[str]:
    """Which locks bear fewer threads than they have to."""
    found = []
    for lock, functions in LOCKS.items():
        borne, wanted = threads_borne(counts, functions), shared if lock in SHARED else own
        if borne < wanted:
            found.append(f"{lock}: {borne:.0f} threads keep it busy, {wanted} have to fit")
    return found


def main() -> int:
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "out/release")
    failed = False
    for name, (arguments, own, shared) in PROGRAMS.items():
        counts = count(build / f"{name}_hakmem", arguments)
        print(f"{name}: {counts.total} instructions")
        for lock, functions in LOCKS.items():
            calls = sum(counts.calls[function] for function in functions)
            print(f"  {lock}: {calls} calls, {threads_borne(counts, functions):.0f} threads")
        for line in complaints(counts, own, shared):
            print(f"  too much: {line}")
            failed = True
    return int(failed)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except FileNotFoundError as missing:
        print(f"skipped: {missing.filename} is not there")
        sys.exit(SKIPPED)
