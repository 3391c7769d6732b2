"""What a process says of its memory: the file that HAKMEM_STATS names, and the kernel's figures."""

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem.errors import UserError
from hakmem.kernel import PROC, Kernel, kernel_of

TRIES = 20  # a text that is being written is read again
PAUSE_S = 0.05
OLD_S = 5.0  # statistics are written within two seconds of a miss


@dataclass(frozen=True)
class Picture:
    """A process at a moment."""

    told: dict[str, Any]  # the file
    kernel: Kernel | None  # None: it has ended, or may not be looked at
    looked_s: float | None = None  # the time, of a running process

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
    def age_s(self) -> float:
        """Of the file, when a running process was looked at."""
        if self.looked_s is None:
            return 0.0
        return max(0.0, self.looked_s - float(self.told["written_ms"]) / 1000)

    @property
    def is_old(self) -> bool:
        return self.age_s >= OLD_S

    @property
    def is_uncertain(self) -> bool:
        """Figures that are old, of a process without a helper thread: calls may be missing."""
        return self.is_old and not self.options.get("background", 1)

    @property
    def name(self) -> str:
        return f"{self.told['program']} ({self.told['process']})"


def file_of(process: int) -> Path:
    """The file of a running process, from its environment."""
    try:
        environment = (PROC / str(process) / "environ").read_bytes().decode(errors="replace")
        folder = os.readlink(PROC / str(process) / "cwd")
    except FileNotFoundError:
        raise UserError(f"there is no process {process}") from None
    except OSError as error:
        raise UserError(f"process {process} may not be looked at ({error.strerror}): try as its "
                        "user or as root") from None
    found = re.search(r"(?:^|\0)HAKMEM_STATS=([^\0]+)", environment)
    if found is None:
        raise UserError(f"process {process} writes no statistics: start it with "
                        "HAKMEM_STATS=/tmp/hakmem-%p.json")
    if found[1] in ("exit", "signal"):
        raise UserError(f"process {process} writes a table to its stderr (HAKMEM_STATS={found[1]}) "
                        "and no file: start it with HAKMEM_STATS=/tmp/hakmem-%p.json")
    return Path(folder, found[1].replace("%p", str(process)))


def _read_file(path: Path) -> dict[str, Any]:
    problem = ""
    for _ in range(TRIES):
        try:
            told = json.loads(path.read_text(errors="replace"))
            if isinstance(told, dict) and "statistics" in told:
                return told
            raise UserError(f"{path} has no statistics of HAKMEM")
        except OSError as error:
            problem = error.strerror or "it cannot be read"
        except ValueError:
            problem = "it has no whole text"
        time.sleep(PAUSE_S)
    raise UserError(f"{path}: {problem}; it is written at the first miss after a second")


def picture_of(what: str) -> Picture:
    """Of a running process, by its number; or a file that one has left."""
    if not what.isdecimal():
        if not Path(what).exists():
            raise UserError(f"{what}: there is no such process or file")
        return Picture(_read_file(Path(what)), None)
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
