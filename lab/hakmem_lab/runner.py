"""Runs one command once and measures it: time, CPU, page faults, peak memory."""

import os
import resource
import select
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from hakmem_lab import LabError

FIRST_LOOK_S = 0.0002
LONGEST_LOOK_S = 0.01
LOOKS_TO_BELIEVE = 10


@dataclass(frozen=True)
class Measurement:
    wall_s: float
    cpu_s: float  # user and system, with all children that were waited for
    page_faults: int
    peak_rss_bytes: int  # 0: the process was too small and too brief to know
    status: int  # exit status, or the negative number of the signal


def peak_rss_now(pid: int) -> int:
    """The peak so far in bytes; 0 for a process that has ended."""
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def run(command: list[str], environment: dict[str, str], output: BinaryIO,
        look: Callable[[int], None]) -> Measurement:
    """Runs the command to its end. `look` is called with its pid every few milliseconds."""
    actions = [(os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
               (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
               (os.POSIX_SPAWN_DUP2, output.fileno(), 2)]
    start = time.perf_counter()
    try:
        pid = os.posix_spawnp(command[0], command, environment, file_actions=actions)
    except OSError as error:
        raise LabError(f"{command[0]}: {error.strerror}") from None
    try:
        sampled_peak, wall_s = watch(pid, start, look)
    except BaseException:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise
    _, status, usage = os.wait4(pid, 0)
    # The kernel's figure starts at our own peak, which the process had before it became the
    # program. Above that it is exact; below, the last sample is the witness.
    inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    exact = usage.ru_maxrss > inherited
    return Measurement(wall_s=wall_s, cpu_s=usage.ru_utime + usage.ru_stime,
                       page_faults=usage.ru_minflt + usage.ru_majflt,
                       peak_rss_bytes=usage.ru_maxrss * 1024 if exact else sampled_peak,
                       status=os.waitstatus_to_exitcode(status))


def watch(pid: int, start: float, look: Callable[[int], None]) -> tuple[int, float]:
    """Samples a process until it ends: its peak memory, and the seconds since `start`."""
    ended = os.pidfd_open(pid)
    peak, looks, pause_s = 0, 0, FIRST_LOOK_S
    try:
        while not select.select([ended], [], [], pause_s)[0]:
            peak = max(peak, peak_rss_now(pid))
            look(pid)
            looks += 1
            pause_s = min(pause_s * 1.5, LONGEST_LOOK_S)
        wall_s = time.perf_counter() - start
        return (peak if looks >= LOOKS_TO_BELIEVE else 0), wall_s
    finally:
        os.close(ended)
