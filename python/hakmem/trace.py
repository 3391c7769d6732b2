"""Runs a program and writes down what its processes allocate and free."""

import os
from collections.abc import Sequence
from pathlib import Path

from hakmem import profile
from hakmem.errors import UserError
from hakmem.place import preloaded, recorder_path
from hakmem.statistics import shown

HEAD = RECORD = 32  # bytes; recorder/records.c
MAGIC = b"hakmem trace 2\n"


def cut(path: Path, may_be_in_use: bool) -> int:
    """Takes away what is not used of a file, which is as long as it may become. Bytes that are; 0:
    it was empty, and is there no longer, or is no trace. A link is not followed."""
    try:
        number = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    with open(number, "r+b", buffering=0) as file:
        head, length = file.read(HEAD), os.fstat(number).st_size
        size = HEAD + RECORD * int.from_bytes(head[16:24], "little")
        if not head.startswith(MAGIC) or size > length:
            return 0
        if not may_be_in_use:
            os.ftruncate(number, size)
    if size == HEAD and not may_be_in_use:
        path.unlink()
    return size if size > HEAD else 0


def is_there(process: str) -> bool:
    """Also one of another command that uses the folder, and writes there."""
    return Path("/proc", process).exists()


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
        if size := cut(path, ending.goes_on or is_there(path.stem.partition("-")[0])):
            lines.append(f"process {path.stem}: {shown(size)} in {out}/{path.name}")
    if not lines:
        return ending.status, ("nothing was traced: the program allocates nothing, is statically "
                               "linked, or removes LD_PRELOAD")
    return ending.status, "\n".join(lines)
