"""The laboratory: runs programs on HAKMEM and beside it, and shows what was measured.

Read in this order: subject.py (what is run), allocators.py (on what), measure.py (once),
rounds.py (in turn), ledger.py (what is kept), statistics.py (what it says).
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class LabError(Exception):
    """Something the user can mend; its text is one line."""
