"""Can a program be preloaded at all?"""

import os
import stat
import struct
from pathlib import Path

from hakmem_lab import LabError

PT_INTERP = 3


def refuse_if_not_preloadable(program: Path) -> None:
    """The dynamic linker reads LD_PRELOAD; a static program has none, a setuid one ignores it."""
    if program.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        raise LabError(f"{program} is setuid or setgid: the system forbids to preload it")
    if has_no_interpreter(program):
        raise LabError(f"{program} is statically linked: nothing can be preloaded into it")


def has_no_interpreter(program: Path) -> bool:
    """Is this a 64-bit ELF program whose headers name no dynamic linker?"""
    try:
        with program.open("rb") as file:
            header = file.read(64)
            if len(header) < 64 or header[:5] != b"\x7fELF\x02":
                return False
            table, size, count = struct.unpack_from("<Q14xHH", header, 32)
            file.seek(table)
            headers = file.read(size * count)
    except OSError:
        return False  # may be executable without being readable
    kinds = [struct.unpack_from("<I", headers, index * size)[0] for index in range(count)]
    return PT_INTERP not in kinds
