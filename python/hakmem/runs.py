"""Runs of a program with different settings, one after the other, and what they take beside each
other: ratios of pairs, with the exact interval of their median."""

import functools
import itertools
import math
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import policy as policies
from hakmem.errors import NoSuchProgram, UserError
from hakmem.place import preloaded
from hakmem.processes import SIGNAL, end, resident, started, status_bytes, tree

GIB = 1 << 30
FIRST_LOOK_S = 0.001
LOOK_S = 0.01  # between two looks at the memory
REST = 20  # and at least so many times what a look took
CONFIDENCE = 0.95
LEAST_PAIRS = 3  # no sign is called settled by fewer
# Two-sided 1 % points of Student's t for 2, 3, ... degrees of freedom; the last holds for more too.
T_POINTS = 9.925, 5.841, 4.604, 4.032, 3.707, 3.499, 3.355, 3.250, 3.169, 3.106, 3.055
STDIN = 0
TEMPORARY = len("/tmp12345678")  # what Python calls a folder in the one for temporary files
WITHOUT_POLICY = {"HAKMEM_POLICY": "none"}  # neither of the user nor in the program or the machine
REPORTS = "HAKMEM_PROFILE", "HAKMEM_STATS"  # of the user, which take time
NO_END = 256  # no status of a program: it was ended, since it took too long


class NotRepeated(UserError):
    """A run is not like the first one, so nothing can be compared."""


@functools.cache
def begin_of_input() -> int | None:
    """Where the first call finds the file on stdin; None: what is there cannot be read anew."""
    try:
        return os.lseek(STDIN, 0, os.SEEK_CUR)
    except OSError:
        return None


def refuse_unusable(folder: Path) -> None:
    """To be told before runs take minutes: nothing can be written into the folder, or it cannot be
    made, or the library refuses its name or policies that are there. Nothing is left there."""
    wanted = folder.absolute()
    place = next(each for each in (wanted, *wanted.parents) if os.path.lexists(each))
    try:
        with tempfile.TemporaryFile(dir=place):
            pass
    except OSError as error:
        raise UserError(f"{folder}: {error.strerror}") from None
    for each, most in ((folder, policies.LONGEST_FOLDER),
                       (Path(tempfile.gettempdir()), policies.LONGEST_FOLDER - TEMPORARY)):
        if len(os.fsencode(each.resolve())) > most:
            raise UserError(f"{each}: the name of a folder for policies has at most {most} bytes, "
                            "from / on")
    for path in sorted(folder.glob("*.policy")):
        policies.read(path)


@dataclass(frozen=True)
class Run:
    """What a run took, all its processes together."""

    status: int  # as a shell has it, or NO_END
    program: Path  # what it executed: an interpreter where it is a script
    cpu_s: float
    wall_s: float
    peak: int  # bytes, of the process that held most; 0: it ended before the first look
    gib_s: float  # memory held, over time; likewise


def measured(words: Sequence[str], settings: Mapping[str, str], most_s: float = math.inf) -> Run:
    """Runs the program with variables of the environment besides the user's, for so long at most. A
    file on stdin is read from the same place each time; what the program prints is dropped. A
    signal that is handed on to the program ends us after it."""
    if (begin := begin_of_input()) is not None:
        os.lseek(STDIN, begin, os.SEEK_SET)
    start = time.monotonic()
    users = {name: value for name, value in os.environ.items() if name not in REPORTS}
    try:
        with started(words, env=preloaded(users) | dict(settings),
                     stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL) as (process, handed_on):
            program = _executed(process.pid)
            held, peak, has_ended = _held_until_end(process.pid, start, start + most_s)
            if not has_ended:
                end(process.pid)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
    except OSError as error:
        raise NoSuchProgram(words[0], error) from None
    if handed_on:
        sys.exit(SIGNAL + handed_on[0])
    code = process.returncode
    status = code if code >= 0 else SIGNAL - code
    return Run(status if has_ended else NO_END, program, usage.ru_utime + usage.ru_stime,
               time.monotonic() - start, peak, held / GIB)


def _executed(pid: int) -> Path:
    try:
        return Path(os.readlink(f"/proc/{pid}/exe"))
    except OSError:
        return Path()


def _held_until_end(pid: int, start: float, latest: float) -> tuple[float, int, bool]:
    """Bytes that the process and its descendants hold, times the seconds that they hold them; the
    most that one of them held; and whether it ended in time. (ru_maxrss begins with what we hold
    ourselves.)"""
    held, peak, looked, pause = 0.0, 0, start, FIRST_LOOK_S
    try:
        ending = os.pidfd_open(pid)
    except OSError as error:
        raise UserError(f"pidfd_open: {error.strerror}; it takes Linux 5.3, and a sandbox that "
                        "allows it") from None
    try:
        while looked < latest:
            if select.select([ending], [], [], pause)[0]:
                return held, peak, True
            now = time.monotonic()
            pids = tree(pid)
            held += resident(pids) * (now - looked)
            peak = max(peak, *(status_bytes(each, "VmHWM:") for each in pids))
            looked = now
            pause = max(LOOK_S, REST * (time.monotonic() - now))
    finally:
        os.close(ending)
    return held, peak, False


@dataclass(frozen=True)
class Ratio:
    """What one of two takes of the other, pair by pair."""

    median: float
    low: float  # interval of the median; the whole range below six pairs
    high: float
    is_exact: bool  # at least CONFIDENCE

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}-{self.high:.2f})"


def ratio_of(new: Sequence[float], old: Sequence[float]) -> Ratio:
    """Of pairs; the interval is made of order statistics (Conover, Practical Nonparametric
    Statistics, 3.2), so it holds whatever the noise is like."""
    ratios = sorted(max(each, 1e-9) / max(other, 1e-9) for each, other in zip(new, old))
    count, left_out, outside = len(ratios), 0, 2 * 0.5 ** len(ratios)
    while outside + 2 * math.comb(count, left_out + 1) * 0.5 ** count <= 1 - CONFIDENCE:
        left_out += 1
        outside += 2 * math.comb(count, left_out) * 0.5 ** count
    return Ratio(statistics.median(ratios), ratios[left_out], ratios[-1 - left_out],
                 outside <= 1 - CONFIDENCE)


def cost(run: Run, price_ms: int) -> float:
    """Seconds of processor time, those that the memory is worth counted in."""
    return run.cpu_s + price_ms / 1000 * run.gib_s


def pairs(words: Sequence[str], old: Mapping[str, str], new: Mapping[str, str],
          most_s: float = math.inf) -> Iterator[tuple[Run, Run]]:
    """(old, new) without end; who is first changes. Runs with the old settings end well, as the
    first run of all did."""
    for number in itertools.count():
        runs: dict[bool, Run] = {}
        for is_new in (False, True) if number % 2 == 0 else (True, False):
            runs[is_new] = measured(words, new if is_new else old, most_s)
            if not is_new and (status := runs[is_new].status):
                raise NotRepeated(
                    "it does not end by itself" if status == NO_END else
                    f"run again it ended with status {status} instead of 0; input from a pipe or "
                    "a terminal is not repeated")
        yield runs[False], runs[True]


def in_pairs(words: Sequence[str], old: Mapping[str, str], new: Mapping[str, str],
             count: int) -> list[tuple[Run, Run]]:
    """So many; fewer if a run with the new settings fails, which is the last one then."""
    done: list[tuple[Run, Run]] = []
    for pair in itertools.islice(pairs(words, old, new), count):
        done.append(pair)
        if pair[1].status:
            break
    return done


def sign_of(ratios: Sequence[float]) -> int:
    """-1: what is new takes less; 1: it takes more; 0: not settled by these pairs.

    A t-test of the logarithms at 1 %. It may be asked after each pair: without a difference six of
    a hundred series of 20 pairs are settled, by chance (tests/package/test_learn.py)."""
    if len(ratios) < LEAST_PAIRS:
        return 0
    logs = [math.log(max(each, 1e-9)) for each in ratios]
    mean, spread = statistics.fmean(logs), statistics.stdev(logs)
    bound = T_POINTS[min(len(logs) - LEAST_PAIRS, len(T_POINTS) - 1)]
    if abs(mean) <= bound * spread / math.sqrt(len(logs)):
        return 0
    return -1 if mean < 0 else 1


def until_settled(words: Sequence[str], old: Mapping[str, str], new: Mapping[str, str],
                  price_ms: int, minutes: float,
                  most_s: float) -> tuple[list[tuple[Run, Run]], int, str]:
    """Pairs, the sign of the cost, and which failure has ended the series; "": none has. A settled
    sign ends it, and a run with the new settings that fails. The time ends it only after
    LEAST_PAIRS, and so does a run with the old settings that fails; NotRepeated: one fails before.
    """
    latest, done, sign, failed = time.monotonic() + 60 * minutes, list[tuple[Run, Run]](), 0, ""
    each_pair = pairs(words, old, new, most_s)
    while not sign and (len(done) < LEAST_PAIRS or time.monotonic() < latest):
        try:
            done.append(next(each_pair))
        except NotRepeated as error:
            if len(done) < LEAST_PAIRS:
                raise
            failed = str(error)
            break
        if done[-1][1].status:
            break
        sign = sign_of([cost(after, price_ms) / max(cost(before, price_ms), 1e-9)
                        for before, after in done])
    return done, sign, failed


def told(pairs: Sequence[tuple[Run, Run]]) -> str:
    """What the new takes of the old, in a line."""
    def of(name: str) -> Ratio:
        return ratio_of([getattr(new, name) for _, new in pairs],
                        [getattr(old, name) for old, _ in pairs])

    kind = "95 % interval" if of("cpu_s").is_exact else "range"
    count = f"{len(pairs)} {'pair' if len(pairs) == 1 else 'pairs'}"
    has_memory = all(run.peak for pair in pairs for run in pair)
    memory = (f", peak memory {of('peak')}, memory over time {of('gib_s')}" if has_memory else
              "; too short to measure memory")
    return (f"{count}, median and {kind}: processor time {of('cpu_s')}, time "
            f"{of('wall_s')}{memory}")
