"""Starts programs through lab/launch.c, and ends with them all that they started."""

import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from hakmem_lab import LabError
from hakmem_lab.measure.allocators import BUILD

LAUNCH = BUILD / "launch"
FIRST_LOOK_S, LONGEST_LOOK_S, LOOK_GROWTH = 0.001, 0.01, 1.3
END_LIMIT_S = 10.0
OUTPUT_LIMIT = 1 << 30  # bytes that a program may print: they lie in a file of ours
OWN_STDIN = Path("/proc/self/fd/0")


class Launched:
    """A program that lab/launch.c runs, with its report."""

    def __init__(self, words: tuple[str, ...], environment: dict[str, str], output: IO[bytes],
                 folder: Path | None, reads_stdin: bool = False) -> None:
        self.name, self.output = Path(words[0]).name, output
        reader, writer = os.pipe()
        try:
            with _stdin(reads_stdin) as stdin:
                self.process = subprocess.Popen(
                    [LAUNCH, str(writer), *words], env=environment, stdin=stdin, stdout=output,
                    stderr=output, pass_fds=[writer], cwd=folder, start_new_session=True)
        except FileNotFoundError:
            os.close(reader)
            raise LabError(f"{LAUNCH} is missing; `make release` builds it") from None
        except OSError as error:
            os.close(reader)
            raise LabError(f"{self.name}: {error.strerror}") from None
        finally:
            os.close(writer)
        self.reports = os.fdopen(reader)
        try:
            first = self._report()
            if "error" in first:
                raise LabError(f"{words[0]}: {first['error']}")
        except BaseException:
            self.end()
            raise
        self.pid = int(first["pid"])

    def _report(self) -> dict[str, Any]:
        line = self.reports.readline()
        if not line:
            raise LabError(f"{self.name} ended without a report: what had started it was killed")
        return dict(json.loads(line))

    def wait(self, limit_s: float) -> bool:
        """Has it ended, with all below it, within the limit?"""
        try:
            self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def last_report(self) -> dict[str, Any]:
        """Status, wall time and use of the program once it has ended, and how many processes it
        had left behind."""
        self.process.wait()
        return self._report()

    def has_ended(self) -> bool:
        try:
            ended = os.pidfd_open(self.pid)
        except ProcessLookupError:
            return True
        try:
            return bool(select.select([ended], [], [], 0)[0])
        finally:
            os.close(ended)

    def last_words(self) -> str:
        """": " and the last line that it printed, or nothing."""
        with Path(f"/proc/self/fd/{self.output.fileno()}").open("rb") as said:
            said.seek(max(0, said.seek(0, 2) - 65536))
            text = said.read()
        lines = text.decode(errors="replace").strip().splitlines()[-1:]
        return "".join(f": {line.strip()[:200]}" for line in lines)

    def refuse_flood(self) -> None:
        """LabError if it has printed more than we keep room for."""
        if os.fstat(self.output.fileno()).st_size > OUTPUT_LIMIT:
            raise LabError(f"{self.name} printed more than {OUTPUT_LIMIT >> 20:,} MiB and was "
                           "stopped; let it write to /dev/null")

    def watch(self, look: Callable[[], None], limit_s: float) -> None:
        """Calls `look` again and again until the program has ended; LabError after the limit."""
        start, pause_s = time.perf_counter(), FIRST_LOOK_S
        ended = os.pidfd_open(self.process.pid)
        try:
            while not select.select([ended], [], [], pause_s)[0]:
                look()
                self.refuse_flood()
                pause_s = min(pause_s * LOOK_GROWTH, LONGEST_LOOK_S)
                if time.perf_counter() - start > limit_s:
                    raise LabError(f"{self.name} was not done in {limit_s:g} s and was stopped")
        finally:
            os.close(ended)
        self.refuse_flood()

    def signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def end(self) -> None:
        """Whatever it left behind ends with it: lab/launch.c sees to that at SIGTERM."""
        self.process.terminate()
        if not self.wait(END_LIMIT_S):
            self.process.kill()
            self.process.wait()
        self.reports.close()


def _stdin(is_ours: bool) -> IO[bytes]:
    """Our own from its beginning, if that is wanted and it is a file; else nothing to read."""
    return (OWN_STDIN if is_ours and OWN_STDIN.is_file() else Path(os.devnull)).open("rb")


@contextmanager
def launched(words: tuple[str, ...], environment: dict[str, str], output: IO[bytes],
             folder: Path | None, reads_stdin: bool = False) -> Iterator[Launched]:
    program = Launched(words, environment, output, folder, reads_stdin)
    try:
        yield program
    finally:
        program.end()
