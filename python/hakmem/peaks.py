"""When did a program hold most? The library writes its profile anew while the program runs. The
file is looked at now and then, and the one that has most is kept. A peak between is missed."""

import time
from pathlib import Path

from hakmem import foreign, pprof
from hakmem.errors import UserError

HELD = "inuse_space"
SETTLED_S = 0.02  # some ticks of the kernel's clock: who writes for less is done by then
REST = 20  # times what reading took: so much of a processor is left to the program


class Watch:
    """The profiles in a folder."""

    def __init__(self, folder: Path, rest: float = REST) -> None:
        self.folder, self.rest = folder, rest
        self.most: dict[Path, tuple[int, bytes]] = {}  # bytes held, and the file then
        self._seen: dict[Path, tuple[int, int]] = {}
        self._next_s = 0.0

    def look(self) -> None:
        """Reads what is new and has not changed while it was read."""
        begun = time.monotonic()
        if begun < self._next_s:
            return
        for path in self.folder.glob("*.pb"):
            state = _state_of(path)
            if state == self._seen.get(path) or time.time() - state[0] / 1e9 < SETTLED_S:
                continue
            try:
                data = foreign.read(path)
                held = pprof.total_of(data, HELD)
            except (UserError, ValueError):
                continue
            if _state_of(path) != state:
                continue
            self._seen[path] = state
            if held > self.most.get(path, (0, b""))[0]:
                self.most[path] = held, data
        end = time.monotonic()
        self._next_s = end + (end - begun) * self.rest

    def peak_of(self, path: Path, end: pprof.Profile) -> bytes:
        """The file as it was then; b"": the program held most at its end."""
        held, data = self.most.get(path, (0, b""))
        return data if held > end.total(HELD) else b""


def _state_of(path: Path) -> tuple[int, int]:
    """When it was written, and its size; (0, 0): it is gone."""
    try:
        found = path.stat()
    except OSError:
        return 0, 0
    return found.st_mtime_ns, found.st_size
