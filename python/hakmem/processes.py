"""Programs that a command starts; what the kernel tells of running processes and the memory that
they hold."""

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
HANDED_ON = signal.SIGTERM, signal.SIGHUP
SIGNAL = 128  # a shell adds the number of the signal that has ended a program


@contextmanager
def started(words: Sequence[str],
            **more: Any) -> Iterator[tuple["subprocess.Popen[bytes]", list[int]]]:
    """A program, as Popen starts it, and the signals that were handed on to it. It does not outlive
    an exception."""
    noted: list[int] = []
    child: list[subprocess.Popen[bytes]] = []

    def hand_on(number: int, _: FrameType | None = None) -> None:
        for each in child:
            if each.returncode is None:
                with suppress(ProcessLookupError):
                    os.kill(each.pid, number)
        noted.append(number)

    before = {number: signal.signal(number, hand_on) for number in HANDED_ON
              if signal.getsignal(number) != signal.SIG_IGN}  # as nohup leaves it
    try:
        child.append(subprocess.Popen(words, **more))
        for number in list(noted):  # before it was in the list
            hand_on(number)
        yield child[0], noted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for each in child:
            if each.poll() is None:
                each.kill()
                each.wait()


def tree(pid: int) -> list[int]:
    """The process and all its descendants, the process first."""
    found = [pid]
    for parent in found:
        with suppress(OSError):
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                found += [int(word) for word in children.read_text(encoding="utf-8").split()]
    return found


def resident(pids: Sequence[int]) -> int:
    """Bytes of all these processes; a page that several of them share counts once."""
    if len(pids) == 1:
        return _statm_rss(pids[0])
    return sum(status_bytes(pid, "Pss:", "smaps_rollup") or _statm_rss(pid) for pid in pids)


def _statm_rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="utf-8").split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def status_bytes(pid: int, name: str, file: str = "status") -> int:
    """A line of a file of the process that is told in KiB; 0: there is none."""
    with suppress(OSError):
        text = Path(f"/proc/{pid}/{file}").read_bytes().decode(errors="replace")
        for line in text.split("\n"):  # A name of a program may have other ends of lines.
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    return 0
