#!/usr/bin/env python3
"""Measures what the settings of docs/guide.md bring: tools/advice.py LIBRARY PROGRAM

PROGRAM is tests/preload/advised.c, compiled. Writes bench/advice.csv, and then the page. Only
counted quantities are measured, so that other work on the machine does little harm.
"""

import csv
import datetime
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import advice_doc

ROUNDS = 3
AT_A_TIME = 6  # the program sleeps most of the time
PROGRAMS = {
    "load": "load=120",
    "rounds": "rounds=8 pause=200 load=40 huge=1",
    "short rounds": "rounds=8 pause=60 load=30 huge=2",
    "long rounds": "rounds=5 pause=800 load=40",
    "no calls": "rounds=4 pause=60 load=120 calls=0",
    "threads": "threads=64 load=120",
}
# Of a heading and a setting: the program, the figure that is lower, and the most it may be, as a
# share of the same figure on the defaults.
CLAIMS = {
    ("Less memory", "price=lean"): ("rounds", "pauses", 0.5),
    ("Less memory", "purge_delay_ms=0"): ("short rounds", "pauses", 0.5),
    ("Less memory", "thp_min_heap_mb=off"): ("threads", "peak", 0.98),
    ("Less memory", "hakmem_purge()"): ("rounds", "pauses", 0.5),
    ("More speed, shorter worst calls", "price=fast"): ("long rounds", "faults", 0.7),
    ("More speed, shorter worst calls", "free_policy=keep bigcache_max_mb=1024"):
        ("short rounds", "faults", 0.7),
    ("More speed, shorter worst calls", "thp_min_heap_mb=off"): ("load", "huge", 0.1),
    ("More speed, shorter worst calls", "hakmem_purge()"): ("no calls", "rest", 0.5),
    ("Containers", "price=lean"): ("rounds", "pauses", 0.5),
    ("Containers", "limit_mb=70"): ("rounds", "pauses", 0.5),
    ("Containers", "hakmem_purge()"): ("no calls", "rest", 0.5),
    ("Containers", "background=1"): ("no calls", "rest", 0.5),
    ("Many threads", "hakmem_idle()"): ("threads", "rest", 0.5),
    ("Many threads", "tiny_fast_cap=8"): ("threads", "peak", 0.98),
    ("Huge pages", "thp_min_heap_mb=off"): ("load", "huge", 0.1),
    ("Huge pages", "thp_min_heap_mb=0 thp_adaptive=0"): ("load", "faults", 0.5),
}
NO_MATTER_OF_MEMORY = {("Containers", "plain_syscalls=1")}


def run_once(library: Path, program: Path, arguments: str, advice: str) -> dict[str, float]:
    """The figures of one run: MiB, and page faults."""
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_"))} | {"LD_PRELOAD": str(library)}
    calls = {"hakmem_purge()": "purge=1", "hakmem_idle()": "rest=1"}
    command = [str(program), *arguments.split()]
    for word in advice.split():
        name, _, value = word.partition("=")
        command += [calls[word]] if word in calls else []
        environment |= {} if word in calls else {f"HAKMEM_{name.upper()}": value}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    words = done.stdout.split()
    assert not done.stderr, done
    return {name: int(value) / (1 if name in ("faults", "cpu_ms") else 1024)
            for name, value in zip(words[::2], words[1::2])}


def measure(library: Path, program: Path, claims: list[tuple[str, str]], rounds: int = ROUNDS
            ) -> dict[tuple[str, str], dict[str, float]]:
    """The medians of each program and setting, and of each program on the defaults, as ""."""
    cells = dict.fromkeys(cell for claim in claims for cell in
                          ((CLAIMS[claim][0], ""), (CLAIMS[claim][0], claim[1])))
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        runs = list(pool.map(lambda cell: run_once(library, program, PROGRAMS[cell[0]], cell[1]),
                             [cell for _ in range(rounds) for cell in cells]))
    return {cell: {name: statistics.median(run[name] for run in runs[number::len(cells)])
                   for name in runs[number]} for number, cell in enumerate(cells)}


def main(library: Path, program: Path) -> None:
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], cwd=advice_doc.ROOT,
                            check=True, capture_output=True, text=True).stdout.strip()
    measured = measure(library, program, list(CLAIMS))
    with open(advice_doc.ROOT / advice_doc.TABLE, "w", encoding="utf-8", newline="") as file:
        figures = [f"{name}_{which}" for name in advice_doc.NAMES
                   for which in ("default", "advised")]
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["heading", "advice", "program", "figure", *figures, "n", "date", "commit"])
        for (heading, advice), (name, figure, _) in CLAIMS.items():
            values = [f"{measured[name, setting][which]:.1f}" for which in advice_doc.NAMES
                      for setting in ("", advice)]
            table.writerow([heading, advice, name, figure, *values, ROUNDS,
                            datetime.date.today().isoformat(), commit])


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
    subprocess.run([sys.executable, advice_doc.__file__], check=True)
