"""`hakmem history` and `hakmem bisect`: performance per commit over a range.

Only the library is built from each commit; the benchmark programs, the laboratory and the flags of
the build are those of this checkout, so that all commits do the same work. The commit of a row is
the one that was measured, which is the name of the allocator too.
"""

import json
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hakmem_lab import LabError, ROOT
from hakmem_lab.commands.sweep import Wish, cells_of
from hakmem_lab.measure import allocators, builds, places
from hakmem_lab.show import table
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.judge.digest import digest
from hakmem_lab.measure.environment import output_of
from hakmem_lab.judge.statistics import FEWEST_FOR_A_VERDICT, PAIRS_FOR_A_CLAIM, Ratio
from hakmem_lab.measure.subject import Cell

BUILDS = ROOT / "out/history"
STAMP = "preset.json"  # the variables that a library was built with
MOST_COMMITS = 40
TIMES = (1, 2, 4)  # the rounds asked for, before a commit stays undecided
MOST_NAMES = 8  # in a line that says what is meant
GOOD, BAD, UNDECIDED = "good", "bad", "undecided"


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


def walk(text: str, every: int, wish: Wish, console: Console) -> None:
    """All commits in turn on the same cells; relative costs are to the first. What cannot be built
    is skipped with a line."""
    commits = commits_of(text)
    chosen = sorted({*range(0, len(commits), every), len(commits) - 1})
    if len(chosen) > MOST_COMMITS:
        raise LabError(f"{text} has {len(chosen)} commits to build; at most {MOST_COMMITS}: "
                       f"try --every {-(-len(commits) // MOST_COMMITS)}")
    cells = cells_of(wish, console)
    folder = places.new_folder(wish.out, "history")
    allocators.build_release()
    contestants = []
    for place in chosen:
        try:
            contestants.append(build(commits[place], console))
        except LabError as error:
            _say(f"skipped: {error}", "yellow", console)
    if len(contestants) < 2:
        raise LabError(f"{text}: fewer than two commits can be built")
    Campaign(folder, places.command_line(), cells, contestants, wish.runs,
             contestants[0].name).run(console)
    table.show_history(folder, {each.name: title_of(each.name) for each in contestants}, console)
    _say(f"rows: {places.shown(folder)}", "dim", console)


def bisect(text: str, threshold: float, by_memory: bool, wish: Wish, console: Console) -> None:
    """Halves the range until one commit is left whose cost is surely above the threshold."""
    if wish.runs < FEWEST_FOR_A_VERDICT:
        raise LabError(_too_few(wish.runs))
    commits = commits_of(text)
    cell = the_cell(cells_of(wish, console))
    folder = places.empty_folder(wish.out, "bisect")
    allocators.build_release()
    good = build(commits[0], console)
    search = Bisection(folder, cell, good, threshold, by_memory, wish.runs, console)
    try:
        if search.verdict(commits[-1]) != BAD:
            raise LabError(f"{commits[-1][:10]} is not significantly {threshold:.1%} worse than "
                           f"{good.name} on {cell.name}: there is nothing to look for")
        search.halve(commits)
    finally:
        if folder.exists():
            _say(f"rows: {places.shown(folder)}", "dim", console)


def the_cell(cells: Sequence[Cell]) -> Cell:
    """The only one; LabError with the names if there are several."""
    if len(cells) != 1:
        names = "; ".join(each.name for each in cells[:MOST_NAMES])
        more = "; …" * (len(cells) > MOST_NAMES)
        raise LabError(f"--cell must mean one cell and means {len(cells)}: {names}{more}")
    return cells[0]


def _too_few(rounds: int) -> str:
    return f"cannot tell with {rounds} rounds; use -n {PAIRS_FOR_A_CLAIM} or more"


def _say(line: str, style: str, console: Console) -> None:
    console.print(line, style=style, soft_wrap=True, markup=False)


def judged(ratio: Ratio, threshold: float) -> str:
    """Bad: the median is above the threshold and the whole interval above 1. Good: the whole
    interval is below the threshold."""
    if ratio.median >= 1 + threshold and ratio.low > 1:
        return BAD
    return GOOD if ratio.high < 1 + threshold else UNDECIDED


@dataclass(frozen=True)
class Bisection:
    """Compares commits with the good one, each in pairs of its own."""

    folder: Path
    cell: Cell
    good: Allocator
    threshold: float
    by_memory: bool
    runs: int
    console: Console

    def halve(self, commits: list[str]) -> None:
        """The first commit is good and the last one bad. Those of which nothing can be said are
        set aside. Prints which may be the first bad one, also after Ctrl-C."""
        aside: set[str] = set()
        try:
            while open_ones := [each for each in commits[1:-1] if each not in aside]:
                tried = open_ones[(len(open_ones) - 1) // 2]
                try:
                    said = self.verdict(tried)
                except LabError as error:
                    _say(f"skipped: {error}", "yellow", self.console)
                    said = UNDECIDED
                place = commits.index(tried)
                if said == UNDECIDED:
                    aside.add(tried)
                commits = commits[:place + 1] if said == BAD else \
                    commits[place:] if said == GOOD else commits
        finally:
            names = [output_of("git", "log", "-1", "--format=%h %s", each) or each
                     for each in commits[1:]]
            _say(f"first bad commit: {names[0]}" if len(names) == 1 else
                 "\n  ".join(["the first bad commit is one of these:", *names]), "bold",
                 self.console)

    def verdict(self, commit: str) -> str:
        """Adds rounds until it is clear, up to the last of TIMES."""
        tried, said = build(commit, self.console), UNDECIDED
        for times in TIMES:
            ratio = self.measured(tried, times * self.runs)
            said = judged(ratio, self.threshold)
            _say(f"{tried.name} {said}: {'peak memory' if self.by_memory else 'time'} "
                 f"{ratio.median:.3f} ({ratio.low:.3f}-{ratio.high:.3f}) in {ratio.n} rounds, "
                 f"{title_of(tried.name)}", "", self.console)
            if said != UNDECIDED:
                break
        return said

    def measured(self, tried: Allocator, runs: int) -> Ratio:
        """Beside the good one; LabError if one of them fails, or has too few rounds."""
        rows = Campaign(self.folder / tried.name, places.command_line(), [self.cell],
                        [self.good, tried], runs, self.good.name).run(self.console).rows
        for row in rows:
            if not row.is_ok:
                raise LabError(f"{row.allocator} did not run: {row.status}")
        if len({row.round for row in rows}) < runs:
            raise KeyboardInterrupt
        own = max(digest(rows, self.good.name), key=lambda cell: cell.pairs).of(tried.name)
        ratio = own.ratio("peak" if self.by_memory else "time") if own else None
        if ratio is None or ratio.n < FEWEST_FOR_A_VERDICT:
            raise LabError(f"{tried.name}: {_too_few(ratio.n if ratio else 0)}")
        return ratio
