"""Which frames of a call stack are the program's own code, and short names of functions: templates
and parameters of C++ are noise where a line of the source is wanted."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

SYSTEM = re.compile(r"/(usr/(local/)?(include|lib|lib64)|lib|lib64|rustc)/|/build/glibc|"
                    r".*/\.cargo/registry/|.*/\.rustup/")
LIBRARY = re.compile(r"(.*\s)?(std|core|alloc|__gnu_cxx|__rust\w*|__rdl\w*)(::|$)|operator new|"
                     r"_?Py(Object|Mem)_(Raw)?(M|C|Re)alloc$|_PyMem_\w+$|pymalloc_\w+$")
PYTHON = re.compile(r"(lib)?python3[.\d]*(\.so[.\d]*)?")
OF_PYTHON = ("functions of Python are not in these stacks: tracemalloc (python3 -X tracemalloc) "
             "and memray name them. Objects of up to 512 bytes are in pools of Python's own, "
             "unless PYTHONMALLOC=malloc is set (docs/profile.md)")
PARAMETERS = re.compile(r"\([^()]*\)( const)?( &&?)?$")
ANONYMOUS = "(anonymous namespace)"


class Name(NamedTuple):
    """What the code at an address is called."""

    function: str
    line: str = ""  # "file.c:12", where debug information says it
    source: str = ""  # the path of that file
    file: str = ""  # the path of the program or library

    def __str__(self) -> str:
        return f"{short(self.function)} at {self.line}" if self.line else short(self.function)

    @property
    def is_library(self) -> bool:
        """It is code of a library of the system, or of the language."""
        return bool(SYSTEM.match(self.file) or SYSTEM.match(self.source) or
                    LIBRARY.match(without_templates(self.function)))

    @property
    def is_unnamed(self) -> bool:
        """It is known by its place in a file alone."""
        return bool(self.file) and self.function.startswith(f"{Path(self.file).name}+0x")


def without_templates(name: str) -> str:
    """A name of C++ without what stands between < and >."""
    if name[:1] == "<":  # Rust: <Type as Trait>::method
        return name
    kept, depth, at = [], 0, 0
    while at < len(name):
        is_operator = depth == 0 and name[:at].endswith(("operator", "operator<", "operator-",
                                                         "operator>", "operator<="))
        if name[at] == "<" and not is_operator:
            depth += 1
        elif name[at] == ">" and not is_operator and depth:
            depth -= 1
        elif depth == 0:
            kept.append(name[at])
        at += 1
    return "".join(kept)


def short(name: str) -> str:
    """std::vector::push_back instead of void std::vector<int, …>::push_back(…)."""
    if "::" not in name and "<" not in name:
        return name
    told = without_templates(name.replace(ANONYMOUS, "{anonymous}"))
    told = re.sub(r"\[abi:\w+\]", "", told).replace("std::__cxx11::basic_string", "std::string")
    while (inner := re.search(r"\([^()]*\([^()]*\)", told)) and "operator()" not in inner[0]:
        told = told[:inner.start() + 1] + told[inner.end():]  # Parameters that are functions.
    told = PARAMETERS.sub("", told)
    if name[:1] != "<":  # without the type that it returns
        head, operator, symbol = told.partition("operator")
        told = head.rpartition(" ")[2] + operator + symbol.rstrip()
    return told.replace("{anonymous}", ANONYMOUS) or name


def own_first(stack: Sequence[Name]) -> list[Name]:
    """A stack, innermost first, without what a library does inside: its first frame is the one that
    the program's own code has called. Where no frame is the program's own, all of it."""
    for at, name in enumerate(stack):
        if not name.is_library:
            return list(stack[max(at - 1, 0):])
    return list(stack)


def hint(names: Iterable[Name]) -> list[str]:
    """Says which programs have no names for their functions, and what gives them."""
    own = [name for name in names if not name.is_library]
    files = {Path(each.file).name for each in own if each.file}
    nameless = sorted({Path(each.file).name for each in own if each.is_unnamed})
    return [f"{', '.join(nameless)} has no symbols: names need a build with -g that is not "
            "stripped, or the distribution's package with debug symbols"] * bool(nameless) + \
        [OF_PYTHON] * any(map(PYTHON.fullmatch, files))
