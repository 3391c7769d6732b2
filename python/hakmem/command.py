"""The command `hakmem`: runs programs on HAKMEM and looks into them."""

import argparse
import io
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hakmem import (complete, leaks, learn, metrics, own_allocator, place, policy, profile,
                    statistics, tables, trace, tune, why)
from hakmem.complete import Parser
from hakmem.errors import NoSuchProgram, UsageError, UserError
from hakmem.foreign import plain, tell, tell_over

INTERRUPTED = 130


class Argument:
    """What add_argument of argparse takes, and what a shell completes it by."""

    def __init__(self, *names: str, complete_by: complete.By | None = None, **more: Any) -> None:
        if more.get("default") and "help" in more:
            more["help"] += " (default: %(default)s)"
        self.names, self.complete_by, self.more = names, complete_by, more


def between(low: float, high: float, kind: type = int) -> Callable[[str], float]:
    """A number, none of which a nan is."""
    def number(text: str) -> float:
        try:
            found: float = kind(text)
        except ValueError:
            found = float("nan")
        if not low <= found <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {low} to {high}")
        return found

    return number


def file(name: str, **more: Any) -> Argument:
    return Argument(name, type=Path, metavar="FILE", **more)


def folder(default: str, what: str) -> Argument:
    return Argument("--out", type=Path, default=Path(default), metavar="FOLDER", help=what)


as_json = Argument("--json", dest="as_json", action="store_true", help="print it as JSON")
quiet_json = Argument("--json", dest="as_json", action="store_true",
                      help="print all rows as JSON; the program's own output goes to stderr then")
process_or_file = Argument("what", metavar="PID|FILE", complete_by=complete.processes)
program_words = Argument("words", nargs=argparse.REMAINDER, help="[NAME=VALUE ...] [--] PROGRAM "
                         "[ARGUMENT ...]", complete_by=complete.words)

hakmem = Parser(prog="hakmem", description="Run programs on the HAKMEM memory allocator, and see "
                "what they do with memory.")
hakmem.add_argument("--version", action="version", version=f"hakmem {place.version()}")
hakmem.add_argument("--library", action="store_true",
                    help="print the path of libhakmem.so, for LD_PRELOAD in a service file")
hakmem.add_argument("--completion", choices=sorted(complete.SHELLS), metavar="SHELL",
                    help="print what completes this command in bash, fish or zsh")
hakmem.set_defaults(function=None)
commands = hakmem.add_commands()


def command(*arguments: Argument, of: Any = commands, name: str = "") -> Callable[[Any], Any]:
    """A function becomes a command: its parameters are the arguments, its docstring the help."""
    def add(function: Any) -> Any:
        about = "\n".join(line.strip() for line in (function.__doc__ or "").splitlines()).strip()
        parser = of.add_parser(name or function.__name__, help=about.partition("\n")[0],
                               description=about)
        for each in arguments:
            action = parser.add_argument(*each.names, **each.more)
            if each.complete_by:
                parser.complete_by[action.dest] = each.complete_by
        if program_words in arguments:
            parser.usage = f"{parser.prog} [OPTIONS] [NAME=VALUE ...] [--] PROGRAM [ARGUMENT ...]"
        parser.set_defaults(function=function)
        return function

    return add


def is_option(word: str) -> bool:
    name, equals, _ = word.partition("=")
    return bool(equals) and (name.startswith("HAKMEM_") or name.replace("_", "").islower())


def with_options(words: Sequence[str]) -> list[str]:
    """Sets HAKMEM_NAME for the words NAME=value in front; returns the program and its arguments."""
    rest = list(words)
    while rest and is_option(rest[0]):
        name, _, value = rest.pop(0).partition("=")
        os.environ[name if name.startswith("HAKMEM_") else f"HAKMEM_{name.upper()}"] = value
    if rest[:1] == ["--"]:
        rest.pop(0)
    elif rest and rest[0].startswith("-"):
        raise UsageError(f"there is no option {rest[0]}: --help lists them")
    if not rest:
        raise UsageError("no program: try hakmem run python3 app.py")
    return rest


@command(program_words)
def run(words: list[str]) -> None:
    """Run a program: [NAME=VALUE ...] PROGRAM [ARGUMENT ...].

    NAME=VALUE sets an option: mode=checked is HAKMEM_MODE=checked.
    """
    program = with_options(words)
    own_allocator.warn(program[0])
    try:
        os.execvpe(program[0], program, place.preloaded(dict(os.environ)))
    except OSError as error:
        raise NoSuchProgram(program[0], error) from None


@command(process_or_file,
         Argument("--prometheus", action="store_true",
                  help="as metrics, in the format of OpenMetrics"),
         as_json)
def stat(what: str, prometheus: bool, as_json: bool) -> None:
    """Show where the memory of a process is; start the process with HAKMEM_STATS."""
    if prometheus:
        tell(metrics.text_of(what), nl=False)
        return
    if as_json:
        tell(json.dumps(statistics.facts_of(statistics.picture_of(what)), indent=1))
        return
    tell(tables.everything(statistics.picture_of(what)))


@command(Argument("process", metavar="PID", complete_by=complete.processes),
         Argument("--every", type=between(0.1, 3600, float), default=1.0, metavar="SECONDS",
                  help="how often the figures are read again"),
         Argument("--serve", type=between(1, 65535), metavar="PORT",
                  help="show no table; serve metrics for Prometheus at this port of loopback"))
def top(process: str, every: float, serve: int | None) -> None:
    """Show the same again and again while the process runs, until Ctrl-C.

    If the output is not a terminal, the table is shown once.
    """
    if serve is not None:
        metrics.serve(process, serve)
        tell(f"http://{metrics.LOOPBACK}:{serve}/metrics", err=True)
        metrics.wait_for_end(process)
        return
    first = tables.everything(statistics.picture_of(process))
    if not sys.stdout.isatty():
        tell(first)
        return
    tell_over(first)
    try:
        while True:
            time.sleep(every)
            tell_over(tables.everything(statistics.picture_of(process)))
    except (KeyboardInterrupt, UserError):  # the process has ended
        pass


@command(process_or_file,
         Argument("--over", type=between(0, 3600, float), default=2.0, metavar="SECONDS",
                  help="read the figures again after this, to see what grows"),
         as_json, name="why")
def why_command(what: str, over: float, as_json: bool) -> None:
    """Explain why a process holds its memory, and what would return it."""
    own = own_allocator.of_process(int(what)) if statistics.is_process(what) else []
    if not as_json:
        for each in own:
            tell(each.line())
    pictures = statistics.looks_at(what, over)[::-1]
    tell(json.dumps(why.facts_of(*pictures), indent=1) if as_json else why.text_of(*pictures))


@command(Argument("--mean", type=between(1, 1 << 20), default=512, metavar="KIB",
                  help="take one sample for each so many KiB allocated"),
         Argument("--show", choices=profile.SHOWN, default="peak",
                  help="memory held at the peak, held at the end, allocated in all, or freed by a "
                  "thread that had not allocated it"),
         Argument("--most", type=between(1, 1000), default=15, metavar="ROWS",
                  help="rows of the table"),
         folder("hakmem-profile", "folder for profiles and flame graphs"),
         quiet_json, program_words, name="profile")
def profile_command(mean: int, show: str, most: int, out: Path, as_json: bool,
                    words: list[str]) -> None:
    """Run a program with a heap profile: shows which code holds the memory."""
    status, text = profile.profile_program(with_options(words), mean, show, out, most, as_json)
    tell(text, err=not as_json)
    sys.exit(status)


@command(Argument("--most", type=between(1, 100_000), default=10, metavar="STACKS",
                  help="call stacks to show"),
         Argument("--depth", type=between(1, 64), default=8, metavar="CALLERS",
                  help="callers to show of each"),
         Argument("--fail", action="store_true",
                  help="end with status 1 if anything leaks, or no process could be checked, and "
                  "the program itself succeeds"),
         quiet_json, program_words, name="leaks")
def leaks_command(most: int, depth: int, fail: bool, as_json: bool,
                  words: list[str]) -> None:
    """Run a program in the debug mode: shows which code allocated what it never frees."""
    found = leaks.run(with_options(words), as_json)
    tell(json.dumps(found.facts(), indent=1) if as_json else found.text(most, depth),
         err=not as_json)
    status, has_leaked = found.status, found.has_leaked
    sys.exit(status or int(fail and has_leaked))


@command(folder("hakmem-trace", "folder for the traces, one for each process"), program_words,
         name="trace")
def trace_command(out: Path, words: list[str]) -> None:
    """Run a program and record what it allocates and frees, for a replay."""
    status, text = trace.trace_program(with_options(words), out)
    tell(text, err=True)
    sys.exit(status)


@command(Argument("--mean", type=between(1, 1 << 20), default=16, metavar="KIB",
                  help="take one sample for each so many KiB allocated"),
         Argument("--minutes", type=between(0, 100_000, float), default=1.0,
                  help="longest time for pairs of runs without and with the policy, at least "
                  "three pairs; they end early once the result is clear; 0: no runs, the profile "
                  "alone decides"),
         folder("hakmem-policy", "folder for the policies, one for each program"),
         program_words, name="learn")
def learn_command(mean: int, minutes: float, out: Path, words: list[str]) -> None:
    """Run a program, learn which of its blocks live long, and write a policy if that pays."""
    status, text = learn.learn(with_options(words), mean, out, minutes)
    tell(text, err=True)
    sys.exit(status)


@command(Argument("--price", type=between(0, 1_000_000), default=700, metavar="MS",
                  help="processor time that may be spent to hold one GiB less for one second; 0: "
                  "only processor time counts"),
         Argument("--minutes", type=between(0, 100_000, float), default=10.0,
                  help="the search ends after the first round that exceeds this"),
         Argument("--pairs", type=between(6, 1000), default=10,
                  help="pairs of runs that then compare the best options with the defaults"),
         Argument("--seed", type=between(0, 0xffffffff), default=1,
                  help="seed of the random order and strategies"),
         folder("hakmem-policy", "folder for the policy and the picture"),
         program_words, name="tune")
def tune_command(price: int, minutes: float, pairs: int, seed: int, out: Path,
                 words: list[str]) -> None:
    """Search for the options at which a program costs least, and write a policy.

    The program must do the same in each run, and end by itself.
    """
    tune.tune(with_options(words), price, minutes, pairs, out, seed)


@command(name="policy")
def policy_group() -> None:
    """Read, compare and make policies: show, check, diff, merge, compile."""
    raise UsageError("no command of policy: hakmem policy --help lists them")


of_policy = commands.choices["policy"].add_commands()


@command(file("path"), of=of_policy)
def show(path: Path) -> None:
    """Print a policy, sorted, with its comments."""
    tell(policy.read(path).text(), nl=False)


@command(file("path"), of=of_policy)
def check(path: Path) -> None:
    """Check whether the library accepts a policy; status 1 if not."""
    if said := policy.refusal(path):
        raise UserError(said)
    tell(f"{path} is a policy")


@command(file("first"), file("second"), of=of_policy)
def diff(first: Path, second: Path) -> None:
    """Show what differs in the second policy; status 1 if anything does."""
    lines = policy.difference(policy.read(first), policy.read(second))
    tell("\n".join(lines), nl=bool(lines))
    sys.exit(bool(lines))


@command(file("first"), file("second"), of=of_policy, name="merge")
def merge_command(first: Path, second: Path) -> None:
    """Print both policies as one; where they differ, the second wins."""
    tell(policy.merge(policy.read(first), policy.read(second)).text(), nl=False)


@command(file("files", nargs="+"), of=of_policy, name="compile")
def compile_command(files: list[Path]) -> None:
    """Print the policy that follows from heap profiles of one program."""
    tell(learn.compiled(files).text(), nl=False)


def obey(words: list[str]) -> None:
    """Does what the words of a command line say."""
    if words[:1] == ["--complete"]:
        tell("".join(f"{each}\n" for each in complete.candidates(hakmem, words[1:])), nl=False)
        return
    given, unknown = hakmem.parse_known_args(words)
    if unknown:
        raise UsageError(f"there is no option {unknown[0]}: --help lists them")
    found = vars(given)
    library, shell, function = (found.pop(name) for name in ("library", "completion", "function"))
    if library:
        tell(str(place.library_path()))
    elif shell:
        tell(complete.SHELLS[shell], nl=False)
    elif not function:
        raise UsageError("no command: --help lists them")
    else:
        function(**found)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # Not every terminal has the characters of names.
            stream.reconfigure(errors="backslashreplace")
    try:
        obey(sys.argv[1:])
    except UserError as error:
        tell(f"hakmem: {plain(error)}", err=True)
        sys.exit(error.status)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:  # Python writes what is left at the end
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # a full disk, say
        tell(f"hakmem: {plain(error.filename or 'output')}: {error.strerror}", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
