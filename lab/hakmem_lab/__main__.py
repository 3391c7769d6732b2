"""The command line: `python3 -m hakmem_lab run [-n PAIRS] [-- COMMAND]`."""

import argparse
import shlex
import sys

from rich.console import Console

from hakmem_lab import LabError, compare, preload, table, workload


def positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError
    return number


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hakmem_lab", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    run = verbs.add_parser("run", help="a command on HAKMEM beside the system's malloc")
    run.add_argument("-n", "--pairs", type=positive, default=5)
    run.add_argument("--library", help="default: $TESTED_LIBRARY, then out/release/libhakmem.so")
    run.add_argument("command", nargs="*", metavar="COMMAND", help="after --")
    return parser.parse_args()


def run(arguments: argparse.Namespace, console: Console) -> None:
    library = preload.find_library(arguments.library)
    title, command = shlex.join(arguments.command), arguments.command
    if not command:
        title, command = workload.TITLE, workload.default_command()
    with console.status("warming up: one run of each that does not count") as status:
        result = compare.compare(
            title, command, library, arguments.pairs,
            lambda done: status.update(f"pair {done + 1} of {arguments.pairs}"))
    if not result.pairs:
        raise LabError("interrupted before the first pair was complete")
    table.show(result, console)


def main() -> int:
    arguments = parse()
    try:
        run(arguments, Console(highlight=False))
    except LabError as error:
        print(f"hakmem_lab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
