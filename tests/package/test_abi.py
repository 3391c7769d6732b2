"""The binary interface of the shared library is the one that packaging/abi records."""
import os
import platform
import subprocess
import xml.etree.ElementTree as xml

import pytest
from files import ROOT, copy_checkout, run

RECORD = ROOT / "packaging/abi/libhakmem.so.0.abi"


def compare(tree, folder):
    """What tools/abi.sh says of the checkout in a folder. The test skips where it cannot tell."""
    done = subprocess.run([tree / "tools/abi.sh", "compare", folder], capture_output=True,
                          text=True, check=False)
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    return done


def test_names_and_types_are_the_recorded_ones(tmp_path):
    done = compare(ROOT, tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_the_library_that_ships_has_the_recorded_names(library):
    """Without the tools that know types. Names that only glibc has are missing with musl."""
    if platform.machine() != "x86_64" or "[libc.so.6]" not in run("readelf", "-dW", library):
        pytest.skip("the record is of x86-64 with glibc")
    recorded = set()
    for symbol in xml.parse(RECORD).getroot().iter("elf-symbol"):
        version = symbol.get("version")
        recorded.add(symbol.get("name") + (f"@@{version}" if version else ""))
    shown = run("nm", "-D", "--defined-only", library, env={**os.environ, "LC_ALL": "C"})
    rows = [line.split() for line in shown.splitlines()]
    found = {name for *_, kind, name in rows if kind != "A"}  # the version itself is such a name
    assert found == recorded


# How each would break programs, or say less than is there; what is then said.
CHANGES = {
    "a name goes": ("src/hakmem.map", "etext;", "etext; hakmem_idle;",
                    "1 Removed function"),
    "a structure changes": ("include/hakmem.h", "uint64_t purged;", "uint32_t purged;",
                            "hakmem_statistics"),
    "a name is new": ("src/entry/extension.c", "PUBLIC const char *hakmem_version(void)",
                      "void hakmem_new(void);\nPUBLIC void hakmem_new(void) {}\n"
                      "PUBLIC const char *hakmem_version(void)", "hakmem_new"),
}


def test_each_change_is_seen(tmp_path):
    tree = tmp_path / "a tree"
    copy_checkout(tree, without=("bench/results/", "lab/", "docs/"))
    for what, (name, old, new, said) in CHANGES.items():
        text = (tree / name).read_text()
        assert old in text
        (tree / name).write_text(text.replace(old, new, 1))
        done = compare(tree, tmp_path / "an out")
        (tree / name).write_text(text)
        assert done.returncode == 1 and said in done.stdout, (what, done.stdout, done.stderr)
        assert len(done.stderr.splitlines()) == 1 and "tools/abi.sh write" in done.stderr
