"""Can a program be preloaded, and was it?"""

import os
import shutil
import stat
import struct
import subprocess
from pathlib import Path

from hakmem_lab import LabError

PT_INTERP = 3


def find_program(name: str) -> Path:
    found = shutil.which(name)
    if found is None:
        raise LabError(f"{name}: no such program")
    return Path(found)


def find_library(path: str | None) -> Path:
    named = path or os.environ.get("TESTED_LIBRARY")
    library = Path(named or "out/release/libhakmem.so").absolute()
    if not library.exists():
        raise LabError(f"{library}: no such library; `make release` builds it")
    return library


def refuse_if_not_preloadable(program: Path) -> None:
    """The dynamic linker reads LD_PRELOAD; a static program has none, a setuid one ignores it."""
    if program.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        raise LabError(f"{program} is setuid or setgid: the system forbids to preload it")
    if has_no_interpreter(program):
        raise LabError(f"{program} is statically linked: nothing can be preloaded into it")


def has_no_interpreter(program: Path) -> bool:
    """Is this a 64-bit ELF program whose headers name no dynamic linker?"""
    with program.open("rb") as file:
        header = file.read(64)
        if len(header) < 64 or header[:5] != b"\x7fELF\x02":
            return False
        table, size, count = struct.unpack_from("<Q14xHH", header, 32)
        file.seek(table)
        headers = file.read(size * count)
    kinds = [struct.unpack_from("<I", headers, index * size)[0] for index in range(count)]
    return PT_INTERP not in kinds


def is_mapped(pid: int, library: Path) -> bool:
    """Does the process have the library in its address space at this moment?"""
    try:
        return str(library.resolve()) in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def would_be_mapped(program: Path, environment: dict[str, str], library: Path) -> bool:
    """What the dynamic linker says of a program that ends before anyone can look into it."""
    traced = environment | {"LD_TRACE_LOADED_OBJECTS": "1"}
    done = subprocess.run([program], env=traced, capture_output=True, text=True, check=False)
    return str(library) in done.stdout
