"""Programs that a command starts; what the kernel tells of running processes and the memory that
they hold."""

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

PAGE = os.sysconf("SC_PAGE_SIZE")
HANDED_ON = signal.SIGTERM, signal.SIGHUP
PR_SET_CHILD_SUBREAPER = 36  # of linux/prctl.h
LOOK_S = 0.02
GRACE_S = 1.0  # for what a program has started, to end after it
SIGNAL = 128  # a shell adds the number of the signal that has ended a program


@contextmanager
def started(words: Sequence[str],
            **more: Any) -> Iterator[tuple["subprocess.Popen[bytes]", list[int]]]:
    """A program, as Popen starts it, and the signals that were handed on to it. It does not outlive
    an exception. SIGCHLD is ignored no longer from then on, for else no child could be waited for.
    """
    noted: list[int] = []
    child: list[subprocess.Popen[bytes]] = []
    if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def hand_on(number: int, _: FrameType | None = None) -> None:
        _send(number, [each.pid for each in child if each.returncode is None])
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


@contextmanager
def adopted() -> Iterator[Callable[[], bool]]:
    """What a program of ours leaves behind becomes our child, as a daemon becomes that of init.
    Yields: are there such processes, which go on after GRACE_S?"""
    before = children(os.getpid())
    prctl = ctypes.CDLL(None).prctl
    prctl(PR_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (1, 0, 0, 0)))

    def go_on() -> bool:
        latest = time.monotonic() + GRACE_S
        while any(pid not in before and not _has_ended(pid) for pid in children(os.getpid())):
            if time.monotonic() >= latest:
                return True
            time.sleep(LOOK_S)
        return False

    try:
        yield go_on
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, *map(ctypes.c_ulong, (0, 0, 0, 0)))


def _has_ended(child: int) -> bool:
    try:
        return os.waitpid(child, os.WNOHANG)[0] != 0
    except ChildProcessError:
        return True


def waited_for(pid: int, look: Callable[[], None] | None = None) -> int:
    """Waits for a child, and for all that were adopted meanwhile, as init does; `look` is called
    now and then. The child's status; that of a signal is negative."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG if look else 0)
        if ended == pid:
            return os.waitstatus_to_exitcode(status)
        if look and not ended:
            look()
            time.sleep(LOOK_S)


def end(pid: int) -> None:
    """Ends a child that has not been waited for, and its descendants."""
    pids = tree(pid)
    _send(signal.SIGTERM, pids)
    time.sleep(GRACE_S)
    _send(signal.SIGKILL, {*pids[1:], *tree(pid)[1:]})
    os.kill(pid, signal.SIGKILL)  # what goes on as another user could not be waited for


def _send(number: int, pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):  # gone, or of another user
            os.kill(pid, number)


def tree(pid: int) -> list[int]:
    """The process and all its descendants, the process first."""
    found = [pid]
    for parent in found:
        found += children(parent)
    return found


def children(pid: int) -> list[int]:
    found: list[int] = []
    with suppress(OSError):
        for file in Path(f"/proc/{pid}/task").glob("*/children"):
            found += [int(word) for word in file.read_text(encoding="utf-8").split()]
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
