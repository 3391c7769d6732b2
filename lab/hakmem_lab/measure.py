"""One run of one subject on one allocator: what it cost, and the proof of who served it.

Programs are started by lab/launch.c, which has next to no memory of its own, and watched from
here: every few milliseconds the resident memory of the whole process tree.
"""

import json
import os
import select
import shlex
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from hakmem_lab import ROOT, LabError, witness
from hakmem_lab.allocators import BUILD, Allocator
from hakmem_lab.subject import Subject
from hakmem_lab.witness import Proof

LAUNCH, WITNESS = BUILD / "launch", BUILD / "libwitness.so"
FIRST_LOOK_S, LONGEST_LOOK_S, LOOK_GROWTH = 0.001, 0.01, 1.3
LAZY_FREE_EVERY_S = 0.5  # smaps_rollup walks the page tables: not for every look
CURVE_POINTS = 200
STOP_LIMIT_S = 15.0
READY_LIMIT_S = 60.0
PAGE = os.sysconf("SC_PAGE_SIZE")
TICKS = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Measurement:
    status: int  # exit status, or the negative number of the signal
    wall_s: float  # of the command; of the load where there is one
    cpu_s: float  # user and system, with all children that were waited for
    minor_faults: int
    major_faults: int
    peak_rss_bytes: int
    mean_rss_bytes: int
    end_rss_bytes: int
    rss_byte_seconds: float
    lazy_free_bytes: int
    curve: tuple[tuple[float, int], ...]  # (seconds, bytes), at most CURVE_POINTS
    proof: Proof
    output: str  # what it printed, stdout and stderr together, the last 64 KiB


class TooSlow(LabError):
    """The run was ended because it took longer than its limit."""


def run(subject: Subject, allocator: Allocator) -> Measurement:
    """Runs the subject once, to its end. LabError: it cannot be started, or was killed for
    its limit, or the allocator did not serve it. A program of ours testifies itself, in its
    output; others have the witness preloaded."""
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-") as name:
        place = Path(name)
        record = place / "witness"
        record.touch()
        record.chmod(0o666)
        subject = _filled_in(subject, place)
        environment = _environment(subject, allocator, record)
        with (place / "output").open("w+b") as output:
            measured = (_run_server if subject.is_server else _run_command)(
                subject, environment, output, place)
            proof = witness.read(record, allocator)
            output.seek(max(0, output.tell() - 65536))
            text = output.read().decode(errors="replace")
        if not subject.has_json and (measured.status >= 0 or proof.processes):
            witness.refuse_unless_engaged(proof, allocator, Path(subject.command[0]).name)
        return replace(measured, proof=proof, output=text)


def _filled_in(subject: Subject, place: Path) -> Subject:
    """The subject with its placeholders replaced; `{port}` is the same in all its words."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = place / "folder"
    folder.mkdir(mode=0o777)

    def fill(word: str) -> str:
        for name, value in (("port", port), ("folder", folder), ("root", ROOT)):
            word = word.replace("{" + name + "}", str(value))
        return word

    until = subject.until or ("port:{port}" if subject.is_server else "")
    return replace(subject, command=tuple(map(fill, subject.command)), until=fill(until),
                   load=tuple(map(fill, subject.load)),
                   settings={key: fill(value) for key, value in subject.settings.items()})


def _environment(subject: Subject, allocator: Allocator, record: Path) -> dict[str, str]:
    """LAUNCH_PRELOAD becomes LD_PRELOAD in the program, not in what starts it."""
    plain = {name: text for name, text in os.environ.items() if name != "LD_PRELOAD"}
    environment = plain | subject.settings | allocator.settings
    libraries = list(allocator.preload)
    if not subject.has_json:
        libraries.append(WITNESS)
        environment["MALLOC_WITNESS"] = str(record)
    if libraries:
        environment["LAUNCH_PRELOAD"] = ":".join(map(str, libraries))
    return environment


class _Launched:
    """A program that lab/launch.c runs, with its report."""

    def __init__(self, words: tuple[str, ...], environment: dict[str, str], output: IO[bytes],
                 folder: Path | None) -> None:
        reader, writer = os.pipe()
        try:
            self.process = subprocess.Popen(
                [LAUNCH, str(writer), *words], env=environment, stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, pass_fds=[writer], cwd=folder,
                start_new_session=True)
        except FileNotFoundError:
            raise LabError(f"{LAUNCH} is not there; `make release` builds it") from None
        finally:
            os.close(writer)
        self.reports = os.fdopen(reader)
        first = json.loads(self.reports.readline())
        if "error" in first:
            self.end()
            raise LabError(f"{words[0]}: {first['error']}")
        self.pid = int(first["pid"])

    def last_report(self) -> dict[str, Any]:
        self.process.wait()
        return dict(json.loads(self.reports.readline()))

    def end(self) -> None:
        """Whatever it left behind ends with it."""
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.reports.close()


@contextmanager
def _launched(words: tuple[str, ...], environment: dict[str, str], output: IO[bytes],
              folder: Path | None) -> Iterator[_Launched]:
    program = _Launched(words, environment, output, folder)
    try:
        yield program
    finally:
        program.end()


class _Memory:
    """The resident memory of a process tree over time."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.start = time.perf_counter()
        self.samples: list[tuple[float, int]] = []
        self.highest = 0  # of one process, as the kernel keeps it
        self.lazy_free = 0
        self.next_lazy_look = LAZY_FREE_EVERY_S

    def look(self) -> None:
        tree = _tree(self.pid)
        total = sum(_statm_rss(pid) for pid in tree)
        now = time.perf_counter() - self.start
        if total:
            self.samples.append((now, total))
            self.highest = max(self.highest, _status_bytes(tree[0], "VmHWM:"))
        if now > self.next_lazy_look:
            self.next_lazy_look = now + LAZY_FREE_EVERY_S
            self.lazy_free = max(self.lazy_free, sum(map(_lazy_free, tree)))

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


def _tree(pid: int) -> list[int]:
    """The process and all its descendants, the process first."""
    found = [pid]
    for parent in found:
        try:
            for children in Path(f"/proc/{parent}/task").glob("*/children"):
                found += [int(word) for word in children.read_text().split()]
        except OSError:
            pass
    return found


def _statm_rss(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE
    except (OSError, IndexError):
        return 0


def _status_bytes(pid: int, name: str, file: str = "status") -> int:
    try:
        for line in Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def _lazy_free(pid: int) -> int:
    return _status_bytes(pid, "LazyFree:", "smaps_rollup")


def _tree_usage(pid: int) -> tuple[float, int, int]:
    """CPU seconds, minor and major faults so far of a running tree and of its ended children."""
    cpu, minor, major = 0, 0, 0
    for each in _tree(pid):
        try:
            words = Path(f"/proc/{each}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        minor += int(words[7]) + int(words[8])
        major += int(words[9]) + int(words[10])
        cpu += sum(int(word) for word in words[11:15])
    return cpu / TICKS, minor, major


def _watch(pid: int, memory: _Memory, limit_s: float, what: str) -> None:
    """Looks at the memory until the process of `pid` ends; TooSlow after `limit_s`."""
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    pause_s = FIRST_LOOK_S
    try:
        while not select.select([ended], [], [], pause_s)[0]:
            memory.look()
            pause_s = min(pause_s * LOOK_GROWTH, LONGEST_LOOK_S)
            if time.perf_counter() - memory.start > limit_s:
                raise TooSlow(f"{what} was not done in {limit_s:g} s and was stopped")
    finally:
        os.close(ended)


_UNPROVEN = Proof(0, "", "", (), {})


def _run_command(subject: Subject, environment: dict[str, str], output: IO[bytes],
                 place: Path) -> Measurement:
    folder = place / "folder" if subject.has_own_folder else None
    with _launched(subject.command, environment, output, folder) as program:
        memory = _Memory(program.pid)
        _watch(program.process.pid, memory, subject.limit_s, Path(subject.command[0]).name)
        report = program.last_report()
    wall_s, peak = float(report["wall_s"]), int(report["peak_rss_kib"]) * 1024
    return Measurement(
        status=int(report["status"]), wall_s=wall_s, cpu_s=float(report["cpu_s"]),
        minor_faults=int(report["minor_faults"]), major_faults=int(report["major_faults"]),
        proof=_UNPROVEN, output="", **memory.figures(wall_s, peak))


def _run_server(subject: Subject, environment: dict[str, str], output: IO[bytes],
                place: Path) -> Measurement:
    """The server is timed under its load only; its memory is watched from the start."""
    folder = place / "folder" if subject.has_own_folder else None
    name = Path(subject.command[0]).name
    with _launched(subject.command, environment, output, folder) as server:
        memory = _Memory(server.pid)
        _wait_until_ready(subject, server, memory, output)
        plain = {key: text for key, text in environment.items()
                 if key not in ("LAUNCH_PRELOAD", "MALLOC_WITNESS")}
        before = _tree_usage(server.pid)
        with (place / "load").open("w+b") as said, \
                _launched(subject.load, plain, said, folder) as load:
            _watch(load.process.pid, memory, subject.limit_s, subject.load[0])
            report = load.last_report()
            said.seek(0)
            last_words = said.read().decode(errors="replace").strip().splitlines()[-1:]
        memory.look()
        after = _tree_usage(server.pid)
        status = _stop(server, name)
    if report["status"] != 0:
        raise LabError(f"the load {subject.load[0]} ended with {report['status']}"
                       + "".join(f": {line}" for line in last_words))
    wall_s = float(report["wall_s"])
    figures = memory.figures(memory.samples[-1][0] if memory.samples else wall_s, 0)
    cpu_s, minor, major = (late - early for late, early in zip(after, before))
    return Measurement(status=status, wall_s=wall_s, cpu_s=cpu_s, minor_faults=int(minor),
                       major_faults=int(major), proof=_UNPROVEN, output="", **figures)


def _wait_until_ready(subject: Subject, server: _Launched, memory: _Memory,
                      output: IO[bytes]) -> None:
    kind, _, what = subject.until.partition(":")
    name = Path(subject.command[0]).name
    while not _is_ready(kind, what, output):
        memory.look()
        if server.process.poll() is not None:
            output.seek(0)
            lines = output.read().decode(errors="replace").strip().splitlines()[-1:]
            raise LabError(f"{name} ended before it was ready" + "".join(f": {x}" for x in lines))
        if time.perf_counter() - memory.start > READY_LIMIT_S:
            raise LabError(f"{name} was not ready ({subject.until}) in {READY_LIMIT_S:g} s")
        time.sleep(0.02)


def _is_ready(kind: str, what: str, output: IO[bytes]) -> bool:
    if kind == "port":
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", int(what))) == 0
    if kind == "log":
        text = Path(f"/proc/self/fd/{output.fileno()}").read_bytes()
        return what.encode() in text
    return subprocess.run(shlex.split(what), stdin=subprocess.DEVNULL, check=False,
                          capture_output=True).returncode == 0


def _stop(server: _Launched, name: str) -> int:
    """Asks the server to end. Its status: 0 also for one that ends by that very signal."""
    try:
        os.kill(server.pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    try:
        server.process.wait(STOP_LIMIT_S)
    except subprocess.TimeoutExpired:
        raise LabError(f"{name} did not stop in {STOP_LIMIT_S:g} s after SIGTERM") from None
    status = int(server.last_report()["status"])
    return 0 if status == -signal.SIGTERM else status


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
