"""What others have written: files, which are read within bounds, and texts, which are shown as one
line of characters that can be seen. Every tool reads and shows by these functions (tests/tidy.py
looks for others)."""

import importlib
import io
import json
import os
import re
import resource
import stat
import subprocess
import sys
import threading
import zlib
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, BinaryIO

from hakmem.errors import FileNotFound, UserError

MOST_BYTES = 64 << 20  # of a file, and of what a compressed one holds
MOST_MEMORY = 2 << 30  # addresses of a program that looks into a file
MOST_DEPTH = 32  # of lists and objects of JSON in each other
MOST_SHOWN = 4096  # characters of a text; names of C++ are long
# A text, also one without end: then the search takes no longer than the text is long.
JSON_DEPTH = re.compile(rb'"(?:[^"\\]+|\\.)*"?|([\[{])|[\]}]', re.DOTALL)


def opened(path: Path) -> BinaryIO:
    """A regular file. The function opens no device, and waits for no FIFO."""
    try:
        if stat.S_ISREG(os.stat(path).st_mode):
            file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY), "rb")
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file
            file.close()  # Somebody has put another there since.
    except FileNotFoundError as error:
        raise FileNotFound(f"{path}: {error.strerror}") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    except ValueError:
        raise UserError(f"{path}: no file can have this name") from None
    raise UserError(f"{path}: this is not a regular file")


def read(path: Path, most: int = MOST_BYTES) -> bytes:
    """A whole file."""
    with opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > most:
            raise UserError(f"{path}: it has {size:,} bytes, and at most {most:,} are read")
        try:
            return file.read(size) or b""
        except OSError as error:
            raise UserError(f"{path}: {error.strerror}") from None


def unpacked(data: bytes, most: int = MOST_BYTES) -> bytes:
    """What gzip has made small, if it is compressed. ValueError: it is damaged, or too large."""
    if data[:2] != b"\x1f\x8b":
        return data
    unpacker = zlib.decompressobj(wbits=31)
    try:
        found = unpacker.decompress(data, most)
    except zlib.error:
        raise ValueError from None
    if not unpacker.eof or unpacker.unused_data:
        raise ValueError
    return found


def parsed_json(data: bytes) -> Any:
    """ValueError: the text is none of JSON, or it is deeper than any that we write."""
    depth = 0
    for found in JSON_DEPTH.finditer(data):
        if found[0][:1] != b'"':
            depth += 1 if found[1] else -1
        if depth > MOST_DEPTH:
            raise ValueError
    return json.loads(data.decode(errors="replace"))


class Metered(io.RawIOBase):
    """A file for a library that believes what the file says of lengths and counts: it gets an
    error instead of more than an honest file has."""

    def __init__(self, file: BinaryIO, most_bytes: int, most_reads: int) -> None:
        self.file, self.bytes_left, self.reads_left = file, most_bytes, most_reads

    def read(self, size: int = -1) -> bytes:
        self.reads_left -= 1
        found = self.file.read(min(size, self.bytes_left) if size >= 0 else self.bytes_left) or b""
        self.bytes_left -= len(found)
        if self.reads_left < 0 or self.bytes_left <= 0:
            raise ValueError
        return found

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        return self.file.seek(offset, whence)

    def tell(self) -> int:
        return self.file.tell()


def needed(module: str, package: str) -> Any:
    """A module that only some commands need, so that the others run without it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise UserError(f"this needs the Python package {package}: install python3-{package} of "
                        f"the distribution, or pip install {package}") from None


def said(words: Sequence[str], most_s: float, most: int = MOST_BYTES) -> tuple[str, bool]:
    """The whole lines that a program prints about a file, and whether it ended well. It gets a
    time, an amount of memory, and prints at most so many bytes."""
    try:
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL, preexec_fn=_limit_memory)
    except (OSError, ValueError, subprocess.SubprocessError):  # There is none, or no room for it.
        return "", False
    timer = threading.Timer(max(most_s, 0), child.kill)
    with child:
        timer.start()
        try:
            found = child.stdout.read(most + 1) if child.stdout else b""
            if len(found) > most:
                child.kill()
            child.wait()
        finally:
            timer.cancel()
            child.kill()
    text = found[:found.rfind(b"\n", 0, most) + 1].decode(errors="replace")
    return text, child.returncode == 0 and len(found) <= most


def _limit_memory() -> None:
    most = min((each for each in resource.getrlimit(resource.RLIMIT_AS) if each >= 0),
               default=MOST_MEMORY)
    resource.setrlimit(resource.RLIMIT_AS, (min(most, MOST_MEMORY),) * 2)


def plain(text: object, most: int = MOST_SHOWN) -> str:
    """A text as one line. What cannot be seen, or changes how the rest is seen, is told by its
    number: line ends, escape codes, marks of direction."""
    shown = "".join(each if each.isprintable() else each.encode("unicode_escape").decode()
                    for each in str(text)[:most + 1])
    return shown if len(shown) <= most else f"{shown[:most]}..."


def markup(text: object) -> str:
    """A text within a page of HTML or SVG, and within quotes there."""
    return escape(plain(text))


def tell(text: str, err: bool = False, nl: bool = True) -> None:
    """Writes lines for a terminal."""
    print("\n".join(plain(line, sys.maxsize - 1) for line in text.split("\n")),
          end="\n" if nl else "", file=sys.stderr if err else sys.stdout, flush=True)


def tell_over(text: str) -> None:
    """Writes lines in place of all that the terminal shows."""
    sys.stdout.write("\x1b[H\x1b[J")  # to the upper left corner; clear from there
    tell(text)
