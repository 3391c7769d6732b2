"""The benchmark programs: every cell is understood, what is said to be written is written, layouts
differ, and the memory workloads repeat. Nothing here looks at the time a program takes.
"""

import hashlib
import json
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hakmem_lab.measure import allocators, matrix
from hakmem_lab.measure.rounds import LAYOUTS
from hakmem_lab.measure.subject import GROUPS, Cell

MEBIBYTE = 1 << 20
CELLS = matrix.families()
PROGRAMS = sorted({cell.subject.command[0] for cell in CELLS})
RESTING = ("scattered-free", "idle", "parked-pool", "ended-pool")
WORKLOADS = ("spike", "sawtooth", "phases", "ttl-store", "temporaries", *RESTING)


def program(name: str, layout: int = 0) -> Path:
    return allocators.BUILD / f"{name}_system{f'_layout{layout}' if layout else ''}"


def run(name: str, *words: str) -> dict[str, Any]:
    done = subprocess.run([program(name), *words, "--json"], capture_output=True, text=True,
                          check=True)
    return dict(json.loads(next(line for line in done.stdout.splitlines() if line[0] == "{")))


def workload(name: str, *words: str) -> dict[str, Any]:
    return run("bench_memory", f"--workload={name}", "--seconds=0.3", "--mebibytes=16", *words)


def understood_by(name: str, words: list[str]) -> dict[str, str]:
    said = subprocess.run([program(name), *words, "--echo"], capture_output=True, text=True,
                          check=True).stdout
    return {key: value for key, _, value in
            (word.partition("=") for word in shlex.split(said.splitlines()[0])[1:])}


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_the_program_of_a_cell_understands_it(cell: Cell) -> None:
    name, *words = cell.subject.command
    understood = understood_by(name, words)
    asked = dict(word.removeprefix("--").split("=") for word in words)
    assert {key: understood[key] for key in asked} == asked
    assert cell.group in GROUPS and re.fullmatch(r"\w.*[^.]\.", cell.title)
    if cell.group == "touched":
        assert re.search("(every page|all) written$", cell.name)
        assert understood["touch"] == ("pages" if "every page" in cell.name else "whole")


def test_every_program_has_a_cell_and_every_quick_name_is_one() -> None:
    built = {path.name.removesuffix("_system") for path in allocators.BUILD.glob("*_system")}
    assert built == set(PROGRAMS)
    assert [cell.name for cell in matrix.quick()] == matrix.TABLE["quick"]


@pytest.mark.parametrize("size", [1000, 10000, 1000000])
@pytest.mark.parametrize("call", ["malloc", "calloc"])
def test_blocks_whose_pages_are_written_are_resident(size: int, call: str) -> None:
    words = ("--rounds=1", "--mebibytes=48", f"--min-size={size}", f"--max-size={size}",
             f"--call={call}")
    for touch in ("pages", "whole"):
        assert run("bench_rounds", *words, f"--touch={touch}")["peak_rss_kib"] >= 48 * 1024


@pytest.mark.parametrize("words", [
    ("bench_vm_mixed", "--cycles=100", "--slots=32"),
    ("bench_mid_large_mt", "--threads=1", "--cycles=2000", "--min-size=32768", "--max-size=65536"),
    ("bench_replace", "--cycles=4", "--slots=4"),
    ("bench_rounds", "--rounds=1", "--mebibytes=32", "--min-size=500000", "--max-size=500000"),
    ("bench_realloc_growth", "--cycles=1", "--buffers=1"),
    ("bench_calloc", "--size=1000000", "--batch=10", "--cycles=4", "--blocks=fresh"),
    # One batch: with several the peak depends on which thread is late.
    ("bench_producer_consumer", "--items=100", "--min-size=100000", "--max-size=100000"),
])
def test_pages_are_written_only_when_asked_to(words: tuple[str, ...]) -> None:
    # The least of three: others on the machine may delay a thread.
    ends, pages, whole = (min(run(*words, f"--touch={touch}")["peak_rss_kib"] for _ in range(3))
                          for touch in ("ends", "pages", "whole"))
    assert 2 * ends < pages < 1.5 * whole < 2.5 * pages


@pytest.mark.parametrize("name", PROGRAMS)
def test_layouts_have_the_same_code_elsewhere(name: str) -> None:
    programs = [program(name, layout) for layout in range(LAYOUTS)]
    assert len({hashlib.sha256(path.read_bytes()).digest() for path in programs}) == LAYOUTS
    for symbol in ("main", "bench_now_ns", "parameters"):
        listed = [subprocess.run(["nm", path], capture_output=True, text=True, check=True).stdout
                  for path in programs]
        found = [re.search(rf"^(\w+) \w {symbol}$", text, re.MULTILINE) for text in listed]
        assert len({int(each[1], 16) for each in found if each}) == LAYOUTS, symbol
    assert len({subprocess.check_output([path, "--echo"]) for path in programs}) == 1


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_repeats_and_holds_what_it_says(name: str) -> None:
    first, second = workload(name), workload(name)
    assert first["operations"] == second["operations"] > 100
    assert first["peak_live_bytes"] == second["peak_live_bytes"]
    assert 0.7 * 16 * MEBIBYTE < first["peak_live_bytes"] < 1.1 * 16 * MEBIBYTE
    assert first["peak_rss_kib"] * 1024 > first["peak_live_bytes"]


@pytest.mark.parametrize("name", WORKLOADS)
def test_a_workload_that_rests_says_what_went_back(name: str) -> None:
    said = workload(name)
    assert ("returned_bytes" in said) == ("freed_bytes" in said) == (name in RESTING)
    if name in RESTING:
        assert 0.9 * said["peak_live_bytes"] < said["freed_bytes"] <= said["peak_live_bytes"]
        assert said["returned_bytes"] <= said["peak_rss_kib"] * 1024


def test_what_was_freed_and_unmapped_counts_as_returned() -> None:
    """The C library maps each of the largest blocks alone, and unmaps it when it is freed."""
    said = run("bench_memory", "--workload=idle", "--seconds=0.3", "--mebibytes=64")
    assert 0.05 * said["freed_bytes"] < said["returned_bytes"] <= said["freed_bytes"]


def test_threads_of_a_workload_share_what_it_holds() -> None:
    alone, four = workload("idle"), workload("idle", "--threads=4")
    assert four["parameters"]["threads"] == 4
    assert 0.8 < four["peak_live_bytes"] / alone["peak_live_bytes"] < 1.6
    refused = subprocess.run([program("bench_memory"), "--workload=spike", "--threads=2"],
                             capture_output=True, text=True, check=False)
    assert refused.returncode == 2 and "this workload has one thread" in refused.stderr
