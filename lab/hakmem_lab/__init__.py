"""The laboratory: runs programs on HAKMEM and beside it, and shows what was measured.

Read in this order: subject.py (what is run), allocators.py (on what), measure.py (once),
rounds.py (in turn), ledger.py (what is kept), statistics.py (what it says).
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class LabError(Exception):
    """Something the user can mend; its text is one line."""

    status = 1


class NoSuchProgram(LabError):
    """There is no such program; the status is that of a shell."""

    status = 127


class NotExecutable(LabError):
    """The program cannot be started; the status is that of a shell."""

    status = 126
