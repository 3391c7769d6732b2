"""Every name that the library exports, called where nothing has been called before it.

A new name without a row in first_call.c fails. One fresh process for each name and circumstance.
"""
import fnmatch
import pathlib
import re
import subprocess

import pytest

HEADER = pathlib.Path(__file__).parents[2] / "include" / "hakmem.h"
VERSION = "HAKMEM_0.1"
REPLACED = """
malloc free calloc realloc reallocarray free_sized free_aligned_sized
posix_memalign aligned_alloc memalign valloc pvalloc cfree
malloc_usable_size malloc_trim mallopt mallinfo mallinfo2 malloc_info malloc_stats
__libc_malloc __libc_free __libc_calloc __libc_realloc __libc_memalign __libc_valloc __libc_pvalloc
_Znwm _Znam _ZnwmSt11align_val_t _ZnamSt11align_val_t _ZdlPv _ZdaPv _ZdlPv?* _ZdaPv?*
dlopen
""".split()
CIRCUMSTANCES = ["first", "preinit", "constructor", "vfork", "late"]


def versioned(library):
    """Each name that is exported, with its version."""
    rows = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True,
                          capture_output=True, text=True).stdout.splitlines()
    return dict((row.split()[2].split("@@") + [""])[:2] for row in rows if row.split()[1] != "A")


def exported(library):
    return sorted(versioned(library))


def test_what_is_exported_is_of_the_header_or_replaced_and_nothing_else(library):
    """What is replaced has no version: a program asks for malloc by that of the C library."""
    names = versioned(library)
    own = {name for name in names if name.startswith("hakmem_")}
    assert own == set(re.findall(r"\b(hakmem_\w+)\(", HEADER.read_text(encoding="utf-8")))
    assert {names[name] for name in own} == {VERSION}
    others = {name for name in names if name not in own}
    assert [each for each in REPLACED if not fnmatch.filter(others, each)] == []
    assert [each for each in others
            if names[each] or not any(fnmatch.fnmatchcase(each, one) for one in REPLACED)] == []


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
def test_every_exported_name_may_be_called_first(build, run, library, circumstance):
    program = build("first_call.c")
    failed = {}
    for name in exported(library):
        result = run(program, circumstance, name)
        if result.returncode != 0:
            failed[name] = (result.returncode, result.stderr)
    assert failed == {}


def test_a_name_without_a_row_is_noticed(build, run):
    assert run(build("first_call.c"), "first", "no_such_name").returncode == 78
