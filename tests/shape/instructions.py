#!/usr/bin/env python3
"""Counts the instructions of calls that hit, with the loop around them, by callgrind.

The program pairs.c runs twice, with different numbers of rounds. The difference is that of the
rounds alone: what the start of the program takes is in both runs. Usage: instructions.py [LIBRARY]
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

SKIPPED = 77
FEW, MORE = 1_000, 11_000  # rounds
# What one round may take on x86-64, with the loop and the calls.
BUDGET = {
    "malloc_free": 41,
    "calloc_free": 58,
    "realloc_null_free": 57,
    "realloc_in_place": 77,
    "malloc_realloc_up_free": 236,
    "aligned_4096_free": 60,
    "aligned_16384_free": 60,
    "usable_size": 77,
}


def build(folder: Path) -> Path:
    program = folder / "pairs"
    source = Path(__file__).with_name("pairs.c")
    subprocess.run(["cc", "-O2", "-fno-builtin", "-o", program, source], check=True)
    return program


def count(program: Path, library: Path, kind: str, rounds: int) -> int:
    """All instructions of the program."""
    words = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program, kind,
             str(rounds)]
    run = subprocess.run(words, check=True, capture_output=True, text=True,
                         env=os.environ | {"LD_PRELOAD": str(library), "LC_ALL": "C"})
    found = re.search(r"Collected : (\d+)", run.stderr)
    if not found:
        raise SystemExit(f"instructions: no count in what valgrind says:\n{run.stderr}")
    return int(found[1])


def per_round(program: Path, library: Path, kind: str) -> int:
    few, more = (count(program, library, kind, rounds) for rounds in (FEW, MORE))
    return round((more - few) / (MORE - FEW))


def main(library: Path) -> int:
    if platform.machine() != "x86_64":
        print("instructions: the budgets are those of x86-64: skipped")
        return SKIPPED
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        program = build(Path(folder))
        for kind, budget in BUDGET.items():
            taken = per_round(program, library, kind)
            failed |= taken > budget
            print(f"{kind}: {taken} instructions a round, at most {budget}"
                  + (": too many" if taken > budget else ""))
    return int(failed)


if __name__ == "__main__":
    default = os.environ.get("TESTED_LIBRARY", "out/release/libhakmem.so")
    try:
        sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else default).resolve()))
    except FileNotFoundError as missing:
        print(f"skipped: {missing.filename} is not there")
        sys.exit(SKIPPED)
