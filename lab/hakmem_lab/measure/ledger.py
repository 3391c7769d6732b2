"""The ledger: one folder per run of the laboratory, one row of results.csv per measurement.

    results.csv        the rows, round by round
    environment.json   machine, compiler, kernel, allocators and their versions
    curves.csv         memory over time in the first round, of a user's program in all of them: at
                       most 200 samples of each run
    raw/               what each program printed
    manifest.json      in a published folder: the SHA-256 of each of these files but raw/

Whatever draws a table or a plot starts from these files, never from memory.
"""

import csv
import errno
import fcntl
import gzip
import hashlib
import io
import json
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from hakmem_lab import LabError
from hakmem_lab.measure.environment import source_of

RESULTS, ENVIRONMENT, CURVES, RAW = "results.csv", "environment.json", "curves.csv", "raw"
MANIFEST, SEAL = "manifest.json", "seal"
# Processors that share a cache pass a line to and fro in less, those of two caches or sockets in
# more.
FAR_FROM_NS = 150.0
APART = 1.5  # times the shortest round trip: what is less is the same distance, measured again
PARALLEL = 1.05  # processors that a run keeps busy; from here on their distance matters
DISTURBED = 0.1  # of a processor that others used during a run: from here on it is marked


@dataclass(frozen=True)
class Row:
    """One run of one program on one allocator. Sizes are bytes, times are seconds.

    `cost_ns` is what allocators are compared by: nanoseconds per operation where the program
    counts operations, else the wall time. A row whose `status` is not "ok" has no figures.
    """

    time: str  # local, ISO 8601
    cell: str  # what was run, as the matrix calls it: unique within a run
    family: str  # "random mixed", "Larson", …, "programs", or "own" for a user's program
    command: str  # what was typed, with no path of this machine
    allocator: str
    round: int  # rows of one round were run in turn and may be paired
    status: str  # "ok", or the reason in one line
    cost_ns: float = 0.0
    operations: int = 0  # 0: the program does not count
    wall_s: float = 0.0
    cpu_s: float = 0.0
    peak_rss_bytes: int = 0
    mean_rss_bytes: int = 0
    end_rss_bytes: int = 0
    rss_byte_seconds: float = 0.0
    lazy_free_bytes: int = 0  # most that was marked MADV_FREE and still counted
    minor_faults: int = 0
    major_faults: int = 0
    owner: str = ""  # file name of the library that malloc was bound to, as the witness saw it
    processes: int = 0  # that the witness saw
    counter: int = 0  # of the allocator's own, at exit; 0 where it offers none
    parameters: dict[str, Any] = field(default_factory=dict)  # as the program understood them
    settings: dict[str, str] = field(default_factory=dict)  # environment that belongs to the row
    figures: dict[str, float] = field(default_factory=dict)  # further ones, such as percentiles
    version: str = ""  # of the allocator
    commit: str = ""  # of this repository, short
    dirty: bool = False
    group: str = ""  # of the cell, one of subject.GROUPS; older ledgers have none
    user_s: float = 0.0  # of the CPU time, and
    system_s: float = 0.0
    others_cpu_s: float = 0.0  # CPU time of other processes on this machine during the run
    layout: int = 0  # of the program: which of its links, how much padding in its environment
    regime: str = ""  # of huge pages: subject.REGIMES; "": as the machine has it
    library: str = ""  # SHA-256 of the allocator's library, its first 16 digits
    program: str = ""  # likewise of the program
    # Of a cache line between the processors, before the run; 0: one, or not measured.
    round_trip_ns: float = 0.0

    @property
    def is_ok(self) -> bool:
        return self.status == "ok"

    @property
    def distance(self) -> str:
        """Of the processors; "" where it is not known, or the run kept one processor busy."""
        if not self.is_ok or self.round_trip_ns <= 0 or self.cpu_s < PARALLEL * self.wall_s:
            return ""
        return "near" if self.round_trip_ns < FAR_FROM_NS else "far"

    @property
    def was_disturbed(self) -> bool:
        """Others used the machine during the run. The kernel counts in steps of 0.01 s."""
        return self.others_cpu_s > max(0.02, DISTURBED * self.wall_s)


def _distances(rows: Iterable[Row]) -> dict[int, set[str]]:
    """By round of a cell. Processors that are about as far as FAR_FROM_NS have one distance."""
    trips = [row.round_trip_ns for row in rows if row.distance]
    one = {"near" if min(trips) < FAR_FROM_NS else "far"} \
        if trips and max(trips) < APART * min(trips) else None
    found: dict[int, set[str]] = {}
    for row in rows:
        found.setdefault(row.round, set()).update((one or {row.distance}) if row.distance else ())
    return found


def by_distance(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of a cell, apart by the distance of the processors if there is more than one: those
    of "near" and "far" must not be compared. A round in which the distance changed is in neither,
    a run that failed in all."""
    rows = list(rows)
    of_round = _distances(rows)
    if len(set().union(*of_round.values())) < 2:
        return {"": rows}
    return {distance: [row for row in rows if not row.is_ok or of_round[row.round] == {distance}]
            for distance in ("near", "far") if {distance} in of_round.values()}


def mixed_rounds(rows: Iterable[Row]) -> int:
    """How many rounds, of all cells, by_distance leaves out."""
    of_cell: dict[str, list[Row]] = {}
    for row in rows:
        of_cell.setdefault(row.cell, []).append(row)
    return sum(len(each) > 1 for part in of_cell.values() for each in _distances(part).values())


_JSON = ("parameters", "settings", "figures")
COLUMNS = [each.name for each in fields(Row)]
OLDEST_COLUMNS = COLUMNS.index("group")  # columns are added behind; older ledgers end there
_TYPES = {each.name: each.type for each in fields(Row)}


def _text(name: str, value: Any) -> str:
    if name in _JSON:
        return json.dumps(value, sort_keys=True) if value else ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.6g}" if isinstance(value, float) else str(value)


_READ: dict[Any, Callable[[str], Any]] = {bool: "yes".__eq__, int: int, float: float, str: str}


def _from_text(texts: dict[str, str]) -> Row:
    return Row(**{name: json.loads(text or "{}") if name in _JSON else _READ[_TYPES[name]](text)
                  for name, text in texts.items()})


def content(folder: Path, name: str) -> bytes | None:
    """A file of a folder, which may be compressed; None if it is not there."""
    plain, packed = folder / name, folder / f"{name}.gz"
    try:
        return gzip.decompress(packed.read_bytes()) if packed.exists() else \
            plain.read_bytes() if plain.exists() else None
    except (OSError, EOFError, zlib.error) as error:
        raise LabError(f"{plain} cannot be read: {error}") from None


def read_folder(folder: Path) -> list[Row]:
    """All rows of a folder; LabError if it has none, or they are not of this laboratory."""
    file, held = folder / RESULTS, content(folder, RESULTS)
    if held is None:
        raise LabError(f"{file}: no such file")
    try:
        reader = csv.DictReader(io.StringIO(held.decode(), newline=""))
        names = list(reader.fieldnames or ())
        if not names or names != COLUMNS[:len(names)] or len(names) < OLDEST_COLUMNS:
            raise LabError(f"{file} is not a ledger of this laboratory: its columns differ")
        return [_from_text(texts) for texts in reader]
    except (ValueError, TypeError, KeyError) as error:
        raise LabError(f"{file} is damaged: {error}") from None


class Ledger:
    """An open folder of results. Rows land on the disk round by round, so nothing is lost."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / RESULTS
        try:
            (folder / RAW).mkdir(parents=True, exist_ok=True)
            _drop_half_a_line(self.file)
        except OSError as error:
            raise _explained(error, folder) from None
        self.rows = read_folder(folder) if self.file.exists() else []

    def append(self, rows: Iterable[Row]) -> None:
        """Writes the rows of one whole round, or none of them."""
        rows = list(rows)
        size = self.file.stat().st_size if self.file.exists() else 0
        try:
            self._write(rows, with_head=size == 0)
            self.rows += rows
        except OSError as error:
            _cut(self.file, size)
            raise _explained(error, self.file) from None
        except BaseException:
            _cut(self.file, size)
            raise

    def _write(self, rows: Iterable[Row], with_head: bool) -> None:
        """In one go: a run that is killed leaves no half of it."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
        if with_head:
            writer.writeheader()
        writer.writerows({name: _text(name, value) for name, value in asdict(row).items()}
                         for row in rows)
        with self.file.open("ab", buffering=0) as file:
            left = memoryview(text.getvalue().encode(errors="replace"))
            while left:
                left = left[file.write(left):]

    def drop(self, cell: str, number: int) -> None:
        """Takes the rows of a round out again."""
        self.rows = [row for row in self.rows if (row.cell, row.round) != (cell, number)]
        rest = self.file.with_suffix(".new")
        try:
            rest.unlink(missing_ok=True)
            self.file, target = rest, self.file
            self._write(self.rows, with_head=True)
            self.file = rest.rename(target)
        except OSError as error:
            raise _explained(error, rest) from None

    def write_object(self, name: str, value: dict[str, Any]) -> None:
        self.append_text(name, json.dumps(value, indent=1) + "\n", "w")

    def append_text(self, name: str, text: str, mode: str = "a") -> None:
        try:
            with (self.folder / name).open(mode, encoding="utf-8", errors="replace") as file:
                file.write(text)
        except OSError as error:
            raise _explained(error, self.folder / name) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Makes the folder; LabError if another run is writing to it. The kernel forgets the lock when
    this process ends, however it does."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise _explained(error, folder) from None
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LabError(f"another run is writing to {folder}") from None
        yield
    finally:
        os.close(lock)


def read_object(file: Path) -> dict[str, Any]:
    """A JSON object; LabError if the file is missing or holds none."""
    try:
        value = json.loads(file.read_text(encoding="utf-8"))
        if isinstance(value, dict):
            return value
        raise ValueError("it holds no object")
    except OSError as error:
        raise _explained(error, file) from None
    except ValueError as error:
        raise LabError(f"{file} is damaged: {error}") from None


def _drop_half_a_line(file: Path) -> None:
    """A line without an end was being written when the run was killed."""
    if not file.exists():
        return
    text = file.read_bytes()
    if text and not text.endswith(b"\n"):
        _cut(file, text.rfind(b"\n") + 1)


def publish(folder: Path, target: Path) -> None:
    """A copy that a repository can hold: compressed, the same bytes each time, no raw logs, and
    sealed by a manifest."""
    if not read_folder(folder):
        raise LabError(f"{folder} has no rows")
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name in (RESULTS, CURVES):
            if (folder / name).exists():
                packed = gzip.compress((folder / name).read_bytes(), mtime=0)
                (target / f"{name}.gz").write_bytes(packed)
        (target / ENVIRONMENT).write_bytes((folder / ENVIRONMENT).read_bytes())
        seal(target)
    except OSError as error:
        raise _explained(error, target) from None


def seal(folder: Path) -> None:
    """Writes the manifest of a published folder."""
    hashes = _hashes(folder)
    (folder / MANIFEST).write_text(json.dumps(hashes | {SEAL: _seal(hashes)}, indent=1) + "\n")


def _hashes(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file of a published folder, uncompressed."""
    return {name: hashlib.sha256(held).hexdigest() for name in (RESULTS, CURVES, ENVIRONMENT)
            if (held := content(folder, name)) is not None}


def _seal(hashes: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(hashes, sort_keys=True).encode()).hexdigest()


def verify(folder: Path) -> list[str]:
    """What is not as it was published, one line each: files that differ from the manifest, and
    rows whose commit, library or sources are not those that were measured."""
    if not (folder / MANIFEST).exists():
        return [f"{folder.name}: no manifest"]
    try:
        told, now = read_object(folder / MANIFEST), _hashes(folder)
        now[SEAL] = _seal({name: text for name, text in told.items() if name != SEAL})
        wrong = [f"{name} is not what was published" for name in sorted(told | now)
                 if told.get(name) != now.get(name)]
        return [f"{folder.name}: {each}" for each in (*wrong, *_relabelled(folder))]
    except (LabError, OSError, EOFError, ValueError, KeyError, TypeError) as error:
        return [f"{folder.name} cannot be verified: {error}"]


def _relabelled(folder: Path) -> Iterator[str]:
    """Older folders recorded neither libraries nor sources: of them the manifest alone speaks."""
    begun = read_object(folder / ENVIRONMENT)["allocators"]
    for name, commit, library in sorted({(row.allocator, row.commit, row.library)
                                         for row in read_folder(folder) if row.is_ok}):
        told = begun.get(name, {})
        if "library" in told and (told["commit"], told["library"]) != (commit, library):
            yield f"rows of {name} are of another library or commit than {ENVIRONMENT} says"
    for name, each in begun.items():
        source = source_of(each["commit"]) if each.get("commit") else ""
        if source and source != each["source"]:
            yield f"{name} was not built from the sources of commit {each['commit']}"


def _cut(file: Path, size: int) -> None:
    """Takes back a line that was written in part."""
    with suppress(OSError), file.open("r+b") as damaged:
        damaged.truncate(size)


def _explained(error: OSError, file: Path) -> LabError:
    if error.errno == errno.ENOSPC:
        return LabError(f"{file}: the disk is full; rows written so far are kept")
    return LabError(f"{file}: {error.strerror}")
