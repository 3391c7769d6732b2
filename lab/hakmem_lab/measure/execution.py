"""One run of one subject on one allocator: what it cost, and the proof of who served it.

Programs are started by lab/launch.c, which has next to no memory of its own, and watched from
here: every few milliseconds the resident memory of the whole process tree.
"""

import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Any

from hakmem_lab import LabError, ROOT
from hakmem_lab.measure import environment, witness
from hakmem_lab.measure.allocators import WITNESS, Allocator
from hakmem_lab.measure.launcher import Launched, launched
from hakmem_lab.measure.memory import Memory, tree_usage
from hakmem_lab.measure.subject import Subject
from hakmem_lab.measure.witness import Proof

STOP_LIMIT_S = 15.0
READY_LIMIT_S = 60.0
PROBE_LIMIT_S = 5.0
LEAST_ROOM = 65536  # bytes where temporary files lie, at the end of a run
OUTPUT_BYTES = 65536  # kept of what a program prints


@dataclass(frozen=True)
class Measurement:
    status: int  # exit status, or the negative number of the signal
    wall_s: float  # of the command; of the load where there is one
    user_s: float  # with all that it started and that has ended
    system_s: float
    minor_faults: int
    major_faults: int
    peak_rss_bytes: int
    mean_rss_bytes: int
    end_rss_bytes: int
    rss_byte_seconds: float
    lazy_free_bytes: int
    curve: tuple[tuple[float, int], ...]  # (seconds, bytes), at most CURVE_POINTS
    left_behind: int = 0  # processes that a command had running at its end
    was_killed: bool = False  # a server that did not end when it was asked to
    proof: Proof = Proof(0, "", "", (), {})
    others_cpu_s: float = 0.0  # of what ran beside it on this machine
    output: str = ""  # what it printed, stdout and stderr together, the last OUTPUT_BYTES
    program: str = ""  # hash of the file that was executed
    round_trip_ns: float = 0.0  # of a cache line between the processors, just before

    @property
    def cpu_s(self) -> float:
        return self.user_s + self.system_s


@dataclass(frozen=True)
class _Stage:
    """Where a run takes place."""

    subject: Subject  # its placeholders are replaced
    environment: dict[str, str]
    libraries: tuple[Path, ...]  # that every program of the run must have mapped
    place: Path
    output: IO[bytes]

    @property
    def name(self) -> str:
        return Path(self.subject.command[0]).name

    @property
    def folder(self) -> Path | None:
        return Path(self.subject.folder) if self.subject.folder else None

    def memory(self, program: Launched) -> Memory:
        return Memory(program.process.pid, program.pid, self.libraries)


def run(subject: Subject, allocator: Allocator) -> Measurement:
    """Runs the subject once, to its end. LabError: it cannot be started, or was killed for
    its limit, or the allocator did not serve it. A program of ours testifies itself, in its
    output; others have the witness preloaded."""
    with tempfile.TemporaryDirectory(prefix="hakmem-lab-", ignore_cleanup_errors=True) as name:
        place = Path(name)
        record = place / "witness"
        record.touch()
        (place / "folder").mkdir()
        for path, mode in ((place, 0o711), (record, 0o666), (place / "folder", 0o777)):
            path.chmod(mode)  # programs may change their user
        libraries = (*allocator.preload, *[WITNESS] * (not subject.has_json))
        subject = _filled_in(subject, place)
        with (place / "output").open("w+b") as output:
            stage = _Stage(subject, _environment(subject, allocator, libraries, record),
                           () if subject.has_json else libraries, place, output)
            round_trip_ns = environment.round_trip_ns()
            before_s = environment.others_cpu_s()
            measured, memory = (_run_server if subject.is_server else _run_command)(stage)
            others_s = max(0.0, environment.others_cpu_s() - before_s)
            _refuse_full(place)
            proof = witness.read(record, allocator, memory.libraries.suspects.values())
            output.seek(max(0, output.seek(0, 2) - OUTPUT_BYTES))
            text = output.read().decode(errors="replace")
        if not subject.has_json and (measured.status >= 0 or proof.processes):
            witness.refuse_unless_engaged(proof, allocator, stage.name)
        return replace(measured, others_cpu_s=others_s, proof=proof, output=text,
                       round_trip_ns=round_trip_ns,
                       program=environment.hash_of(shutil.which(subject.command[0]) or ""))


def _refuse_full(place: Path) -> None:
    """LabError if what the programs print may have found no room: that is our doing."""
    disk = os.statvfs(place)
    if disk.f_bavail * disk.f_frsize < LEAST_ROOM:
        raise LabError(f"{place.parent} is full: no room for what programs print; TMPDIR names "
                       "another folder")


def _filled_in(subject: Subject, place: Path) -> Subject:
    """The subject with its placeholders replaced; `{port}` is the same in all its words."""
    values = {"folder": str(place / "folder"), "root": str(ROOT), "port": _free_port()}

    def fill(word: str) -> str:
        for name in subject.placeholders:
            word = word.replace("{" + name + "}", values[name])
        return word

    until = subject.until or ("port:{port}" if subject.is_server else "")
    return replace(subject, command=tuple(map(fill, subject.command)), until=fill(until),
                   load=tuple(map(fill, subject.load)), folder=fill(subject.folder),
                   settings={key: fill(value) for key, value in subject.settings.items()})


def _free_port() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return str(probe.getsockname()[1])


def _environment(subject: Subject, allocator: Allocator, libraries: tuple[Path, ...],
                 record: Path) -> dict[str, str]:
    """LAUNCH_PRELOAD becomes LD_PRELOAD in the program, not in what starts it."""
    found = environment.without_allocators() | subject.settings | allocator.settings
    if not subject.has_json:
        found["MALLOC_WITNESS"] = str(record)
    if libraries:
        found["LAUNCH_PRELOAD"] = ":".join(map(str, libraries))
    return found


def _run_command(stage: _Stage) -> tuple[Measurement, Memory]:
    with launched(stage.subject.command, stage.environment, stage.output, stage.folder,
                  stage.subject.reads_stdin) as program:
        memory = stage.memory(program)
        program.watch(memory.look, stage.subject.limit_s)
        report = program.last_report()
    wall_s, peak = float(report["wall_s"]), int(report["peak_rss_kib"]) * 1024
    return Measurement(
        status=int(report["status"]), wall_s=wall_s, user_s=float(report["user_s"]),
        system_s=float(report["system_s"]),
        minor_faults=int(report["minor_faults"]), major_faults=int(report["major_faults"]),
        left_behind=int(report["left"]), **memory.figures(wall_s, peak)), memory


def _run_server(stage: _Stage) -> tuple[Measurement, Memory]:
    """The server is timed under its load only; its memory is watched from the start."""
    subject = stage.subject
    plain = environment.without_allocators() | subject.settings
    _refuse_taken_port(subject.until, stage.name)
    with launched(subject.command, stage.environment, stage.output, stage.folder) as server:
        memory = stage.memory(server)
        _wait_until_ready(subject, server, memory, plain)
        before = tree_usage(server.process.pid)
        report = _load(stage, server, memory, plain)
        memory.look()
        after = tree_usage(server.process.pid)
        _refuse_ended(server, "ended under its load")
        status, was_killed = _stop(server, min(STOP_LIMIT_S, subject.limit_s))
    wall_s = float(report["wall_s"])
    figures = memory.figures(memory.samples[-1][0] if memory.samples else wall_s, 0)
    # Of a process whose parent does not want to know of its end, the kernel forgets the use.
    cpu_s, minor, major, system_s = (max(0, late - early) for late, early in zip(after, before))
    return Measurement(status=status, wall_s=wall_s, user_s=max(0.0, cpu_s - system_s),
                       system_s=min(system_s, cpu_s), minor_faults=int(minor),
                       major_faults=int(major), was_killed=was_killed, **figures), memory


def _load(stage: _Stage, server: Launched, memory: Memory, plain: dict[str, str]) -> dict[str, Any]:
    """The report of the load, which gets neither the allocator nor its settings."""

    def look() -> None:
        memory.look()
        server.refuse_flood()
        _refuse_ended(server, "ended under its load")

    words = stage.subject.load
    with (stage.place / "load").open("w+b") as said, \
            launched(words, plain, said, stage.folder) as load:
        load.watch(look, stage.subject.limit_s)
        report = load.last_report()
        if report["status"] != 0:
            raise LabError(f"the load {words[0]} ended with {report['status']}"
                           f"{load.last_words()}")
    return report


def _refuse_ended(server: Launched, how: str) -> None:
    if not server.has_ended():
        return
    if int(server.last_report()["left"]) > 0:
        raise LabError(f"{server.name} went into the background; start it in the foreground")
    raise LabError(f"{server.name} {how}{server.last_words()}")


def _refuse_taken_port(until: str, name: str) -> None:
    """What answers before the server is there is not the server."""
    kind, _, port = until.partition(":")
    if kind == "port" and _answers(int(port)):
        raise LabError(f"port {port} is taken: something answers there before {name} is started")


def _wait_until_ready(subject: Subject, server: Launched, memory: Memory,
                      plain: dict[str, str]) -> None:
    limit_s = min(READY_LIMIT_S, subject.limit_s)
    while not _is_ready(subject.until, server, plain):
        memory.look()
        server.refuse_flood()
        _refuse_ended(server, "ended before it was ready")
        if time.perf_counter() - memory.start > limit_s:
            raise LabError(f"{server.name} was not ready ({subject.until}) in {limit_s:g} s"
                           f"{server.last_words()}")
        time.sleep(0.02)
    _refuse_ended(server, "ended before it was ready")


def _is_ready(until: str, server: Launched, plain: dict[str, str]) -> bool:
    kind, _, what = until.partition(":")
    if kind == "port":
        return _answers(int(what))
    if kind == "log":
        text = Path(f"/proc/self/fd/{server.output.fileno()}").read_bytes()
        return what.encode(errors="surrogateescape") in text
    try:
        return subprocess.run(shlex.split(what), stdin=subprocess.DEVNULL, check=False, env=plain,
                              capture_output=True, timeout=PROBE_LIMIT_S).returncode == 0
    except subprocess.TimeoutExpired:
        return False
    except OSError as error:
        raise LabError(f"{what}: {error.strerror}") from None


def _answers(port: int) -> bool:
    for address in ("127.0.0.1", "::1"):
        try:
            with socket.create_connection((address, port), timeout=PROBE_LIMIT_S):
                return True
        except OSError:
            continue
    return False


def _stop(server: Launched, limit_s: float) -> tuple[int, bool]:
    """Asks the server to end. Its status, 0 also for one that ends by that very signal, and
    whether it had to be killed."""
    server.signal(signal.SIGTERM)
    if not server.wait(limit_s):
        server.signal(signal.SIGKILL)
        server.last_report()
        return 0, True
    status = int(server.last_report()["status"])
    return 0 if status == -signal.SIGTERM else status, False


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
