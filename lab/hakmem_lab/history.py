"""`hakmem history` and `hakmem bisect`: performance per commit over a range.

Only the library is built from each commit; the benchmark programs and the laboratory are those of
this checkout, so that all commits do the same work.
"""

import io
import shutil
import subprocess
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hakmem_lab import ROOT, LabError, allocators, bench, cli, matrix, table
from hakmem_lab.allocators import Allocator
from hakmem_lab.campaign import Campaign
from hakmem_lab.digest import digest
from hakmem_lab.environment import output_of
from hakmem_lab.subject import Cell

BUILDS = ROOT / "out/history"
MOST_COMMITS = 40


@dataclass(frozen=True)
class Wish:
    cells: Sequence[str]
    runs: int
    out: Path | None


def commits_of(text: str) -> list[str]:
    """The commits of A..B, A itself first, that touch what the library is built from."""
    first, dots, last = text.partition("..")
    if not dots or not first:
        raise LabError(f"'{text}' is not A..B")
    ends = []
    for name in (first, last or "HEAD"):
        found = output_of("git", "rev-parse", "--verify", "--quiet", f"{name}^{{commit}}")
        if not found:
            raise LabError(f"no commit '{name}' here")
        ends.append(found)
    inside = output_of("git", "rev-list", "--reverse", "--first-parent", f"{ends[0]}..{ends[1]}",
                       "--", "src", "include", "CMakeLists.txt", "CMakePresets.json").split()
    if not inside:
        raise LabError(f"{text}: no commit in between touches the library")
    return [ends[0], *inside]


def build(commit: str, console: Console) -> Allocator:
    """The library of a commit as a contestant named by it; built once."""
    short = output_of("git", "rev-parse", "--short=10", commit)
    folder = BUILDS / short
    if not (folder / "libhakmem.so").exists():
        with console.status(f"building {short}"):
            _build_in(folder, commit, short)
    title = output_of("git", "log", "-1", "--format=%s", commit)
    library = folder / "libhakmem.so"
    return Allocator(short, title, (library,), str(library))


def _build_in(folder: Path, commit: str, short: str) -> None:
    tree = folder / "tree"
    shutil.rmtree(folder, ignore_errors=True)
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    with tarfile.open(fileobj=io.BytesIO(packed.stdout)) as archive:
        archive.extractall(tree, filter="data")
    for words in (["cmake", "-S", str(tree), "-B", str(folder), "-G", "Ninja",
                   "-DCMAKE_BUILD_TYPE=Release"],
                  ["cmake", "--build", str(folder), "--target", "hakmem"]):
        done = subprocess.run(words, text=True, capture_output=True, check=False)
        if done.returncode != 0:
            shutil.rmtree(folder, ignore_errors=True)
            said = (done.stderr + done.stdout).strip().splitlines() or ["no reason given"]
            errors = [line for line in said if "error" in line.lower()]
            raise LabError(f"{short} cannot be built: {(errors or said)[0].strip()}")
    shutil.rmtree(tree)


def _buildable(commits: Sequence[str], console: Console) -> list[Allocator]:
    """What cannot be built is skipped with a line."""
    built = []
    for commit in commits:
        try:
            built.append(build(commit, console))
        except LabError as error:
            console.print(f"skipped: {error}", style="yellow", markup=False)
    return built


def _cells(texts: Sequence[str], console: Console) -> list[Cell]:
    if texts:
        return bench.cells_of(bench.Wish(cells=texts), console)
    return matrix.quick()


def walk(text: str, every: int, wish: Wish, console: Console) -> None:
    """All commits in turn on the same cells; relative costs are to the first."""
    commits = commits_of(text)
    chosen = sorted({*range(0, len(commits), every), len(commits) - 1})
    if len(chosen) > MOST_COMMITS:
        raise LabError(f"{text} has {len(chosen)} commits to build; at most {MOST_COMMITS}: "
                       f"try --every {-(-len(commits) // MOST_COMMITS)}")
    allocators.build_release()
    contestants = _buildable([commits[place] for place in chosen], console)
    if len(contestants) < 2:
        raise LabError(f"{text}: fewer than two commits can be built")
    folder = cli.new_folder(wish.out, "history")
    campaign = Campaign(folder, f"hakmem history {text} -n {wish.runs}",
                        _cells(wish.cells, console), contestants, wish.runs, contestants[0].name)
    campaign.run(console)
    table.show_history(folder, {each.name: each.version for each in contestants}, console)
    console.print(f"rows: {cli.shown(folder)}", style="dim", markup=False)


def bisect(text: str, threshold: float, by_memory: bool, wish: Wish, console: Console) -> None:
    """Halves the range until one commit is left whose cost is above the threshold."""
    commits = commits_of(text)
    allocators.build_release()
    cells = _cells(wish.cells, console)[:1]
    folder = cli.new_folder(wish.out, "bisect")
    good = build(commits[0], console)
    judge = _Judge(folder, cells[0], good, threshold, by_memory, wish.runs, console)
    if not judge.is_bad(build(commits[-1], console)):
        raise LabError(f"{commits[-1][:10]} is not {threshold:.1%} worse than {good.name} on "
                       f"{cells[0].name}: there is nothing to look for")
    low, high = 0, len(commits) - 1  # good, bad
    while high - low > 1:
        middle = (low + high) // 2
        try:
            is_bad = judge.is_bad(build(commits[middle], console))
        except LabError as error:
            console.print(f"skipped: {error}", style="yellow", markup=False)
            commits.pop(middle)
            high -= 1
            continue
        low, high = (low, middle) if is_bad else (middle, high)
    title = output_of("git", "log", "-1", "--format=%h %s", commits[high]) or commits[high]
    console.print(f"first bad commit: {title}", style="bold", markup=False)
    console.print(f"rows: {cli.shown(folder)}", style="dim", markup=False)


@dataclass
class _Judge:
    """Compares a commit with the good one, in pairs of their own."""

    folder: Path
    cell: Cell
    good: Allocator
    threshold: float
    by_memory: bool
    runs: int
    console: Console

    def is_bad(self, tried: Allocator) -> bool:
        campaign = Campaign(self.folder / tried.name, f"hakmem bisect, {tried.name}", [self.cell],
                            [self.good, tried], self.runs, self.good.name)
        ledger = campaign.run(self.console)
        found = digest(ledger.rows, self.good.name)[0].of(tried.name)
        ratio = found and (found.relative_peak if self.by_memory else found.relative_cost)
        if not ratio:
            raise LabError(f"{tried.name} did not run: {ledger.rows[-1].status}")
        is_bad = ratio.median >= 1 + self.threshold
        what = "peak memory" if self.by_memory else "cost"
        self.console.print(f"{tried.name} {'bad ' if is_bad else 'good'} {what} {ratio.median:.3f} "
                           f"({ratio.least:.3f}-{ratio.most:.3f}) {tried.version[:60]}",
                           markup=False)
        return is_bad
