"""Errors that a user can cause."""


class UserError(Exception):
    """Told in one line that says what to do."""
