"""The laboratory: runs programs on HAKMEM and beside it, and shows what was measured."""


class LabError(Exception):
    """Something the user can mend; its text is one line."""
