"""An installed library for one C library on a system that has both: a program on the other is
refused with a line, and one on its own runs."""
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from files import run

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
extern bool hakmem_owns(const void *) __attribute__((weak));
void *volatile kept;
int main(void)
{
    kept = malloc(10);
    puts(hakmem_owns && hakmem_owns(kept) ? "ours" : "not");
    kept = 0;
    return 0;
}
"""

pytestmark = [
    pytest.mark.skipif(not os.environ.get("TESTED_BUILD"), reason="TESTED_BUILD is not set"),
    pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc"),
]


@pytest.fixture(scope="module")
def for_musl(tmp_path_factory):
    place = tmp_path_factory.mktemp("musl")
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", place / "out", "-DHAKMEM_LIBRARY_ONLY=ON",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake/musl.cmake'}")
    run("cmake", "--build", place / "out")
    run("cmake", "--install", place / "out", "--prefix", place / "usr")
    return place / "usr"


@pytest.fixture(scope="module")
def for_glibc(tmp_path_factory):
    place = tmp_path_factory.mktemp("glibc")
    run("cmake", "--install", os.environ["TESTED_BUILD"], "--prefix", place)
    return place


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    place = tmp_path_factory.mktemp("programs")
    (place / "program.c").write_text(PROGRAM)
    for name, compiler in (("musl", "musl-gcc"), ("glibc", "cc")):
        run(compiler, "-fno-builtin", "-g", place / "program.c", "-o", place / name)
    return place


def test_each_library_serves_programs_on_its_own_c_library(for_musl, for_glibc, programs):
    places = {"musl": for_musl, "glibc": for_glibc}
    for library, place in places.items():
        for program in places:
            done = subprocess.run([place / "bin/hakmem", "run", "--", programs / program],
                                  capture_output=True, text=True, check=False)
            if library == program:
                assert (done.returncode, done.stdout) == (0, "ours\n"), done.stderr
            else:
                assert (done.returncode, done.stdout) == (1, "")
                assert done.stderr.startswith(f"hakmem: {programs / program} runs on {program}")
                assert len(done.stderr.splitlines()) == 1


def test_a_program_is_found_by_its_name_and_a_script_is_let_through(for_musl, for_glibc, programs):
    done = subprocess.run([for_musl / "bin/hakmem", "run", "ls"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and done.stderr.startswith("hakmem: ls runs on glibc, ")
    script = programs / "script"
    script.write_text(f"#!/bin/sh\nexec {programs / 'glibc'}\n")
    script.chmod(0o755)
    assert run(for_glibc / "bin/hakmem", "run", script) == "ours\n"


def test_leaks_on_musl_are_the_programs_own(for_musl, programs):
    library = next(for_musl.rglob("libhakmem.so"))
    done = subprocess.run(["python3", "-m", "hakmem.command", "leaks", programs / "musl"],
                          capture_output=True, text=True, check=False,
                          env={**os.environ, "LIBHAKMEM": str(library),
                               "PYTHONPATH": str(ROOT / "python")})
    assert "1 block never freed, 10 B" in done.stderr and "main" in done.stderr
