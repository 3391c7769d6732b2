"""What the kernel tells of a running process tree: memory over time, use of time, and whether
the preloaded libraries are in every process that lives long enough to be looked at."""

import os
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem.processes import resident, status_bytes, tree
from hakmem_lab.measure.launcher import LAUNCH
from hakmem_lab.measure.subject import has_no_interpreter

REST = 20  # the memory is looked at again after so many times what a look took
LAZY_FREE_EVERY_S = 0.5  # smaps_rollup walks the page tables: not for every look
CURVE_POINTS = 200
NEVER = 1 << 62
C_LIBRARY = re.compile(r"/libc(\.so|-[0-9])")
TICKS = os.sysconf("SC_CLK_TCK")

Process = tuple[int, str]  # pid, and the program that it runs


class Memory:
    """The resident memory of all processes below one, which is not counted, over time."""

    def __init__(self, root: int, first: int, libraries: Sequence[Path] = ()) -> None:
        """`root` is lab/launch.c, `first` the program that it has started."""
        self.root, self.first = root, first
        self.start = time.perf_counter()
        self.samples: list[tuple[float, int]] = []
        self.highest = 0  # of one process, as the kernel keeps it
        self.lazy_free = 0
        self.next_look = 0.0
        self.next_lazy_look = LAZY_FREE_EVERY_S
        self.libraries = Libraries(libraries)

    def look(self) -> None:
        below = tree(self.root)[1:]
        now = time.perf_counter() - self.start
        if now >= self.next_look:
            self._sample(below)
            took_s = time.perf_counter() - self.start - now
            self.next_look = now + REST * took_s
        if now > self.next_lazy_look:
            self.next_lazy_look = now + LAZY_FREE_EVERY_S
            self.lazy_free = max(self.lazy_free, sum(map(_lazy_free, below)))
        self.libraries.look(below)

    def _sample(self, below: Sequence[int]) -> None:
        total = resident(below)
        if total:
            self.samples.append((time.perf_counter() - self.start, total))
            self.highest = max(self.highest, status_bytes(self.first, "VmHWM:"))

    def figures(self, wall_s: float, exact_peak: int) -> dict[str, Any]:
        """Peak, mean, end, integral and curve. Without a sample the peak stands for all."""
        peak = max([exact_peak, self.highest, *(each for _, each in self.samples)])
        points = self.samples or [(0.0, peak)]
        ends = [when for when, _ in points[1:]] + [max(wall_s, points[-1][0])]
        starts = [0.0] + [when for when, _ in points[1:]]
        area = sum(size * (end - start)
                   for (_, size), start, end in zip(points, starts, ends))
        step = max(1, -(-len(points) // CURVE_POINTS))
        return {"peak_rss_bytes": peak, "rss_byte_seconds": area,
                "mean_rss_bytes": round(area / max(ends[-1], 1e-9)),
                "end_rss_bytes": points[-1][1], "lazy_free_bytes": self.lazy_free,
                "curve": tuple(points[::step])}


@dataclass(frozen=True)
class Suspect:
    """A program that was seen to run without the libraries."""

    pid: int
    program: str  # its path; its bare name where the kernel tells us no more
    reason: str


class Libraries:
    """Looks into each program of each process until it has seen the libraries mapped, ever more
    rarely. The preloaded ones are mapped first: with the C library and without them, a program
    never gets them. The C library may be one of them, so that must be seen twice."""

    def __init__(self, libraries: Sequence[Path]) -> None:
        """Those named by a path; a bare name is the dynamic linker's to find."""
        self.libraries = [str(path.resolve()) for path in libraries if path.is_absolute()]
        self.suspects: dict[Process, Suspect] = {}
        self._doubted: set[Process] = set()
        self._looks: dict[Process, int] = {}
        self._next: dict[Process, int] = {}

    def look(self, pids: Sequence[int]) -> None:
        for pid in pids if self.libraries else ():
            process = pid, _program(pid)
            count = self._looks[process] = self._looks.get(process, 0) + 1
            if process[1] and count >= self._next.get(process, 1):
                self._next[process] = count + max(1, count // 2)
                self._judge(process)

    def _judge(self, process: Process) -> None:
        pid, program = process
        if not program.startswith("/"):
            self._suspect(process, "may not be looked into")
            return
        if program == str(LAUNCH):
            return  # about to become another
        if has_no_interpreter(Path(f"/proc/{pid}/exe")):
            self._suspect(process, "is statically linked")
            return
        try:
            text = Path(f"/proc/{pid}/maps").read_text(errors="replace")
        except OSError:
            return
        if _program(pid) != program:
            return  # it was another's map
        if all(library in text for library in self.libraries):
            self.suspects.pop(process, None)
            self._next[process] = NEVER
        elif C_LIBRARY.search(text):
            if process in self._doubted:
                self._suspect(process, "was started without LD_PRELOAD")
            self._doubted.add(process)

    def _suspect(self, process: Process, reason: str) -> None:
        self.suspects[process] = Suspect(*process, reason)


def _program(pid: int) -> str:
    """The path of what a process runs, its bare name if it is not ours to look into, "" if it has
    ended."""
    try:
        return os.readlink(f"/proc/{pid}/exe").removesuffix(" (deleted)")
    except PermissionError:
        pass
    except OSError:
        return ""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").strip().replace("/", "-")
    except OSError:
        return ""


def _lazy_free(pid: int) -> int:
    return status_bytes(pid, "LazyFree:", "smaps_rollup")


def tree_usage(root: int) -> tuple[float, int, int, float]:
    """CPU seconds, minor and major faults, and of the CPU seconds those in the kernel, so far: of
    what runs below a process and of what has ended there. What runs is counted in nanoseconds,
    what has ended and the kernel's part in ticks."""
    cpu_s, minor, major, system_s = 0.0, 0, 0, 0.0
    for pid in tree(root):
        try:
            words = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        is_counted = pid != root  # of the root only the children that have ended
        minor += int(words[7]) * is_counted + int(words[8])
        major += int(words[9]) * is_counted + int(words[10])
        own, ended = (sum(map(int, words[first:first + 2])) / TICKS for first in (11, 13))
        cpu_s += ended + (_own_cpu_s(pid) or own) * is_counted
        system_s += (int(words[12]) * is_counted + int(words[14])) / TICKS
    return cpu_s, minor, major, system_s


def _own_cpu_s(pid: int) -> float:
    """Of all its threads, those that have ended too; 0: the kernel does not say. The clock is that
    of clock_getcpuclockid(), which Python lacks."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0
