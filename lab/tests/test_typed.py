"""typed.py in documents that have sizes and limits of their own."""

from pathlib import Path

import pytest
from hakmem_lab.show import figures


@pytest.mark.parametrize("line", [
    "It beats jemalloc by a third.", "twice as fast", "half the memory of mimalloc3", "17 % faster",
    "A quarter less memory.", "two thirds of glibc's time", "3x slower", "1.5 times as much memory",
    "a hit takes 3 ns", "97 M op/s", "lost a third of its throughput", "heaps doubled",
    "five to ten\n  times the memory", "three times the peak", "saves 20 percent", "half as slow",
    "mimalloc2 takes 1.2× of it", "40 % more", "twice the throughput", "10 % behind",
    "the peak went from 140 MiB to 90 MiB", "throughput went up by 30 %", "wins 60 of 68 cells",
    "page faults fell from 4,000 to 300", "a peak from 140 MiB to 90 MiB",
])
@pytest.mark.parametrize("name", ["CHANGELOG.md", "docs/design.md", "README.md"])
def test_a_typed_comparison_is_found_in_every_document(line: str, name: str, tmp_path: Path,
                                                       ) -> None:
    page = tmp_path / name
    page.parent.mkdir(exist_ok=True)
    page.write_text(f"# A page\n\nHere: {line}\n")
    problems = figures.check(tmp_path)
    assert problems and all(each.startswith(f"{name}:") and "was typed" in each
                            for each in problems)


@pytest.mark.parametrize("line", [
    "spans of 4 MiB", "after 1000 ms", "waste 1.5 % at most", "at most 10 times a second",
    "half of the magazines", "up to half of them", "four times as large", "an interval of 95 %",
    "two thirds of its length", "twice the machine's memory", "index × 8", "freed twice in a row",
    "32 KiB", "within 3 % of 1", "| 64 | 4096 |", "half of their blocks",
])
def test_sizes_and_limits_of_a_design_are_no_comparison(line: str, tmp_path: Path) -> None:
    page = tmp_path / "docs/design.md"
    page.parent.mkdir()
    page.write_text(f"Here: {line}\n")
    assert figures.check(tmp_path) == []
