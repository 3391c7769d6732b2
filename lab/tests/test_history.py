"""Performance per commit: what a range means, how each commit is built, when one is called bad."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import broken
import pytest
from hakmem_lab import LabError
from hakmem_lab.commands import history, sweep
from hakmem_lab.measure import allocators, builds, environment
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.commands.cli import CONSOLE
from hakmem_lab.judge.statistics import Ratio


def commits(folder: Path, monkeypatch: pytest.MonkeyPatch, costs: Sequence[float]) -> None:
    """As many commits, built already; one whose malloc costs nothing cannot be built."""
    contestants = {f"commit{place}": broken.allocator(folder, f"commit{place}", cost)
                   for place, cost in enumerate(costs) if cost}

    def build(commit: str, console: object) -> Allocator:
        if commit not in contestants:
            raise LabError(f"{commit} cannot be built: of a test")
        return contestants[commit]

    names = [f"commit{place}" for place in range(len(costs))]
    monkeypatch.setattr(history, "commits_of", lambda text: names)
    monkeypatch.setattr(history, "build", build)
    monkeypatch.setattr(history, "cells_of", lambda wish, console: [broken.cell(folder)])


def bisect(folder: Path, threshold: float = 0.03, runs: int = 10) -> str:
    with CONSOLE.capture() as said:
        history.bisect("A..B", threshold, False, sweep.Wish((), runs, folder / "r"), CONSOLE)
    return said.get()


def test_a_bisect_finds_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten commits of which the seventh makes malloc slower by 5 %."""
    commits(tmp_path, monkeypatch, [100] * 7 + [105] * 3)
    said = bisect(tmp_path)
    assert "commit6 good" in said and "commit7 bad" in said
    assert "first bad commit: commit7" in said


def test_what_cannot_be_built_is_skipped_and_may_be_the_first_bad_one(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits(tmp_path, monkeypatch, [100, 100, 0, 110, 110])
    said = bisect(tmp_path)
    assert "skipped: commit2 cannot be built: of a test" in said
    assert "the first bad commit is one of these:\n  commit2\n  commit3\n" in said


def test_a_last_commit_that_is_not_slower_ends_the_search(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits(tmp_path, monkeypatch, [100, 100, 100])
    with pytest.raises(LabError, match="commit2 is not significantly 5.0% worse than commit0"):
        bisect(tmp_path, 0.05)


def test_a_commit_is_bad_only_if_that_is_sure() -> None:
    def ratio(median: float, low: float, high: float) -> Ratio:
        return Ratio(10, median, low, high, low, high, math.nan)

    assert history.judged(ratio(1.06, 1.02, 1.09), 0.05) == history.BAD
    assert history.judged(ratio(1.06, 0.99, 1.09), 0.05) == history.UNDECIDED
    assert history.judged(ratio(1.04, 1.02, 1.07), 0.05) == history.UNDECIDED
    assert history.judged(ratio(1.02, 1.01, 1.04), 0.05) == history.GOOD


def bisection(folder: Path) -> history.Bisection:
    good = Allocator("good", "of a test")
    return history.Bisection(folder, broken.cell(folder), good, 0.05, False, 10, CONSOLE)


def test_an_undecided_commit_gets_more_rounds(monkeypatch: pytest.MonkeyPatch,
                                              tmp_path: Path) -> None:
    asked: list[int] = []

    def measured(self: object, tried: Allocator, runs: int) -> Ratio:
        asked.append(runs)
        return Ratio(10, 1.06, 0.99, 1.09, 0.99, 1.09, math.nan)

    monkeypatch.setattr(history, "build", lambda commit, console: Allocator(commit, "of a test"))
    monkeypatch.setattr(history.Bisection, "measured", measured)
    assert bisection(tmp_path).verdict("x") == history.UNDECIDED
    assert asked == [10, 20, 40]


def test_ctrl_c_tells_what_is_known_by_then(monkeypatch: pytest.MonkeyPatch,
                                            tmp_path: Path) -> None:
    def verdict(self: object, tried: str) -> str:
        if tried == "c1":
            raise KeyboardInterrupt
        return history.BAD

    monkeypatch.setattr(history.Bisection, "verdict", verdict)
    with CONSOLE.capture() as said, pytest.raises(KeyboardInterrupt):
        bisection(tmp_path).halve(["c0", "c1", "c2", "c3", "c4", "c5"])
    assert said.get() == "the first bad commit is one of these:\n  c1\n  c2\n"


def test_mistakes_are_told_before_anything_is_built(tmp_path: Path,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise AssertionError("something is built")

    monkeypatch.setattr(history, "build", refuses)
    monkeypatch.setattr(allocators, "build_release", refuses)
    monkeypatch.setattr(history, "commits_of", lambda text: ["a", "b"])
    (tmp_path / "file").touch()
    for cells, runs, out, said in (
            (("nonesuch",), 10, None, "no cell is called 'nonesuch'"),
            (("Larson",), 10, None, "--cell must mean one cell and means"),
            (("tiny hot, 32 B x 1",), 3, None, "cannot tell with 3 rounds"),
            (("tiny hot, 32 B x 1",), 10, tmp_path, "not an empty folder")):
        with pytest.raises(LabError, match=said):
            history.bisect("A..B", 0.05, False, sweep.Wish(cells, runs, out), CONSOLE)
    with pytest.raises(LabError, match="no cell is called 'nonesuch'"):
        history.walk("A..B", 1, sweep.Wish(("nonesuch",), 10, None), CONSOLE)


@broken.needs_history
def test_a_range_is_two_commits_of_here() -> None:
    for text, said in (("HEAD", "'HEAD' is not A..B"), ("..HEAD", "is not A..B"),
                       ("nonesuch..HEAD", "no commit 'nonesuch' here"),
                       ("HEAD..HEAD", "no commit in between touches the library")):
        with pytest.raises(LabError, match=said):
            history.commits_of(text)


def test_all_commits_are_built_with_the_preset_of_this_checkout() -> None:
    assert builds.preset()["CMAKE_BUILD_TYPE"] == "Release"
    assert builds.preset()["CMAKE_C_FLAGS_RELEASE"] == "-O2"
    presets: dict[str, dict[str, Any]] = {
        "a": {"cacheVariables": {"X": "1", "Y": {"type": "BOOL", "value": "ON"}}},
        "b": {"cacheVariables": {"X": "2", "Z": "3"}},
        "own": {"inherits": ["a", "b"], "cacheVariables": {"Z": "4"}}}
    assert builds._variables(presets, "own") == {"X": "1", "Y": "ON", "Z": "4"}


def test_the_flags_of_a_build_are_told_and_unknown_variables_refused(tmp_path: Path) -> None:
    (tmp_path / "malloc.c").write_text("int nothing;\n")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.21)\nproject(x C)\nadd_library(hakmem SHARED malloc.c)\n"
        "option(EXTRA \"\" OFF)\nif(EXTRA)\n  target_compile_options(hakmem PRIVATE -g1)\n"
        "endif()\n")
    flags = builds.build(tmp_path, tmp_path / "plain", {})
    assert "-O2" in flags and "-g1" not in flags
    assert "-g1" in builds.build(tmp_path, tmp_path / "extra", {"EXTRA": "ON"})
    plain, extra = (tmp_path / name / "libhakmem.so" for name in ("plain", "extra"))
    assert plain.read_bytes() != extra.read_bytes()
    with pytest.raises(LabError, match="^the build has no variable NOPE$"):
        builds.build(tmp_path, tmp_path / "nope", {"NOPE": "1"})


def test_rows_carry_the_commit_that_was_measured() -> None:
    old = Allocator("0123456789", "commit 0123456789", commit="0123456789")
    assert environment.commit_of(old) == ("0123456789", False)
    assert environment.commit_of(replace(old, commit="")) == ("", False)
    ours = replace(old, commit=allocators.CHECKOUT)
    assert environment.commit_of(ours) == environment.commit()
