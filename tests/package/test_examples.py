"""The programs of examples/ compile by the command in their first comment and run on HAKMEM."""
import os
import re
import shutil
import signal
import subprocess

import pytest
from files import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.c*"))


@pytest.fixture(scope="module")
def environment(prefix, libraries):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config")
    return {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
            "LD_LIBRARY_PATH": str(libraries), "LIBRARY_PATH": str(libraries),
            "CPATH": str(prefix / "include")}


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda path: path.name)
def test_example(source, environment, tmp_path):
    if source.suffix == ".cpp" and not shutil.which("c++"):
        pytest.skip("no C++ compiler")
    command = re.search(r"^(?:// | \*)  +((?:cc|c\+\+) .*?) && (\./\S+)", source.read_text(),
                        re.MULTILINE)
    assert command, "the first comment says how it is compiled and run"
    shutil.copy(source, tmp_path)
    done = subprocess.run(f"{command[1]} && {command[2]}", shell=True, cwd=tmp_path,
                          env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout


HEADER_PROGRAM = """
#include <cstdio>
#include <vector>
#include "hakmem.hpp"
int main(int argc, char **)
{
    hakmem::heap heap;
    std::vector<int, hakmem::allocator<int>> list(heap);
    list.push_back(1);
    hakmem::resource memory(heap);
    std::pmr::vector<int> other(&memory);
    other.push_back(1);
    if (hakmem_heap_of(list.data()) != heap.get() || hakmem_heap_of(&other[0]) != heap.get())
        return 1;
    return argc > 1 ? heap.allocate(~0ul / 2) != nullptr : 0;
}
"""


def built_with(environment, folder, *flags):
    if not shutil.which("c++"):
        pytest.skip("no C++ compiler")
    (folder / "program.cpp").write_text(HEADER_PROGRAM)
    return subprocess.run(["c++", *flags, "program.cpp", "-o", "program", "-lhakmem"], cwd=folder,
                          env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("flags", [[], ["-std=c++20"], ["-fno-exceptions"],
                                   ["-fno-exceptions", "-fno-rtti"]], ids=" ".join)
def test_the_header_for_cpp_works_without_exceptions_and_rtti(environment, tmp_path, flags):
    done = built_with(environment, tmp_path, "-Wall", "-Wextra", "-Werror", *flags)
    assert done.returncode == 0, done.stderr
    for words in ([], ["fail"]):
        ran = subprocess.run([tmp_path / "program", *words], env=environment, check=False,
                             capture_output=True)
        assert ran.returncode == (-signal.SIGABRT if words else 0)


def test_the_header_for_cpp_names_the_standard_that_it_needs(environment, tmp_path):
    done = built_with(environment, tmp_path, "-std=c++14", "-fsyntax-only")
    assert done.returncode != 0
    first = next(line for line in done.stderr.splitlines() if "error" in line)
    assert "hakmem.hpp needs C++17" in first
