"""The command `hakmem`: whatever goes wrong ends in one line, and what was measured is kept."""

import errno
import os
import signal
import sys
import tempfile
import traceback
from types import FrameType

import click

from hakmem.errors import UserError
from hakmem_lab import LabError
from hakmem_lab.measure import environment
from hakmem_lab.commands.cli import hakmem
from hakmem_lab.measure.subject import printable

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
INTERRUPTED = 130
signals: list[int] = []  # that have come


def interrupt(number: int, frame: FrameType | None) -> None:
    signals.append(number)
    raise KeyboardInterrupt


def main() -> int:
    """The exit status: 0, 1 for what the user can mend, 2 for usage, 126 and 127 for a program that
    cannot be started or is not there, 130 for Ctrl-C, SIGTERM and
    SIGHUP, even if what was measured till then is shown."""
    for number in ENDINGS:
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves it
            signal.signal(number, interrupt)
    environment.add_tools()
    status = _main()
    return INTERRUPTED if signals else status


def _main() -> int:
    try:
        hakmem.main(prog_name="hakmem", standalone_mode=False)
        return 0
    except (LabError, UserError) as error:
        return _say(str(error), error.status)
    except SystemExit as ending:  # of what was run, or of what was found
        return ending.code if isinstance(ending.code, int) else 1
    except click.exceptions.Exit as ending:
        return ending.exit_code
    except click.ClickException as error:
        where = getattr(error, "ctx", None)
        path = where.command_path if where else "hakmem"
        return _say(f"{error.format_message()} (`{path} --help` lists what it takes)", 2)
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted; complete rounds are kept", INTERRUPTED)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # it is flushed at the end
        return 0
    except OSError as error:
        if error.errno == errno.ENOSPC:
            return _say("the disk is full; rows written so far are kept", 1)
        return _say(f"{error.filename or 'the system'}: {error.strerror}", 1)
    except Exception as error:  # a mistake of ours: one line, and the whole story in a file
        with tempfile.NamedTemporaryFile("w", prefix="hakmem-lab-", suffix=".txt",
                                         delete=False, encoding="utf-8",
                                         errors="backslashreplace") as file:
            traceback.print_exc(file=file)
        return _say(f"a mistake in the laboratory: {error}; please report {file.name}", 1)


def _say(line: str, status: int) -> int:
    print(f"hakmem: {printable(' '.join(line.split()))}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
