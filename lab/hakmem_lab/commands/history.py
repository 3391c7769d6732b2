"""`hakmem history` and `hakmem bisect`: performance per commit over a range.

Only the library is built from each commit; the benchmark programs, the laboratory and the flags of
the build are those of this checkout, so that all commits do the same work. The commit of a row is
the one that was measured, which is the name of the allocator too.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from hakmem_lab import LabError, ROOT
from hakmem_lab.commands import bench
from hakmem_lab.measure import allocators, builds, matrix, places
from hakmem_lab.show import table
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.judge.digest import digest
from hakmem_lab.measure.environment import output_of
from hakmem_lab.measure.ledger import Ledger
from hakmem_lab.judge.statistics import FEWEST_FOR_A_VERDICT, PAIRS_FOR_A_CLAIM, Ratio
from hakmem_lab.measure.subject import Cell

BUILDS = ROOT / "out/history"
STAMP = "preset.json"  # the variables that a library was built with
MOST_COMMITS = 40
MOST_TIMES = 4  # so many times the rounds asked for, before a commit stays undecided
MOST_NAMES = 8  # in a line that says what is meant
GOOD, BAD, UNDECIDED = "good", "bad", "undecided"


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
                       "--", "src", "include", "CMakeLists.txt").split()
    if not inside:
        raise LabError(f"{text}: no commit in between touches the library")
    return [ends[0], *inside]


def build(commit: str, console: Console) -> Allocator:
    """The library of a commit as a contestant named by it; built once for the same preset."""
    short = output_of("git", "rev-parse", "--short=10", commit)
    folder = BUILDS / short
    library, stamp = folder / "libhakmem.so", folder / STAMP
    wanted = json.dumps(builds.preset(), indent=1, sort_keys=True) + "\n"
    if not (library.exists() and stamp.exists() and stamp.read_text() == wanted):
        with console.status(f"building {short}"):
            _build_in(folder, commit, short)
        stamp.write_text(wanted)
    title = f"{title_of(commit)}; built with {builds.flags(folder)}"
    return Allocator(short, f"commit {short}: {title}", (library,), str(library), commit=short)


def title_of(commit: str) -> str:
    return output_of("git", "log", "-1", "--format=%s", commit)


def _build_in(folder: Path, commit: str, short: str) -> None:
    tree = folder / "tree"
    shutil.rmtree(folder, ignore_errors=True)
    packed = subprocess.run(["git", "archive", commit], cwd=ROOT, capture_output=True, check=False)
    if packed.returncode != 0:
        raise LabError(f"{short} cannot be read: {packed.stderr.decode().strip()}")
    tree.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(tree)], input=packed.stdout, check=True)
    try:
        builds.build(tree, folder, {})
    except LabError as error:
        shutil.rmtree(folder, ignore_errors=True)
        raise LabError(f"{short} cannot be built: {error}") from None
    shutil.rmtree(tree)


def _buildable(commits: Sequence[str], console: Console) -> list[Allocator]:
    """What cannot be built is skipped with a line."""
    built = []
    for commit in commits:
        try:
            built.append(build(commit, console))
        except LabError as error:
            console.print(f"skipped: {error}", style="yellow", soft_wrap=True, markup=False)
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
    cells = _cells(wish.cells, console)
    folder = places.new_folder(wish.out, "history")
    allocators.build_release()
    contestants = _buildable([commits[place] for place in chosen], console)
    if len(contestants) < 2:
        raise LabError(f"{text}: fewer than two commits can be built")
    campaign = Campaign(folder, places.command_line(), cells, contestants, wish.runs,
                        contestants[0].name)
    campaign.run(console)
    table.show_history(folder, {each.name: title_of(each.name) for each in contestants},
                       console)
    console.print(f"rows: {places.shown(folder)}", style="dim", markup=False)


def bisect(text: str, threshold: float, by_memory: bool, wish: Wish, console: Console) -> None:
    """Halves the range until one commit is left whose cost is surely above the threshold."""
    if wish.runs < FEWEST_FOR_A_VERDICT:
        raise LabError(_too_few(wish.runs))
    commits = commits_of(text)
    cell = the_cell(_cells(wish.cells, console))
    folder = places.empty_folder(wish.out, "bisect")
    allocators.build_release()
    good = build(commits[0], console)
    judge = _Judge(folder, cell, good, threshold, by_memory, wish.runs, console)
    try:
        if judge.verdict(build(commits[-1], console)) != BAD:
            raise LabError(f"{commits[-1][:10]} is not surely {threshold:.1%} worse than "
                           f"{good.name} on {cell.name}: there is nothing to look for")
        _search(_Span(commits), judge, console)
    finally:
        if folder.exists():
            console.print(f"rows: {places.shown(folder)}", style="dim", markup=False)


@dataclass
class _Span:
    """The first commit is good and the last one bad; those of which nothing can be said are set
    aside."""

    commits: list[str]
    aside: set[str] = field(default_factory=set)

    def halve(self, verdict: Callable[[str], str], console: Console) -> None:
        while open_ones := [each for each in self.commits[1:-1] if each not in self.aside]:
            tried = open_ones[(len(open_ones) - 1) // 2]
            try:
                said = verdict(tried)
            except _Unusable as error:
                console.print(f"skipped: {error}", style="yellow", soft_wrap=True, markup=False)
                said = UNDECIDED
            place = self.commits.index(tried)
            if said == BAD:
                self.commits = self.commits[:place + 1]
            elif said == GOOD:
                self.commits = self.commits[place:]
            else:
                self.aside.add(tried)

    def told(self) -> str:
        """The commits one of which is the first bad one."""
        names = [output_of("git", "log", "-1", "--format=%h %s", each) or each
                 for each in self.commits[1:]]
        if len(names) == 1:
            return f"first bad commit: {names[0]}"
        return "\n  ".join(["the first bad commit is one of these:", *names])


def _search(span: _Span, judge: "_Judge", console: Console) -> None:
    try:
        span.halve(lambda commit: judge.verdict(_built(commit, console)), console)
    finally:  # also after Ctrl-C: what is known by then
        console.print(span.told(), style="bold", soft_wrap=True, markup=False)


def the_cell(cells: Sequence[Cell]) -> Cell:
    """The only one; LabError with the names if there are several."""
    if len(cells) != 1:
        names = "; ".join(each.name for each in cells[:MOST_NAMES])
        more = "; …" * (len(cells) > MOST_NAMES)
        raise LabError(f"--cell must mean one cell and means {len(cells)}: {names}{more}")
    return cells[0]


def _too_few(rounds: int) -> str:
    return f"cannot tell with {rounds} rounds; use -n {PAIRS_FOR_A_CLAIM} or more"


class _Unusable(LabError):
    """A commit of which nothing can be said; the bisect goes on without it."""


def _built(commit: str, console: Console) -> Allocator:
    try:
        return build(commit, console)
    except LabError as error:
        raise _Unusable(str(error)) from None


def judged(ratio: Ratio, threshold: float) -> str:
    """Bad: the median is above the threshold and the whole interval above 1. Good: the whole
    interval is below the threshold."""
    if ratio.median >= 1 + threshold and ratio.low > 1:
        return BAD
    return GOOD if ratio.high < 1 + threshold else UNDECIDED


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

    def verdict(self, tried: Allocator) -> str:
        """Adds rounds until it is clear, up to MOST_TIMES those asked for."""
        times = 1
        while (said := self._judged_by(tried, times * self.runs)) == UNDECIDED:
            if times == MOST_TIMES:
                break
            times *= 2
        return said

    def _judged_by(self, tried: Allocator, runs: int) -> str:
        campaign = Campaign(self.folder / tried.name, places.command_line(), [self.cell],
                            [self.good, tried], runs, self.good.name)
        ledger = campaign.run(self.console)
        self._refuse_incomplete(ledger, tried, runs)
        ratio = self._ratio(ledger, tried)
        if ratio is None or ratio.n < FEWEST_FOR_A_VERDICT:
            raise LabError(f"{tried.name}: {_too_few(ratio.n if ratio else 0)}")
        said = judged(ratio, self.threshold)
        what = "peak memory" if self.by_memory else "cost"
        self.console.print(f"{tried.name} {said}: {what} {ratio.median:.3f} ({ratio.low:.3f}-"
                           f"{ratio.high:.3f}) in {ratio.n} rounds, {title_of(tried.name)}",
                           soft_wrap=True, markup=False)
        return said

    def _ratio(self, ledger: Ledger, tried: Allocator) -> Ratio | None:
        found = next(each for each in digest(ledger.rows, self.good.name)
                     if each.name == self.cell.name).of(tried.name)
        if found is None:
            return None
        return found.relative_peak if self.by_memory else found.relative_cost

    def _refuse_incomplete(self, ledger: Ledger, tried: Allocator, runs: int) -> None:
        """A commit that fails is skipped; with the good one or the user's patience it ends."""
        for row in ledger.rows:
            if not row.is_ok and row.allocator == tried.name:
                raise _Unusable(f"{tried.name} did not run: {row.status}")
            if not row.is_ok:
                raise LabError(f"{row.allocator}, the first commit, did not run: {row.status}")
        if len({row.round for row in ledger.rows}) < runs:
            raise KeyboardInterrupt
