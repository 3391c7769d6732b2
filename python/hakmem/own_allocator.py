"""Programs and libraries that bring an allocator of their own, so that a preloaded one gets few
calls or none: which allocator it is, by symbols and texts of the ELF file, and how to switch.

A library that only exports `malloc` is none of them, for a preloaded one takes its place. A program
that exports it is one, for the dynamic linker finds a program's functions first."""

import mmap
import os
import re
import shlex
import shutil
import struct
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hakmem import elf, foreign
from hakmem.errors import UserError
from hakmem.kernel import PROC

MOST_BYTES = 4 << 30  # of a program that is searched for strings
MOST_LINE = 256  # of a script, that names its interpreter
NOTHING, LITTLE = "nothing", "little"
FILE_OF_MAP = re.compile(rb"[0-9a-f]+-[0-9a-f]+ ..x. .*? +(/.*)")

# An allocator: the functions of which it defines one at least, also where C++ or a build has put a
# prefix in front; or the texts that it has all of, where the symbols are stripped.
ALLOCATORS = (
    ("jemalloc", ("je_malloc", "_rjem_malloc", "je_arrow_mallocx", "je_mallocx", "_rjem_mallocx"),
     (b"<jemalloc>: ", b"MALLOC_CONF")),
    ("mimalloc", ("mi_malloc",), (b"mimalloc: error: ", b"mimalloc: warning: ")),
    ("tcmalloc", ("tc_malloc", "TCMallocInternalMalloc"),
     (b"tcmalloc.max_total_thread_cache_bytes", b"tcmalloc.current_total_thread_cache_bytes")),
    ("snmalloc", ("sn_malloc", "sn_rust_alloc"), ()),
    ("rpmalloc", ("rpmalloc",), ()),
    ("the allocator of oneTBB", ("scalable_malloc",), ()),
    ("AddressSanitizer", ("__asan_init",), ()),
)
OURS = ("hakmem_purge", "hk_malloc")  # linked in
MALLOC = "malloc"
GO_SECTIONS = (".go.buildinfo", ".gopclntab")
GO = "the heap of Go's collector"
UNKNOWN = "a malloc"

# Functions of C that a package of Go calls; those of its standard library hold next to nothing.
GO_CALLS = re.compile(rb"([A-Za-z0-9_./-]+)\._C2?func_")
GO_STANDARD = (b"net", b"os/user", b"plugin", b"runtime/cgo")

# How to switch: (the allocator, "": any; a text of the program; what to do). The first one counts.
SWITCHES = (
    (GO, b"", "GOGC and GOMEMLIMIT bound that heap; only what C code allocates (cgo) can be on "
     "HAKMEM"),
    ("AddressSanitizer", b"", "build it without -fsanitize=address"),
    ("", b"redis_version:", "build it with make MALLOC=libc"),
    ("", b"ClickHouse", "build it with cmake -DENABLE_JEMALLOC=0"),
    ("", b"MongoDB", "build it with --allocator=system (or --//bazel/config:allocator=system)"),
    ("", b"ARROW_DEFAULT_MEMORY_POOL", "set ARROW_DEFAULT_MEMORY_POOL=system"),
    ("the allocator of oneTBB", b"", "link the program without tbbmalloc"),
)
RUST = re.compile(rb"rustc[-/][0-9a-f.]{5,40}/library/")
RUST_SWITCH = "remove its #[global_allocator], or build it without that feature"
OTHER_SWITCH = "build or link it without that allocator"
STATIC_SWITCH = "link it with libhakmem.a, or dynamically"


@dataclass(frozen=True)
class OwnAllocator:
    """What a file brings."""

    file: Path
    allocator: str
    reach: str  # of a preloaded library: NOTHING or LITTLE
    switch: str
    is_library: bool = False

    def line(self) -> str:
        brings = self.allocator if self.allocator == GO else f"{self.allocator} of its own"
        return (f"preloading HAKMEM does {self.reach} for {foreign.plain(self.file.name)}, which "
                f"has {brings}; to switch: {self.switch}")


def of_file(path: Path, is_library: bool = False) -> OwnAllocator | None:
    """None: it brings none that can be seen, or is no ELF file, or nothing reads such files."""
    facts: _Facts | None = None
    with suppress(UserError):
        facts = elf.asked(path, _facts_of, None)
    if facts is None:
        return None
    with suppress(OSError, ValueError, UserError), foreign.opened(path) as file:
        if os.fstat(file.fileno()).st_size > MOST_BYTES:
            return None
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _judged(path, facts, data, is_library)
    return None


@dataclass(frozen=True)
class _Facts:
    """Of an ELF file."""

    defined: frozenset[str]  # functions among those that are looked for
    exported: frozenset[str]
    is_go: bool
    is_static: bool


def _facts_of(file: Any) -> _Facts:
    wanted = {MALLOC, *OURS, *(name for _, names, _ in ALLOCATORS for name in names)}
    defined: set[str] = set()
    exported: set[str] = set()
    for table in file.iter_sections():
        if table["sh_type"] in ("SHT_SYMTAB", "SHT_DYNSYM"):
            found = _defined(file, table, wanted)
            defined |= found
            if table["sh_type"] == "SHT_DYNSYM":
                exported |= found
    names = {section.name for section in file.iter_sections()}
    return _Facts(frozenset(defined), frozenset(exported),
                  any(name in names for name in GO_SECTIONS),
                  not any(file.iter_segments("PT_INTERP")))


def _defined(file: Any, table: Any, wanted: Iterable[str]) -> set[str]:
    """The functions of these names that a table of symbols defines."""
    texts = file.get_section(table["sh_link"])
    file.stream.seek(texts["sh_offset"])
    strings = file.stream.read(texts["sh_size"])
    names: dict[int, str] = {}
    for name in wanted:
        text = name.encode() + b"\0"
        place = strings.find(text)
        while place >= 0:
            names[place] = name
            place = strings.find(text, place + 1)
    if not names:
        return set()
    file.stream.seek(table["sh_offset"])
    rows = file.stream.read(table["sh_size"])
    return {names[name] for name, info, _, section, _, _ in
            struct.iter_unpack("<IBBHQQ", rows[:len(rows) - len(rows) % 24])
            if name in names and info & 15 in elf.FUNCTIONS and section}


def _judged(path: Path, facts: _Facts, data: mmap.mmap, is_library: bool) -> OwnAllocator | None:
    if facts.defined & {*OURS} or is_library and MALLOC in facts.exported:
        return None
    if facts.is_go and not is_library:
        if not facts.is_static and _calls_own_c(data):
            return None
        allocator = GO
    else:
        allocator = next((name for name, functions, texts in ALLOCATORS
                          if facts.defined & {*functions} or
                          texts and all(data.find(text) >= 0 for text in texts)), "")
        if not allocator and not is_library and (facts.is_static or MALLOC in facts.defined):
            allocator = UNKNOWN
    if not allocator:
        return None
    is_static = facts.is_static and not is_library
    return OwnAllocator(path, allocator, NOTHING if is_static or allocator == GO else LITTLE,
                        _switch(allocator, data, is_static), is_library)


def _calls_own_c(data: mmap.mmap) -> bool:
    """Does a package of Go besides those of its standard library call functions of C?"""
    return any(found[1] not in GO_STANDARD for found in GO_CALLS.finditer(data))


def _switch(allocator: str, data: mmap.mmap, is_static: bool) -> str:
    for about, text, switch in SWITCHES:
        if about in ("", allocator) and data.find(text) >= 0:
            return switch
    if RUST.search(data):
        return RUST_SWITCH
    return STATIC_SWITCH if is_static and allocator == UNKNOWN else OTHER_SWITCH


def of_command(program: str) -> OwnAllocator | None:
    """Of the program that a command starts: the interpreter's, where it is a script."""
    for _ in range(2):  # A script's interpreter is no script.
        found = shutil.which(program)
        if found is None:
            return None
        script = _interpreter(Path(found))
        if not script:
            return of_file(Path(found).resolve())
        program = script
    return None


def warn(program: str) -> bool:
    """Says on stderr what it brings, if anything; of the program that a command starts."""
    own = of_command(program)
    if own is not None:
        foreign.tell(f"hakmem: {own.line()}", err=True)
    return own is not None


def _interpreter(path: Path) -> str:
    """What the first line of a script names; "": the file is none."""
    try:
        with foreign.opened(path) as file:
            line = file.read(MOST_LINE).split(b"\n")[0]
    except (UserError, OSError):
        return ""
    if not line.startswith(b"#!"):
        return ""
    try:
        words = shlex.split(os.fsdecode(line[2:]))
    except ValueError:
        return ""
    if words and Path(words[0]).name == "env":
        words = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
    return words[0] if words else ""


def of_process(process: int) -> list[OwnAllocator]:
    """Of the program of a running process, and of the libraries that it has loaded."""
    try:
        text = (PROC / str(process) / "maps").read_bytes()
        program = os.readlink(PROC / str(process) / "exe")
    except OSError:
        return []
    paths = dict.fromkeys(os.fsdecode(mapped[1]) for line in text.split(b"\n")
                          if (mapped := FILE_OF_MAP.fullmatch(line)))
    found = [of_file(_seen_by(process, program))]
    found += [of_file(_seen_by(process, path), is_library=True)
              for path in paths if path != program]
    return [each for each in found if each is not None]


def _seen_by(process: int, path: str) -> Path:
    """A file of a process that may have another root, as one in a container has."""
    inside = PROC / str(process) / "root" / path.lstrip("/")
    return Path(path) if os.path.exists(path) or not os.path.exists(inside) else inside
