"""The command line. Each command reads its words here and leaves the work to a module."""

import os
import sys
import webbrowser
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from hakmem_lab import __doc__ as about, LabError, ROOT
from hakmem_lab.measure.places import newest_folder, shown
from hakmem_lab.measure.subject import REGIMES

COMMAND = {"allow_interspersed_args": False}  # what follows the program is the program's
VERSION = (ROOT / "CMakeLists.txt").read_text().partition("(hakmem VERSION ")[2].split()[0]
CONSOLE = Console(highlight=False, width=None if sys.stdout.isatty() else 110)


def some_text(value: str) -> str:
    """What is not empty: an empty word would mean the current folder, everything or nothing."""
    if not value.strip():
        raise click.BadParameter("an empty word names nothing")
    return value


def some_path(value: str) -> Path:
    """The path that a text names which is not empty."""
    return Path(some_text(value))


cells_option = click.option("--cells", type=some_text, multiple=True, metavar="TEXT",
                            help="only cells whose name contains this text; may be repeated")
allocators_option = click.option(
    "--allocators", type=some_text, metavar="NAMES", help="names separated by commas, also "
    "NAME=LIBRARY; default: all that are present (`hakmem peers --list`)")
runs_option = click.option("-n", "--runs", type=click.IntRange(1, 10000), default=10,
                           show_default=True, help="rounds: runs of each allocator, in turn")
open_option = click.option("--open", "opens", is_flag=True, help="show the page in a browser")
out_option = click.option("--out", type=some_path, metavar="FOLDER",
                          help="folder for the rows; default: a new folder in results/")


class Commands(click.Group):
    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """With the whole first sentence of each, where click would cut it."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, str(command.help).partition("\n\n")[0])
                                for name, command in self.commands.items()])


# lab/help.txt is what this prints, for a checkout in which click is not installed yet.
@click.group(cls=Commands, help=about.partition("\n")[0], invoke_without_command=True,
             subcommand_metavar="COMMAND [ARGS]...",
             context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, prog_name="hakmem", message="%(prog)s %(version)s")
@click.pass_context
def hakmem(context: click.Context) -> None:
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@hakmem.command(context_settings=COMMAND)
@click.option("--mode", help="HAKMEM_MODE: minimal, balanced, checked or debug")
@click.option("--set", "settings", multiple=True, metavar="OPTION=VALUE",
              help="an option of docs/options.md, as purge_delay_ms=0; may be repeated")
@click.option("--stats", is_flag=True, help="show at the end where the memory was")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def run(mode: str | None, settings: tuple[str, ...], stats: bool, command: tuple[str, ...]) -> None:
    """Run a program on HAKMEM: hakmem run [NAME=VALUE] PROGRAM

    NAME=VALUE, once or more, sets an option, as in the installed command: stats=/tmp/s.json is
    HAKMEM_STATS=/tmp/s.json. --set accepts known options only."""
    from hakmem_lab.commands import run as runner
    runner.run(command, mode, settings, stats, CONSOLE)


@hakmem.command(context_settings=COMMAND)
@allocators_option
@runs_option
@click.option("--load", type=some_text, metavar="COMMAND",
              help="the program is a server: start it, wait until it is ready, time this load, "
              "stop it. {port} is a free port in all words")
@click.option("--until", default="", metavar="WHAT",
              help="the server is ready when port:PORT answers, its output has log:TEXT, or "
              "cmd:COMMAND succeeds; default: port:{port}")
@click.option("--all", "takes_all", is_flag=True, help="first build the newest versions from "
              "source, many minutes once; default: what is present or fetched in seconds")
@click.option("--limit", "limit_s", type=click.FloatRange(min=1), default=600, show_default=True,
              metavar="SECONDS", help="a run that takes longer is stopped and counts as failed")
@click.option("--json", "as_json", is_flag=True, help="print all figures as JSON; other output "
              "goes to stderr")
@open_option
@out_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def compare(command: tuple[str, ...], **wishes: Any) -> None:
    """Which allocator suits your program: hakmem compare -- PROGRAM

    If stdin is a file (hakmem compare -- sort < FILE) each run reads it from its beginning, else
    nothing. The status is 1 if a run failed on any allocator."""
    from hakmem_lab.commands import compare as comparing
    comparing.compare(command, comparing.Wish(**wishes), CONSOLE)


@hakmem.command()
@click.option("--quick", is_flag=True, help="a cell or two of each family, 5 rounds: two minutes")
@cells_option
@click.option("--no-programs", is_flag=True, help="the families only, no real programs")
@click.option("--list", "lists", is_flag=True, help="list the cells and end")
@click.option("--full", is_flag=True, help="also the cells that run for many seconds")
@click.option("-n", "--runs", type=click.IntRange(1, 10000), help="rounds; default 10, quick 5")
@click.option("--most", type=click.IntRange(1, 10000), metavar="ROUNDS",
              help="most rounds of a cell; it ends once a difference of --see would have shown")
@click.option("--see", type=click.FloatRange(0.1, 100), default=2.0, show_default=True,
              metavar="PERCENT", help="the difference that would have to show")
@click.option("--budget", type=click.FloatRange(min=0), metavar="MINUTES",
              help="after this time no rounds beyond -n begin")
@click.option("--regime", type=click.Choice(("", *REGIMES)), default="", metavar="MODE",
              help="transparent huge pages: never, madvise, always; default: the machine's "
              "setting")
@click.option("--seed", type=click.IntRange(0, (1 << 32) - 1), metavar="NUMBER",
              help="repeat the order, layouts and padding of a run, whose environment.json has it")
@click.option("--busy-ok", is_flag=True, help="measure even while others use the machine")
@allocators_option
@out_option
def bench(lists: bool, no_programs: bool, **wishes: Any) -> None:
    """Measure the matrix of workloads and allocators.

    The status is 1 if a cell failed on all allocators."""
    from hakmem_lab.commands import bench as benching
    wish = benching.Wish(with_programs=not no_programs, **wishes)
    (benching.list_cells if lists else benching.start)(wish, CONSOLE)


@hakmem.command()
@cells_option
@click.option("--list", "lists", is_flag=True, help="list the programs and end")
@runs_option
@allocators_option
@out_option
@click.argument("path", type=some_path)
def suite(cells: tuple[str, ...], lists: bool, runs: int, allocators: str | None,
          out: Path | None, path: Path) -> None:
    """Your own set of programs on every allocator: hakmem suite FOLDER

    The folder holds a hakmem-suite.toml (docs/laboratory.md), or is a checkout of mimalloc-bench
    that you have built."""
    from hakmem_lab.commands import bench as benching
    wish = benching.Wish(cells=cells, runs=runs, allocators=allocators, out=out,
                         suite=str(path.absolute()), busy_ok=True)
    (benching.list_cells if lists else benching.start)(wish, CONSOLE)


@hakmem.command()
@click.argument("folder", type=some_path)
def resume(folder: Path) -> None:
    """Continue an interrupted `bench` or `suite`."""
    from hakmem_lab.commands import bench as benching
    benching.resume(folder, CONSOLE)


@hakmem.command()
@cells_option
@runs_option
@out_option
@click.argument("sweep")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def ab(cells: tuple[str, ...], runs: int, out: Path | None, sweep: str,
       command: tuple[str, ...]) -> None:
    """What an option does: hakmem ab purge_delay_ms=0,1000 -- PROGRAM

    Without a program the quick cells are measured.
    Also a variable of the build: hakmem ab build:HAKMEM_LTO=OFF,ON"""
    from hakmem_lab.commands import sweep as sweeping
    sweeping.sweep(sweep, sweeping.Wish(cells, runs, out, command), CONSOLE)


@hakmem.command()
@cells_option
@click.option("--every", type=click.IntRange(1), default=1, help="take every Nth commit")
@runs_option
@out_option
@click.argument("commits", metavar="A..B")
def history(cells: tuple[str, ...], every: int, runs: int, out: Path | None, commits: str) -> None:
    """Performance per commit of a range, all measured in turn.

    Without --cells the quick cells are measured."""
    from hakmem_lab.commands import history as walking, sweep
    walking.walk(commits, every, sweep.Wish(cells, runs, out), CONSOLE)


@hakmem.command()
@click.option("--cell", type=some_text, required=True, metavar="TEXT",
              help="the cell that became slower: its name, or a part of it that is unique")
@click.option("--threshold", type=click.FloatRange(0.1, 1000), default=5.0, show_default=True,
              metavar="PERCENT", help="a commit is bad if it costs this much more than A")
@click.option("--rss", is_flag=True, help="judge by peak memory instead of time")
@runs_option
@out_option
@click.argument("commits", metavar="A..B")
def bisect(cell: str, threshold: float, rss: bool, runs: int, out: Path | None,
           commits: str) -> None:
    """The first commit after A that made a cell slower."""
    from hakmem_lab.commands import history as walking, sweep
    walking.bisect(commits, threshold / 100, rss, sweep.Wish((cell,), runs, out), CONSOLE)


@hakmem.command()
@click.option("--html", type=some_path, metavar="FILE",
              help="where the page goes; default: report.html in the first folder")
@open_option
@click.argument("folders", nargs=-1, type=some_path)
def report(html: Path | None, opens: bool, folders: tuple[Path, ...]) -> None:
    """One page of tables and plots from result folders.

    Without a folder: the newest of results/."""
    from hakmem_lab.show.report import write_report
    found = list(folders) or [newest_folder()]
    page = write_report(found, html or found[0])
    CONSOLE.print(f"written: {shown(page)}", markup=False)
    if opens and not webbrowser.open(page.absolute().as_uri()):
        CONSOLE.print("no browser was found", style="yellow")


@hakmem.command()
@click.argument("folder", type=some_path)
def publish(folder: Path) -> None:
    """Copy a run to bench/results/, compressed, to be committed."""
    from hakmem_lab.measure import ledger
    target = ROOT / "bench/results" / folder.resolve().name
    ledger.publish(folder, target)
    CONSOLE.print(f"written: {shown(target)}", markup=False)


@hakmem.command()
@click.option("--check", is_flag=True, help="change nothing; fail if a figure is not proven")
def figures(check: bool) -> None:
    """Update the figures in README and docs from their result files."""
    from hakmem_lab.show import figures
    for note in figures.notes(ROOT):
        CONSOLE.print(note, style="yellow", markup=False)
    if check:
        problems = figures.check(ROOT)
        if problems:
            raise LabError(f"{len(problems)} figures are not proven: {'; '.join(problems[:20])}")
        return
    for file in figures.update(ROOT):
        CONSOLE.print(f"written: {file}", markup=False)


@hakmem.command()
@click.option("--list", "lists", is_flag=True, help="list the allocators that are present")
@click.option("--only", type=some_text, multiple=True, metavar="NAME",
              help="build this one; may be repeated")
def peers(lists: bool, only: tuple[str, ...]) -> None:
    """Build all other allocators; --list shows which are present."""
    from hakmem_lab.measure import allocators as all_of_them, peers as recipes
    if not lists:
        all_of_them.build_release("hakmem", "witness", "launch", "distance")
        recipes.build(only or recipes.names(), CONSOLE)
    for each in all_of_them.present().values():
        settings = "".join(f"; {name}={value}" for name, value in each.settings.items())
        CONSOLE.print(f"{each.name:18} {each.version}{settings}", markup=False)
    lacking = [name for name in recipes.names() if not recipes.is_built(name)]
    if lacking:
        CONSOLE.print(f"not built: {', '.join(lacking)}", style="dim", markup=False)
