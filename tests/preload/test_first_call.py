"""Every name that the libraries export, called where nothing has been called before it.

The names are those of the symbol tables. A name without a row in first_call.c fails, and so does a
row without a name. One fresh process for each name, circumstance and way to the library.
"""
import fnmatch
import pathlib
import re
import subprocess

import pytest

INCLUDE = pathlib.Path(__file__).parents[2] / "include"
VERSION = "HAKMEM_0.1"
PREFIX = "hk_"
REPLACED = """
malloc free calloc realloc reallocarray free_sized free_aligned_sized
posix_memalign aligned_alloc memalign valloc pvalloc cfree
malloc_usable_size malloc_trim mallopt mallinfo mallinfo2 malloc_info malloc_stats
__libc_malloc __libc_free __libc_calloc __libc_realloc __libc_memalign __libc_valloc __libc_pvalloc
_Znwm _Znam _Znwm?* _Znam?* _ZdlPv _ZdaPv _ZdlPv?* _ZdaPv?*
dlopen
""".split()
ONLY_SHARED = {"dlopen", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t",
               "_ZnwmSt11align_val_tRKSt9nothrow_t", "_ZnamSt11align_val_tRKSt9nothrow_t"}
WAYS = ["preloaded", "linked", "static", "archive", "prefixed"]
CIRCUMSTANCES = ["first", "preinit", "constructor", "thread", "fork", "clone", "used_fork",
                 "used_clone", "vfork", "refused", "late"]
SIZES = [0, 1, 20000, 100000, 64 << 20, -1]
SETTINGS = [{"HAKMEM_LD_SAFE": 1}, {"HAKMEM_MODE": "checked"}, {"HAKMEM_MODE": "debug"},
            {"HAKMEM_PROFILE": "profile"}, {"HAKMEM_STATS": "stats"}]


def symbols(file, *flags):
    """Each name that is exported, with its version."""
    rows = subprocess.run(["nm", "--defined-only", *flags, str(file)], check=True,
                          capture_output=True, text=True).stdout.splitlines()
    fields = [row.split() for row in rows]
    return dict((each[2].split("@@") + [""])[:2] for each in fields
                if len(each) == 3 and each[1] != "A")


def declared(header, prefix):
    text = (INCLUDE / header).read_text(encoding="utf-8")
    return set(re.findall(rf"\b({prefix}\w+)\(", text))


@pytest.fixture(scope="module")
def exported(library, archive):
    """What each way to the library offers."""
    of_library = set(symbols(library, "-D"))
    of_archive = set(symbols(archive, "-g"))
    prefixed = set(symbols(archive.with_name("libhakmem_prefixed.a"), "-g"))
    return {"preloaded": of_library, "linked": of_library, "static": of_archive,
            "archive": of_archive, "prefixed": prefixed}


@pytest.fixture(scope="module")
def program(build, library, archive, exported):
    """program(way) is first_call.c, on the library in this way."""
    prefixed = archive.with_name("libhakmem_prefixed.a")
    renamed = [f"-D{name.removeprefix(PREFIX)}={name}" for name in sorted(exported["prefixed"])
               if name.startswith(PREFIX)]
    flags = {"preloaded": [],
             "linked": ["-Wl,--no-as-needed", library, f"-Wl,-rpath,{library.parent}"],
             "static": ["-static", archive], "archive": [archive],
             "prefixed": [*renamed, prefixed]}
    return lambda way: build("first_call.c", *flags[way], name=f"first_call_{way}")


@pytest.fixture(scope="module")
def failures(run, library, exported, program, tmp_path_factory):
    """failures(way, circumstance, …) are the names whose call does not end well."""
    folder = tmp_path_factory.mktemp("written")

    def call_each(way, circumstance, *size, **settings):
        settings = {name: folder / text if text in ("profile", "stats") else text
                    for name, text in settings.items()}
        found = {}
        for name in sorted(exported[way]):
            if name.startswith("_Zn") and (size == (-1,) or circumstance == "refused"):
                continue  # ends the process, where there is no C++ runtime to throw
            result = run(program(way), circumstance, name.removeprefix(PREFIX), *size,
                         preload=library if way == "preloaded" else None, **settings)
            if result.returncode != 0:
                found[name] = (result.returncode, result.stderr)
        return found

    return call_each


def test_what_is_exported_is_of_the_header_or_replaced_and_nothing_else(library, exported):
    """What is replaced has no version: a program asks for malloc by that of the C library."""
    names = symbols(library, "-D")
    own = {name for name in names if name.startswith("hakmem_")}
    assert own == declared("hakmem.h", "hakmem_")
    assert {names[name] for name in own} == {VERSION}
    others = {name for name in names if name not in own}
    assert [each for each in REPLACED if not fnmatch.filter(others, each)] == []
    assert [each for each in others
            if names[each] or not any(fnmatch.fnmatchcase(each, one) for one in REPLACED)] == []
    assert exported["archive"] == exported["linked"] - ONLY_SHARED
    assert exported["prefixed"] == own | declared("hakmem_prefixed.h", PREFIX)


def test_each_name_has_a_row_and_each_row_a_name(run, exported, program):
    rows = run(program("linked"), "rows", preload=None).stdout.split()
    assert sorted(rows) == sorted(exported["linked"])
    assert {name.removeprefix(PREFIX) for name in exported["prefixed"]} < set(rows)


def test_a_name_without_a_row_is_noticed(run, program):
    assert run(program("preloaded"), "first", "no_such_name").returncode == 78


@pytest.mark.parametrize("circumstance", CIRCUMSTANCES)
@pytest.mark.parametrize("way", WAYS)
def test_every_exported_name_may_be_called_first(failures, way, circumstance):
    assert failures(way, circumstance) == {}


@pytest.mark.parametrize("size", SIZES)
def test_the_first_call_may_ask_for_any_size(failures, size):
    assert failures("archive", "preinit", size) == {}


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda each: "=".join(map(str, *each.items())))
def test_every_exported_name_may_be_called_first_with_settings(failures, settings):
    assert failures("preloaded", "preinit", **settings) == {}
