"""What an ELF file of 64 bits says of its segments and of itself."""

import struct
from pathlib import Path
from typing import NamedTuple

LOAD, INTERPRETER, NOTE = 1, 3, 4  # PT_LOAD, PT_INTERP, PT_NOTE
SYMBOL_TABLES = (2, 11)  # SHT_SYMTAB, SHT_DYNSYM
FUNCTIONS = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
BUILD_ID = 3  # NT_GNU_BUILD_ID
MAGIC = b"\x7fELF\x02\x01"


class Segment(NamedTuple):
    """A part of the file, and the address that the linker gave to it."""

    offset: int
    length: int
    address: int


def _segments(data: bytes, wanted: int) -> list[Segment]:
    if data[:6] != MAGIC or len(data) < 64:
        return []
    table, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = []
    for index in range(count):
        place = table + index * size
        if place + 56 > len(data):  # cut short
            break
        kind, _, offset, address, _, length = struct.unpack_from("<IIQQQQ", data, place)
        if kind == wanted:
            segments.append(Segment(offset, length, address))
    return segments


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def load_segments(path: Path) -> list[Segment]:
    """What is mapped of a file; nothing if it is no such file, or cannot be read."""
    return _segments(_read(path), LOAD)


def functions(path: Path) -> list[tuple[int, int]]:
    """Where its symbols say that functions begin and end, by the linker's addresses."""
    data = _read(path)
    if data[:6] != MAGIC or len(data) < 64:
        return []
    table, = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    found = []
    for place in range(table, table + count * size, max(size, 1)):
        if place + 64 > len(data):  # cut short
            break
        kind, _, _, offset, length = struct.unpack_from("<IQQQQ", data, place + 4)
        if kind not in SYMBOL_TABLES:
            continue
        entries = data[offset:offset + length - length % 24]
        for _, info, _, section, value, extent in struct.iter_unpack("<IBBHQQ", entries):
            if info & 15 in FUNCTIONS and section and extent:
                found.append((value, value + extent))
    return sorted(found)


def build_id(path: Path) -> str:
    """In hexadecimal digits; "" if the file has none."""
    data = _read(path)
    for place, length, _ in _segments(data, NOTE):
        end = min(place + length, len(data))
        while place + 12 <= end:
            name_length, size, kind = struct.unpack_from("<III", data, place)
            start = place + 12 + (name_length + 3 & ~3)
            if kind == BUILD_ID and data[place + 12:place + 16] == b"GNU\0":
                return data[start:start + size].hex()
            place = start + (size + 3 & ~3)
    return ""


def is_static(path: Path) -> bool:
    """A program that no library can be preloaded into."""
    data = _read(path)
    return data[:6] == MAGIC and not _segments(data, INTERPRETER)
