"""The command line. Each command reads its words here and leaves the work to a module."""

import sys
import time
from pathlib import Path

import click
from rich.console import Console

from hakmem_lab import ROOT, LabError, __doc__ as about

COMMAND = {"allow_interspersed_args": False}  # what follows the program is the program's
CONSOLE = Console(highlight=False, width=None if sys.stdout.isatty() else 110)
RESULTS = ROOT / "results"

allocators_option = click.option(
    "--allocators", metavar="NAMES", help="names separated by commas, also NAME=LIBRARY; "
    "default: all that are here (`hakmem peers --list`)")
runs_option = click.option("-n", "--runs", type=click.IntRange(1, 10000), default=10,
                           show_default=True, help="rounds: runs of each allocator, in turn")
out_option = click.option("--out", type=click.Path(path_type=Path), metavar="FOLDER",
                          help="where the rows go; default: a new folder of results/")


def new_folder(out: Path | None, name: str) -> Path:
    """A folder for the rows of one run; LabError if it holds some already."""
    folder = out or RESULTS / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{name}"
    if (folder / "results.csv").exists():
        raise LabError(f"{folder} holds results already; name another folder")
    return folder


def shown(folder: Path) -> str:
    """A path as a user would type it from the checkout."""
    absolute = folder.absolute()
    return str(absolute.relative_to(ROOT) if absolute.is_relative_to(ROOT) else absolute)


@click.group(help=about.partition("\n")[0],
             context_settings={"help_option_names": ["-h", "--help"]})
def hakmem() -> None:
    pass


@hakmem.command(context_settings=COMMAND)
@click.option("--mode", help="HAKMEM_MODE: minimal or debug")
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE",
              help="an option of docs/options.md, as purge_delay_ms=0; may be repeated")
@click.option("--stats", is_flag=True, help="tell at the end where the memory was")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(mode: str | None, settings: tuple[str, ...], stats: bool, command: tuple[str, ...]) -> None:
    """Run a program on HAKMEM: hakmem run -- PROGRAM ARGUMENTS"""
    from hakmem_lab import run as runner
    runner.run(command, mode, settings, stats, CONSOLE)


@hakmem.command(context_settings=COMMAND)
@allocators_option
@runs_option
@click.option("--load", metavar="COMMAND", help="the program is a server: start it, wait until it "
              "is ready, time this load, stop it. {port} is a free port in all words")
@click.option("--until", default="", metavar="WHAT",
              help="the server is ready when port:PORT answers, its output has log:TEXT, or "
              "cmd:COMMAND succeeds; default: port:{port}")
@click.option("--limit", type=click.FloatRange(min=1), default=600, show_default=True,
              metavar="SECONDS", help="a run that takes longer is stopped and told as failed")
@out_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def compare(allocators: str | None, runs: int, load: str | None, until: str, limit: float,
            out: Path | None, command: tuple[str, ...]) -> None:
    """Your program on every allocator: hakmem compare -- PROGRAM ARGUMENTS"""
    from hakmem_lab import compare as comparing
    comparing.compare(command, comparing.Wish(allocators, runs, load, until, limit, out), CONSOLE)


@hakmem.command(context_settings=COMMAND)
@click.option("--quick", is_flag=True, help="a cell or two of each family, 5 rounds: two minutes")
@click.option("--cells", multiple=True, metavar="TEXT",
              help="only cells whose name holds this text; may be repeated")
@click.option("--no-programs", is_flag=True, help="the families only, no real programs")
@click.option("--list", "lists", is_flag=True, help="list the cells and end")
@click.option("--resume", type=click.Path(path_type=Path), metavar="FOLDER",
              help="go on with an interrupted run, as it was started")
@click.option("-n", "--runs", type=click.IntRange(1, 10000), help="rounds; default 10, quick 5")
@allocators_option
@out_option
@click.argument("program", nargs=-1, type=click.UNPROCESSED)
def bench(quick: bool, cells: tuple[str, ...], no_programs: bool, lists: bool,
          resume: Path | None, runs: int | None, allocators: str | None, out: Path | None,
          program: tuple[str, ...]) -> None:
    """The matrix of families, settings and allocators; or one benchmark program with its
    arguments: hakmem bench larson 2 8 128 1024 100 42 2"""
    from hakmem_lab import bench as benching
    wish = benching.Wish(quick, cells, not no_programs, runs, allocators, out, program)
    if lists:
        benching.list_cells(wish, CONSOLE)
    elif resume:
        benching.resume(resume, CONSOLE)
    else:
        benching.start(wish, CONSOLE)


@hakmem.command()
@click.option("--cells", multiple=True, metavar="TEXT",
              help="cells of `hakmem bench --list`; default: the quick ones")
@runs_option
@out_option
@click.argument("sweep")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ab(cells: tuple[str, ...], runs: int, out: Path | None, sweep: str,
       command: tuple[str, ...]) -> None:
    """What an option does: hakmem ab purge_delay_ms=0,1000 [-- PROGRAM ARGUMENTS]

    Also a variable of the build: hakmem ab build:HAKMEM_LTO=OFF,ON"""
    from hakmem_lab import sweep as sweeping
    sweeping.sweep(sweep, sweeping.Wish(cells, runs, out, command), CONSOLE)


@hakmem.command()
@click.option("--cells", multiple=True, metavar="TEXT")
@click.option("--every", type=click.IntRange(1), default=1, help="take every Nth commit")
@runs_option
@out_option
@click.argument("commits", metavar="A..B")
def history(cells: tuple[str, ...], every: int, runs: int, out: Path | None, commits: str) -> None:
    """Performance per commit over a range: each is built and all are measured in turn."""
    from hakmem_lab import history as walking
    walking.walk(commits, every, walking.Wish(cells, runs, out), CONSOLE)


@hakmem.command()
@click.option("--cell", "cells", required=True, multiple=True, metavar="TEXT",
              help="the cell that became slower; a name or a part of it")
@click.option("--threshold", type=click.FloatRange(0.1, 1000), default=5.0, show_default=True,
              metavar="PERCENT", help="a commit is bad if it costs so much more than A")
@click.option("--rss", is_flag=True, help="judge by peak memory instead of time")
@runs_option
@out_option
@click.argument("commits", metavar="A..B")
def bisect(cells: tuple[str, ...], threshold: float, rss: bool, runs: int, out: Path | None,
           commits: str) -> None:
    """The first commit after A that made a cell slower, by interleaved pairs with A."""
    from hakmem_lab import history as walking
    walking.bisect(commits, threshold / 100, rss, walking.Wish(cells, runs, out), CONSOLE)


@hakmem.command()
@click.option("--html", type=click.Path(path_type=Path), metavar="FILE",
              help="where the page goes; default: report.html in the first folder")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path))
def report(html: Path | None, folders: tuple[Path, ...]) -> None:
    """One page of tables and plots from result folders; default: the newest."""
    from hakmem_lab.report import write_report
    found = list(folders) or newest_folder()
    target = html or found[0] / "report.html"
    write_report(found, target)
    CONSOLE.print(f"written: {shown(target)} and {shown(target.with_suffix('.md'))}")


def newest_folder() -> list[Path]:
    held = sorted((file.stat().st_mtime, file.parent) for file in RESULTS.glob("*/results.csv"))
    if not held:
        raise LabError("there are no results yet; `hakmem compare` or `hakmem bench` makes some")
    return [held[-1][1]]


@hakmem.command()
@click.argument("folder", type=click.Path(path_type=Path))
def publish(folder: Path) -> None:
    """Copy a run to bench/results/, compressed and without raw logs, to be committed."""
    from hakmem_lab import ledger
    target = ROOT / "bench/results" / folder.resolve().name
    ledger.publish(folder, target)
    CONSOLE.print(f"written: {shown(target)}", markup=False)


@hakmem.command()
@click.option("--check", is_flag=True, help="change nothing; fail if a figure is not proven")
def figures(check: bool) -> None:
    """Bring the figures in README and docs up to their result files."""
    from hakmem_lab import embed
    for note in embed.notes(ROOT):
        CONSOLE.print(note, style="yellow", markup=False)
    if check:
        problems = embed.check(ROOT)
        if problems:
            raise LabError(f"{len(problems)} figures are not proven: {'; '.join(problems[:20])}")
        return
    for file in embed.update(ROOT):
        CONSOLE.print(f"written: {file}")


@hakmem.command()
@click.option("--list", "lists", is_flag=True, help="which allocators are here; builds nothing")
@click.option("--only", multiple=True, metavar="NAME", help="build this one; may be repeated")
def peers(lists: bool, only: tuple[str, ...]) -> None:
    """Build the other allocators from their registries into out/peers/."""
    from hakmem_lab import allocators as all_of_them, table
    all_of_them.build_release()
    if not lists:
        all_of_them.build_peers(only)
    table.show_allocators(all_of_them.present(with_floor=True), CONSOLE)
