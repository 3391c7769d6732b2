"""Which frames of a call stack are the program's own code, and short names of functions: templates
and parameters of C++ are noise where a line of the source is wanted."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

SYSTEM = re.compile(r"/(usr/(local/)?(include|lib|lib64)|lib|lib64|rustc|rust/deps)/|/build/glibc|"
                    r".*/\.cargo/registry/|.*/\.rustup/")
LIBRARY = re.compile(r"(.*\s)?(std|core|alloc|__gnu_cxx|__(rust|rdl_|rg_)\w*)(::|$)|operator new|"
                     r"_?Py(Object|Mem)_(Raw)?(M|C|Re)alloc$|_PyMem_\w+$|pymalloc_\w+$")
STARTS = re.compile(r"__rust_begin_short_backtrace|^(_start|__libc_start_\w+|start_thread)$")
PYTHON = re.compile(r"(lib)?python3[.\d]*(\.so[.\d]*)?")
MEMRAY = "memray run app.py, then memray tree FILE"
OF_PYTHON = (f"functions of Python are not in these stacks: {MEMRAY}, name them (pip install "
             "memray). Objects of up to 512 bytes are in pools of Python's own, unless "
             "PYTHONMALLOC=malloc is set (docs/profile.md)")
PARAMETERS = re.compile(r"\([^()]*\)( const)?( &&?)?$")
# The path of a type or a trait of Rust in a crate that is not of the language.
OWN_CRATE = re.compile(r"(&|\*|\[|\(|mut |const |dyn )*(?!(std|core|alloc)::)\w+::")
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
        if SYSTEM.match(self.file) or SYSTEM.match(self.source):
            return True
        if self.function[:1] == "<":
            return not any(map(OWN_CRATE.match, of_impl(self.function)))
        return LIBRARY.match(without_templates(self.function)) is not None

    @property
    def is_unnamed(self) -> bool:
        """It is known by its place in a file alone."""
        return bool(self.file) and self.function.startswith(f"{Path(self.file).name}+0x")


def of_impl(name: str) -> list[str]:
    """The type, and the trait if there is one, of a method of Rust: <Type as Trait>::method."""
    depth, parts, start = 0, list[str](), 1
    for at, each in enumerate(name):
        depth += (each == "<") - (each == ">" and name[at - 1] != "-")
        if depth == 1 and name.startswith(" as ", at):
            parts.append(name[start:at])
            start = at + 4
        if depth == 0:
            return [*parts, name[start:at]]
    return [name]


def without_templates(name: str) -> str:
    """A name of C++ or Rust without what stands between < and >."""
    kept, depth, at = [], 0, 0
    while at < len(name):
        is_operator = depth == 0 and name[:at].endswith(("operator", "operator<", "operator-",
                                                         "operator>", "operator<="))
        if name[at] == "<" and not is_operator:
            depth += 1
        elif name[at] == ">" and not is_operator and depth:
            depth -= name[at - 1] != "-"  # An arrow ends nothing.
        elif depth == 0:
            kept.append(name[at])
        at += 1
    return "".join(kept).replace("::::", "::").removesuffix("::")


def short(name: str) -> str:
    """std::vector::push_back instead of void std::vector<int, …>::push_back(…)."""
    if "::" not in name and "<" not in name:
        return name
    if name[:1] == "<":
        parts = of_impl(name)
        behind = name[1 + len(" as ".join(parts)):]
        told = " as ".join(map(without_templates, parts))
        return f"<{told}{without_templates(behind)}" if behind else name
    told = without_templates(name.replace(ANONYMOUS, "{anonymous}"))
    told = re.sub(r"\[abi:\w+\]", "", told).replace("std::__cxx11::basic_string", "std::string")
    while (inner := re.search(r"\([^()]*\([^()]*\)", told)) and "operator()" not in inner[0]:
        told = told[:inner.start() + 1] + told[inner.end():]  # Parameters that are functions.
    told = PARAMETERS.sub("", told)
    head, operator, symbol = told.partition("operator")  # Without the type that it returns.
    told = head.rpartition(" ")[2] + operator + symbol.rstrip()
    return told.replace("{anonymous}", ANONYMOUS) or name


def own_first(stack: Sequence[Name]) -> list[Name]:
    """A stack, innermost first, without what a library does inside: its first frame is the one that
    the program's own code has called. Nor has it what starts a program or a thread. Where no frame
    is the program's own, all of it."""
    end = next((at for at, name in enumerate(stack) if STARTS.search(name.function)), len(stack))
    own = [at for at, name in enumerate(stack[:end]) if not name.is_library]
    return list(stack[max(own[0] - 1, 0):own[-1] + 1]) if own else list(stack)


def hint(names: Iterable[Name]) -> list[str]:
    """Says which programs have no names for their functions, and what gives them."""
    own = [name for name in names if not name.is_library]
    files = {Path(each.file).name for each in own if each.file}
    of_python = {each for each in files if PYTHON.fullmatch(each)}
    nameless = sorted({Path(each.file).name for each in own if each.is_unnamed} - of_python)
    return [f"{', '.join(nameless)} has no symbols: names need a build with -g that is not "
            "stripped, or the distribution's package with debug symbols"] * bool(nameless) + \
        [OF_PYTHON] * bool(of_python)
