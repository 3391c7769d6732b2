"""The command `hakmem`: runs programs on HAKMEM and looks into them."""

import io
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

import click
from rich.live import Live

from hakmem import (complete, leaks, learn, metrics, own_allocator, place, policy, profile,
                    statistics, tables, trace, tune, why)
from hakmem.errors import NoSuchProgram, UserError
from hakmem.foreign import console, plain, tell, tell_table

PROGRAM = {"ignore_unknown_options": True, "allow_interspersed_args": False}
FILE = click.Path(path_type=Path)
json_option = click.option("--json", "as_json", is_flag=True, help="print it as JSON")
quiet_json_option = click.option("--json", "as_json", is_flag=True,
                                 help="print all rows as JSON; the program's own output goes to "
                                 "stderr then")
words_argument = click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED,
                                shell_complete=complete.words)


class Amount(click.FloatRange):
    """No comparison refuses a nan, and none would end what goes on for so many minutes."""

    def convert(self, value: Any, param: click.Parameter | None,
                ctx: click.Context | None) -> Any:
        found = super().convert(value, param, ctx)
        if math.isnan(found):
            self.fail(f"{value!r} is not a number", param, ctx)
        return found


def is_option(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and (name.startswith("HAKMEM_") or name.replace("_", "").islower())


def with_options(words: tuple[str, ...]) -> list[str]:
    """Sets HAKMEM_NAME for the words NAME=value in front; returns the program and its arguments."""
    rest = list(words)
    while rest and is_option(rest[0]):
        name, _, value = rest.pop(0).partition("=")
        os.environ[name if name.startswith("HAKMEM_") else f"HAKMEM_{name.upper()}"] = value
    if rest[:1] == ["--"]:
        rest.pop(0)
    elif rest and rest[0].startswith("-"):
        raise click.UsageError(f"there is no option {rest[0]}: --help lists them")
    if not rest:
        raise click.UsageError("no program: try hakmem run python3 app.py")
    return rest


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(place.version(), prog_name="hakmem", message="%(prog)s %(version)s")
@click.option("--library", is_flag=True, expose_value=False, is_eager=True,
              callback=lambda context, _, wanted: _tell_library(context) if wanted else None,
              help="print the path of libhakmem.so, for LD_PRELOAD in a service file")
def hakmem() -> None:
    """Run programs on the HAKMEM memory allocator, and see what they do with memory."""


def _tell_library(context: click.Context) -> None:
    tell(str(place.library_path()))
    context.exit()


@hakmem.command(context_settings=PROGRAM)
@words_argument
def run(words: tuple[str, ...]) -> None:
    """Run a program: [NAME=VALUE ...] PROGRAM [ARGUMENT ...].

    NAME=VALUE sets an option: mode=checked is HAKMEM_MODE=checked.
    """
    program = with_options(words)
    own_allocator.warn(program[0])
    try:
        os.execvpe(program[0], program, place.preloaded(dict(os.environ)))
    except OSError as error:
        raise NoSuchProgram(program[0], error) from None


@hakmem.command()
@click.argument("what", metavar="PID|FILE", shell_complete=complete.processes)
@click.option("--prometheus", is_flag=True, help="as metrics, in the format of OpenMetrics")
@json_option
def stat(what: str, prometheus: bool, as_json: bool) -> None:
    """Show where the memory of a process is; start the process with HAKMEM_STATS."""
    if prometheus:
        tell(metrics.text_of(what), nl=False)
        return
    if as_json:
        tell(json.dumps(statistics.facts_of(statistics.picture_of(what)), indent=1))
        return
    tell_table(tables.everything(statistics.picture_of(what)))


@hakmem.command()
@click.argument("process", metavar="PID", shell_complete=complete.processes)
@click.option("--every", type=Amount(0.1, 3600), default=1.0, show_default=True,
              metavar="SECONDS", help="how often the figures are read again")
@click.option("--serve", type=click.IntRange(1, 65535), metavar="PORT",
              help="show no table; serve metrics for Prometheus at this port of loopback")
def top(process: str, every: float, serve: int | None) -> None:
    """Show the same again and again while the process runs, until Ctrl-C.

    If the output is not a terminal, the table is shown once.
    """
    if serve is not None:
        metrics.serve(process, serve)
        tell(f"http://{metrics.LOOPBACK}:{serve}/metrics", err=True)
        metrics.wait_for_end(process)
        return
    terminal, first = console(), tables.everything(statistics.picture_of(process))
    if not terminal.is_terminal:
        tell_table(first)
        return
    with Live(first, console=terminal, auto_refresh=False) as live:
        try:
            while True:
                time.sleep(every)
                live.update(tables.everything(statistics.picture_of(process)), refresh=True)
        except (KeyboardInterrupt, UserError):  # the process has ended
            pass


@hakmem.command(name="why")
@click.argument("what", metavar="PID|FILE", shell_complete=complete.processes)
@click.option("--over", type=Amount(0, 3600), default=2.0, show_default=True,
              metavar="SECONDS", help="read the figures again after this, to see what grows")
@json_option
def why_command(what: str, over: float, as_json: bool) -> None:
    """Explain why a process holds its memory, and what would return it."""
    own = own_allocator.of_process(int(what)) if statistics.is_process(what) else []
    if not as_json:
        for each in own:
            tell(each.line())
    pictures = statistics.looks_at(what, over)[::-1]
    tell(json.dumps(why.facts_of(*pictures), indent=1) if as_json else why.text_of(*pictures))


@hakmem.command(name="profile", context_settings=PROGRAM)
@click.option("--mean", type=click.IntRange(1, 1 << 20), default=512, show_default=True,
              metavar="KIB", help="take one sample for each so many KiB allocated")
@click.option("--show", type=click.Choice(profile.SHOWN), default="peak",
              show_default=True, help="memory held at the peak, held at the end, allocated in "
              "all, or freed by a thread that had not allocated it")
@click.option("--most", type=click.IntRange(1, 1000), default=15, show_default=True,
              help="rows of the table")
@click.option("--out", type=FILE, default=Path("hakmem-profile"), show_default=True,
              metavar="FOLDER", help="folder for profiles and flame graphs")
@quiet_json_option
@words_argument
def profile_command(mean: int, show: str, most: int, out: Path, as_json: bool,
                    words: tuple[str, ...]) -> None:
    """Run a program with a heap profile: shows which code holds the memory."""
    status, text = profile.profile_program(with_options(words), mean, show, out, most, as_json)
    tell(text, err=not as_json)
    sys.exit(status)


@hakmem.command(name="leaks", context_settings=PROGRAM)
@click.option("--most", type=click.IntRange(1, 100_000), default=10, show_default=True,
              help="call stacks to show")
@click.option("--depth", type=click.IntRange(1, 64), default=8, show_default=True,
              help="callers to show of each")
@click.option("--fail", is_flag=True, help="end with status 1 if anything leaks, or no process "
              "could be checked, and the program itself succeeds")
@quiet_json_option
@words_argument
def leaks_command(most: int, depth: int, fail: bool, as_json: bool,
                  words: tuple[str, ...]) -> None:
    """Run a program in the debug mode: shows which code allocated what it never frees."""
    found = leaks.run(with_options(words), as_json)
    tell(json.dumps(found.facts(), indent=1) if as_json else found.text(most, depth),
         err=not as_json)
    status, has_leaked = found.status, found.has_leaked
    sys.exit(status or int(fail and has_leaked))


@hakmem.command(name="trace", context_settings=PROGRAM)
@click.option("--out", type=FILE, default=Path("hakmem-trace"), show_default=True,
              metavar="FOLDER", help="folder for the traces, one for each process")
@words_argument
def trace_command(out: Path, words: tuple[str, ...]) -> None:
    """Run a program and record what it allocates and frees, for a replay."""
    status, text = trace.trace_program(with_options(words), out)
    tell(text, err=True)
    sys.exit(status)


@hakmem.command(name="learn", context_settings=PROGRAM)
@click.option("--mean", type=click.IntRange(1, 1 << 20), default=16, show_default=True,
              metavar="KIB", help="take one sample for each so many KiB allocated")
@click.option("--minutes", type=Amount(0, 100_000), default=1.0, show_default=True,
              help="longest time for pairs of runs without and with the policy, at least "
              "three pairs; they end early once the result is clear; 0: no runs, the profile "
              "alone decides")
@click.option("--out", type=FILE, default=Path("hakmem-policy"), show_default=True,
              metavar="FOLDER", help="folder for the policies, one for each program")
@words_argument
def learn_command(mean: int, minutes: float, out: Path, words: tuple[str, ...]) -> None:
    """Run a program, learn which of its blocks live long, and write a policy if that pays."""
    status, text = learn.learn(with_options(words), mean, out, minutes)
    tell(text, err=True)
    sys.exit(status)


@hakmem.command(name="tune", context_settings=PROGRAM)
@click.option("--price", type=click.IntRange(0, 1_000_000), default=700, show_default=True,
              metavar="MS", help="processor time that may be spent to hold one GiB less for one "
              "second; 0: only processor time counts")
@click.option("--minutes", type=Amount(0, 100_000), default=10.0, show_default=True,
              help="the search ends after the first round that exceeds this")
@click.option("--pairs", type=click.IntRange(6, 1000), default=10, show_default=True,
              help="pairs of runs that then compare the best options with the defaults")
@click.option("--seed", type=click.IntRange(0, 0xffffffff), default=1, show_default=True,
              help="seed of the random order and strategies")
@click.option("--out", type=FILE, default=Path("hakmem-policy"), show_default=True,
              metavar="FOLDER", help="folder for the policy and the picture")
@words_argument
def tune_command(price: int, minutes: float, pairs: int, seed: int, out: Path,
                 words: tuple[str, ...]) -> None:
    """Search for the options at which a program costs least, and write a policy.

    The program must do the same in each run, and end by itself.
    """
    tune.tune(with_options(words), price, minutes, pairs, out, seed)


@hakmem.group(name="policy")
def policy_group() -> None:
    """Read, compare and make policies: show, check, diff, merge, compile."""


@policy_group.command()
@click.argument("path", type=FILE)
def show(path: Path) -> None:
    """Print a policy, sorted, with its comments."""
    tell(policy.read(path).text(), nl=False)


@policy_group.command()
@click.argument("path", type=FILE)
def check(path: Path) -> None:
    """Check whether the library accepts a policy; status 1 if not."""
    if said := policy.refusal(path):
        raise UserError(said)
    tell(f"{path} is a policy")


@policy_group.command()
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
def diff(first: Path, second: Path) -> None:
    """Show what differs in the second policy; status 1 if anything does."""
    lines = policy.difference(policy.read(first), policy.read(second))
    tell("\n".join(lines), nl=bool(lines))
    sys.exit(bool(lines))


@policy_group.command(name="merge")
@click.argument("first", type=FILE)
@click.argument("second", type=FILE)
def merge_command(first: Path, second: Path) -> None:
    """Print both policies as one; where they differ, the second wins."""
    tell(policy.merge(policy.read(first), policy.read(second)).text(), nl=False)


@policy_group.command(name="compile")
@click.argument("files", type=FILE, nargs=-1, required=True)
def compile_command(files: tuple[Path, ...]) -> None:
    """Print the policy that follows from heap profiles of one program."""
    tell(learn.compiled(files).text(), nl=False)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # Not every terminal has the characters of names.
            stream.reconfigure(errors="backslashreplace")
    try:
        hakmem(prog_name="hakmem")
    except UserError as error:
        tell(f"hakmem: {plain(error)}", err=True)
        sys.exit(error.status)


if __name__ == "__main__":
    main()
