"""Errors that a user can cause."""

import errno


class UserError(Exception):
    """Told in one line that says what to do."""

    status = 1


class UsageError(UserError):
    """Words that the command does not take."""

    status = 2


class FileNotFound(UserError):
    """A file that is not there yet, or not any more."""


class NoSuchProgram(UserError):
    """A program that cannot be started; the statuses are those of a shell and of env."""

    def __init__(self, program: str, error: OSError) -> None:
        is_missing = error.errno == errno.ENOENT
        super().__init__(f"{program}: "
                         f"{'there is no such program' if is_missing else error.strerror}")
        self.status = 127 if is_missing else 126
