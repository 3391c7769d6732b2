"""What a process says of its memory: the file that HAKMEM_STATS names, and the kernel's figures."""

import math
import os
import re
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from hakmem import foreign
from hakmem.errors import FileNotFound, UserError
from hakmem.kernel import PROC, Kernel, kernel_of

TRIES = 20  # a text that is being written is read again
PAUSE_S = 0.05
FIRST_S = 10.0  # a process writes its first statistics after a second, when a call misses
YOUNG_S = 30.0  # a shell and the loader come first
OLD_S = 5.0  # statistics are written by the first miss a second after they were
MOST_BYTES = 4 << 20  # of a file, which has some thousand
FIRST_NUMBER = 100  # of the files that the library opens, OUTPUT_NUMBER of the sources
DECIMAL = re.compile(r"[0-9]{1,10}")

# What a file says at least, by name. A range is of numbers, str is of texts; "*" is of all names,
# "#" of all that are numbers; a name that ends in "?" may be absent.
NUMBER = range(-1 << 63, 1 << 64)
COUNT = range(1 << 64)
SHAPE = {
    "program": str, "process": COUNT, "written_ms": COUNT, "running_ms?": COUNT,
    "thread_caches": COUNT,
    "statistics": dict.fromkeys((
        "mapped", "used", "huge_used", "slab_ends", "cached_threads", "cached_depots",
        "free_in_slabs", "free_pages", "huge_cached", "clean_pages", "purged_in_slabs", "metadata",
        "resident", "purge_bytes", "purge_calls", "purge_us"), NUMBER),
    "blocks": {"large": COUNT, "huge": COUNT},
    "small_blocks": {"#": {"used": NUMBER}},
    "groups?": {"#": {"#": {"slabs": COUNT, "blocks": COUNT, "free": COUNT}}},
    "policy?": {"state": str, "rules": COUNT, "rules_found": COUNT},
    "window?": {"start": COUNT, "end": COUNT},
    "system_calls": {"*": {"calls": COUNT, "bytes": COUNT, "us": COUNT}},
    "options": {"purge_delay_ms": NUMBER, "*": NUMBER},
}


def misfit(told: Any, shape: Any, where: str) -> str:
    """The first value that has not the shape; "": all have it."""
    if isinstance(shape, range):
        return "" if type(told) is int and told in shape else where
    if not isinstance(shape, dict):
        return "" if isinstance(told, shape) else where
    if not isinstance(told, dict):
        return where
    for name, inner in shape.items():
        for each in told if name in ("*", "#") else [name.rstrip("?")]:
            if name == "#" and not DECIMAL.fullmatch(each):
                return f"{where}.{each}"
            if each in told and (wrong := misfit(told[each], inner, f"{where}.{each}")):
                return wrong
            if each not in told and not name.endswith("?"):
                return f"{where}.{each}"
    return ""


@dataclass(frozen=True)
class Picture:
    """A process at a moment."""

    told: dict[str, Any]  # the file
    kernel: Kernel | None  # None: it has ended, or may not be looked at
    looked_s: float | None = None  # the time, of a running process
    has_ended: bool = False  # so what it says is of the end

    @property
    def bytes(self) -> dict[str, int]:
        return dict(self.told["statistics"])

    @property
    def options(self) -> dict[str, int]:
        return dict(self.told["options"])

    @property
    def used_by_size(self) -> dict[int, int]:
        """Small blocks that the program has."""
        return {int(size): each["used"] for size, each in self.told["small_blocks"].items()}

    @property
    def grouped_bytes(self) -> int:
        """Blocks of groups, in use or in bins."""
        return sum(int(size) * (each["blocks"] - each["free"])
                   for group in self.told.get("groups", {}).values()
                   for size, each in group.items())

    @property
    def age_s(self) -> float:
        """Of the file, when a running process was looked at."""
        if self.looked_s is None:
            return 0.0
        return max(0.0, self.looked_s - float(self.told["written_ms"]) / 1000)

    @property
    def is_old(self) -> bool:
        return self.age_s >= OLD_S

    @property
    def name(self) -> str:
        return f"{foreign.plain(self.told['program'])} ({self.told['process']})"


def facts_of(now: Picture) -> dict[str, Any]:
    """All of it for programs; sizes are in bytes."""
    return {"figures": now.told, "figures_are_old_s": round(now.age_s, 3),
            "kernel": asdict(now.kernel) if now.kernel else None}


def file_of(process: int) -> Path:
    """The file of a running process, from its environment."""
    try:
        environment = os.fsdecode((PROC / str(process) / "environ").read_bytes())
        folder = os.readlink(PROC / str(process) / "cwd")
    except FileNotFoundError:
        raise UserError(f"there is no process {process}; if it has ended, name the file of "
                        "its HAKMEM_STATS") from None
    except OSError as error:
        helps = "run this as its user or as root" if os.geteuid() else \
            "it has ended, belongs to the kernel, or this container may not read it"
        raise UserError(f"process {process} cannot be read ({error.strerror}): {helps}"
                        ) from None
    found = re.search(r"(?:^|\0)HAKMEM_STATS=([^\0]+)", environment)
    if found is None and (written := _written_by(process)):
        return written
    if found is None:
        raise UserError(f"process {process} writes no statistics: start it with "
                        "HAKMEM_STATS=/tmp/hakmem-%p.json")
    if found[1] == "exit":
        raise UserError(f"process {process} writes a table to its stderr (HAKMEM_STATS=exit) and "
                        "no file: start it with HAKMEM_STATS=/tmp/hakmem-%p.json")
    name = found[1].replace("%p", str(process))
    return _opened_by(process, name) or Path(folder, name)


def _opened_by(process: int, name: str) -> Path | None:
    """The file of this name that the process writes; None: none is seen. A relative name is of the
    folder in which the program started, and that may not be its folder any more."""
    parts = Path(name).parts
    parts = parts[len(parts) - [*parts[::-1], ".."].index(".."):]  # those behind the last ".."
    numbers = PROC / str(process) / "fd"
    with suppress(OSError):
        for number in sorted(map(int, os.listdir(numbers))):
            opened = Path(os.readlink(numbers / str(number))) if number >= FIRST_NUMBER else Path()
            if parts and opened.parts[-len(parts):] == parts:
                return opened
    return None


def _written_by(process: int) -> Path | None:
    """The file with the statistics of a process that has another text where its environment was,
    as redis puts its title there; None: none is seen."""
    numbers = PROC / str(process) / "fd"
    with suppress(OSError):
        for number in sorted(map(int, os.listdir(numbers))):
            if number < FIRST_NUMBER:
                continue
            path = Path(os.readlink(numbers / str(number)))
            with suppress(UserError, ValueError):
                told = foreign.parsed_json(foreign.read(path, MOST_BYTES))
                if isinstance(told, dict) and told.get("process") == process and \
                        not misfit(told, SHAPE, ""):
                    return path
    return None


def _age_s(process: int) -> float:
    """Of a process; endless: it has ended, or cannot be seen."""
    try:
        told = (PROC / str(process) / "stat").read_bytes().rpartition(b") ")[2].split()
        return float((PROC / "uptime").read_text(encoding="ascii").split()[0]) \
            - int(told[19]) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return math.inf


def _await_first(process: int) -> None:
    """A process just started gets the time to write its first statistics."""
    end = time.monotonic() + FIRST_S
    while _age_s(process) < YOUNG_S and time.monotonic() < end:
        with suppress(UserError):
            _read_file(file_of(process))
            return
        time.sleep(PAUSE_S)


def _read_file(path: Path) -> dict[str, Any]:
    problem = ""
    for _ in range(TRIES):
        try:
            return _checked(foreign.parsed_json(foreign.read(path, MOST_BYTES)), path)
        except FileNotFound as error:
            problem = str(error)
        except ValueError:
            problem = (f"{path}: this is no file of statistics (HAKMEM_STATS), or it is not "
                       "complete")
        time.sleep(PAUSE_S)
    raise UserError(f"{problem}; the process first writes it after a second, when a call misses")


def _checked(told: Any, path: Path) -> dict[str, Any]:
    """What the file says, if others may rely on each name and type."""
    if not isinstance(told, dict) or "statistics" not in told:
        raise UserError(f"{path} has no statistics of HAKMEM")
    wrong = misfit(told, SHAPE, "")
    if wrong:
        raise UserError(f"{path} has no statistics of this version of HAKMEM: {wrong[1:]} is "
                        "missing or has a wrong value")
    return told


def is_process(what: str) -> bool:
    """Is this the number of one, and no file's name?"""
    return DECIMAL.fullmatch(what) is not None


def is_running(process: int) -> bool:
    try:
        told = (PROC / str(process) / "stat").read_bytes()
    except OSError:
        return False
    return told.rpartition(b") ")[2][:1] not in (b"Z", b"X")  # it waits for its parent, or is gone


def looks_at(what: str, over_s: float) -> list[Picture]:
    """What a file says, or a process, twice with so many seconds between. Of a process that ends
    meanwhile, what it has left."""
    if not is_process(what):
        return [picture_of(what)]
    process = int(what)
    _await_first(process)
    path = file_of(process)
    try:
        found = [picture_of(what)]
        end = time.monotonic() + over_s
        while time.monotonic() < end and is_running(process):
            time.sleep(min(PAUSE_S, over_s))
        if over_s and is_running(process):
            found.append(picture_of(what))
    except UserError:
        if is_running(process):
            raise
    return found if is_running(process) else [picture_of(str(path))]


def picture_of(what: str) -> Picture:
    """Of a running process, by its number; or a file that one has left."""
    if not is_process(what):
        if not os.path.exists(what):
            raise UserError(f"{what}: there is no such process or file")
        left = _read_file(Path(what))
        return Picture(left, None, has_ended=not is_running(left["process"]))
    _await_first(int(what))
    told = _read_file(file_of(int(what)))
    if told["process"] != int(what):
        raise UserError(f"the file is of process {told['process']}: put %p into HAKMEM_STATS")
    window = told.get("window", {"start": 0, "end": 0})
    return Picture(told, kernel_of(int(what), (window["start"], window["end"])), time.time())


def shown(size: float) -> str:
    """Bytes for a person."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if abs(size) < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:,.0f} {unit}" if unit == "B" or abs(size) >= 100 else f"{size:,.1f} {unit}"
