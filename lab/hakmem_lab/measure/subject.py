"""What is run: a command, or a server under a load. Allocators come in by the environment alone."""

import os
import shlex
import shutil
import stat
import struct
from dataclasses import dataclass, field
from pathlib import Path

from hakmem import own_allocator
from hakmem_lab import LabError, NoSuchProgram, NotExecutable

# What cells are summed up by, in the order of what they say of a user's life.
GROUPS = ("programs",  # real ones, which others wrote
          "made",  # programs that were written for this laboratory
          "memory",  # runs of seconds in which memory comes, goes and lies idle
          "touched",  # families that write every page they allocate
          "families")  # those that write little: the cost of the calls alone
OWN_GROUP = "own"  # a user's program
NEVER = "never"
PT_INTERP = 3  # of an ELF program header
REGIMES = (NEVER, "madvise", "always")  # transparent huge pages


@dataclass(frozen=True)
class Subject:
    """A command. With `load` it is a server: started, waited for, loaded, stopped.

    In a word, `{port}` becomes a port that is free, `{root}` the checkout, `{folder}` a fresh
    empty folder; each only if it is among the `placeholders`: a word of a user's may mean
    itself."""

    command: tuple[str, ...]
    settings: dict[str, str] = field(default_factory=dict)  # environment of the command
    limit_s: float = 600.0  # killed after so long: a row with that reason
    load: tuple[str, ...] = ()  # run on the system's malloc, timed, when the server is ready
    until: str = ""  # ready when: "port:6379", "log:TEXT" or "cmd:COMMAND"; "": port:{port}
    folder: str = ""  # the working directory, also "{folder}"; "": the user's
    build: str = ""  # a shell command that makes {built}; see programs.ready
    has_json: bool = False  # a program of ours: prints one JSON line with its own figures
    reads_stdin: bool = False  # the laboratory's, from its beginning, if that is a file
    placeholders: tuple[str, ...] = ("port", "folder", "root")

    @property
    def is_server(self) -> bool:
        return bool(self.load)

    @property
    def is_ours(self) -> bool:
        """A benchmark program by its bare name; what it is called as a file is not said yet."""
        return self.has_json and "/" not in self.command[0]

    def words(self) -> str:
        """As a user would type it, without the paths of this machine."""
        return printable(shlex.join([Path(self.command[0]).name, *self.command[1:]]))


@dataclass(frozen=True)
class Cell:
    """One entry of a matrix: a subject with the name under which its rows are kept."""

    name: str
    family: str
    subject: Subject
    title: str = ""  # a sentence for the report: what it does
    group: str = "families"  # one of GROUPS, or OWN_GROUP
    is_long: bool = False


def printable(text: str) -> str:
    """On one line and in UTF-8, whatever bytes it was made of."""
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def find_program(name: str) -> Path:
    found = shutil.which(name)
    if found is None and "/" in name and os.path.exists(name):
        what = "is a folder" if os.path.isdir(name) else "is not executable (chmod +x makes it so)"
        raise NotExecutable(f"{name} {what}")
    if found is None:
        folder_hint = " (write ./ before a program of this folder)" if os.path.isfile(name) else ""
        raise NoSuchProgram(f"{name}: there is no such program{folder_hint}")
    return Path(found)


def refuse_if_not_preloadable(name: str) -> None:
    """The dynamic linker reads LD_PRELOAD; a static program has none, a setuid one ignores it."""
    program = find_program(name)
    if program.stat().st_mode & (stat.S_ISUID | stat.S_ISGID) and os.geteuid() != 0:
        raise LabError(f"{program} is setuid or setgid: the system forbids to preload it")
    if has_no_interpreter(program):
        own = own_allocator.of_command(name)
        raise LabError(f"{program} is statically linked: nothing can be preloaded into it"
                       f"{f'; {own.line()}' if own else ''}")


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
