"""What an ELF file of 64 bits says of its segments and of itself, as pyelftools reads it."""

import re
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from hakmem import foreign

FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
BUILD_ID = re.compile(r"[0-9a-f]{8,128}")
MOST_BYTES, MOST_READS = 128 << 20, 300_000  # a table of symbols may have 5 million rows
Answer = TypeVar("Answer")


class Segment(NamedTuple):
    """A part of the file, and the address that the linker gave to it."""

    offset: int
    length: int
    address: int


def library() -> Any:
    return foreign.needed("elftools.elf.elffile", "pyelftools")


def asked(path: Path, question: Callable[[Any], Answer], otherwise: Answer) -> Answer:
    """The answer of a file; `otherwise`: it is no such file, is damaged, or cannot be read."""
    reader = library()
    try:
        with foreign.opened(path) as file:
            elf = reader.ELFFile(foreign.Metered(file, MOST_BYTES, MOST_READS))
            return question(elf) if elf.elfclass == 64 and elf.little_endian else otherwise
    except Exception:  # The library has errors of many kinds for a damaged file.
        return otherwise


def load_segments(path: Path) -> list[Segment]:
    """What is mapped of a file."""
    return asked(path, lambda elf: [
        Segment(each["p_offset"], each["p_filesz"], each["p_vaddr"])
        for each in elf.iter_segments("PT_LOAD")], [])


def functions(path: Path) -> list[tuple[int, int]]:
    """Where its symbols say that functions begin and end, by the linker's addresses."""
    return asked(path, _functions, [])


def _functions(elf: Any) -> list[tuple[int, int]]:
    found = []
    for table in elf.iter_sections():
        if table["sh_type"] not in ("SHT_SYMTAB", "SHT_DYNSYM"):
            continue
        elf.stream.seek(table["sh_offset"])
        rows = elf.stream.read(table["sh_size"])  # at once: the library takes long for each symbol
        for _, info, _, section, value, extent in struct.iter_unpack(
                "<IBBHQQ", rows[:len(rows) - len(rows) % 24]):
            if info & 15 in FUNCTIONS and section and extent:
                found.append((value, value + extent))
    return sorted(found)


def build_id(path: Path) -> str:
    """In hexadecimal digits; "" if the file has none."""
    return asked(path, _build_id, "")


def _build_id(elf: Any) -> str:
    found = (note["n_desc"] for segment in elf.iter_segments("PT_NOTE")
             for note in segment.iter_notes() if note["n_type"] == "NT_GNU_BUILD_ID")
    return next((each for each in found if BUILD_ID.fullmatch(each)), "")


def is_static(path: Path) -> bool:
    """A program that no library can be preloaded into."""
    return asked(path, lambda elf: not any(elf.iter_segments("PT_INTERP")), False)
