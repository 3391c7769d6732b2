"""What the kernel tells of running processes and the memory that they hold."""

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

PAGE = os.sysconf("SC_PAGE_SIZE")


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
