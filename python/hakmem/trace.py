"""Runs a program and writes down what its processes allocate and free."""

import os
from collections.abc import Sequence
from pathlib import Path

from hakmem import profile
from hakmem.errors import UserError
from hakmem.place import preloaded, recorder_path
from hakmem.statistics import shown

HEAD = RECORD = 32  # bytes; recorder/records.c


def used(path: Path) -> int:
    """Bytes that are written; the file is as long as it may become."""
    with path.open("rb") as file:
        records = int.from_bytes(file.read(HEAD)[16:24], "little")
    return HEAD + RECORD * records if records else 0


def trace_program(words: Sequence[str], out: Path) -> tuple[int, str]:
    """A file for each process in `out`. The program's status, and a text."""
    folder = out.resolve()  # the program may go elsewhere
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}") from None
    before = set(folder.glob("*.trace"))
    preload = f"{recorder_path()}:{preloaded(dict(os.environ))['LD_PRELOAD']}"
    ending = profile.run_with(words, {"RECORDER_FILE": str(folder / "%p.trace"),
                                      "LD_PRELOAD": preload})
    lines = list[str]()
    for path in sorted(set(folder.glob("*.trace")) - before):
        size = used(path)
        if size:
            lines.append(f"process {path.stem}: {shown(size)} in {out}/{path.name}")
        if ending.goes_on:  # and writes there
            continue
        if size:
            os.truncate(path, size)
        else:
            path.unlink()
    if not lines:
        return ending.status, ("nothing was traced: the program allocates nothing, is statically "
                               "linked, or removes LD_PRELOAD")
    return ending.status, "\n".join(lines)
