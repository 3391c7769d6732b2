"""Every name that the library exports, called where nothing has been called before it.

The names come from src/hakmem.map, so a new one without a row in first_call.c fails. One fresh
process for each name and circumstance.
"""
import fnmatch
import pathlib
import re
import subprocess

import pytest

MAP = pathlib.Path(__file__).parents[2] / "src" / "hakmem.map"
CIRCUMSTANCES = ["first", "preinit", "constructor", "vfork", "late"]


def patterns():
    """The names and patterns of the map's global section."""
    text = re.sub(r"/\*.*?\*/", "", MAP.read_text(encoding="utf-8"), flags=re.DOTALL)
    return re.search(r"global:(.*?)local:", text, re.DOTALL).group(1).replace(";", " ").split()


def exported(library):
    rows = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True,
                          capture_output=True, text=True).stdout.splitlines()
    return sorted({row.split()[2].split("@")[0] for row in rows if row.split()[1] != "A"})


def test_the_map_names_what_is_exported_and_nothing_else(library):
    names = exported(library)
    assert [each for each in patterns() if not fnmatch.filter(names, each)] == []
    assert [each for each in names
            if not any(fnmatch.fnmatchcase(each, one) for one in patterns())] == []


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
