"""An installed library for one C library on a system that has both: a program on the other is
refused with a line, and one on its own runs."""
import shutil
import struct
import subprocess

import pytest
from files import LEAKING, ROOT, UNAWARE, run

pytestmark = pytest.mark.skipif(not shutil.which("musl-gcc"), reason="no musl-gcc")


@pytest.fixture(scope="module")
def for_musl(built, tmp_path_factory):
    place = tmp_path_factory.mktemp("musl")
    run("cmake", "-G", "Ninja", "-S", ROOT, "-B", place / "out", "-DHAKMEM_LIBRARY_ONLY=ON",
        f"-DCMAKE_TOOLCHAIN_FILE={ROOT / 'cmake/musl.cmake'}")
    run("cmake", "--build", place / "out")
    run("cmake", "--install", place / "out", "--prefix", place / "usr")
    return place / "usr"


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    place = tmp_path_factory.mktemp("programs")
    for name, compiler, text in (("musl", "musl-gcc", UNAWARE), ("glibc", "cc", UNAWARE),
                                 ("leaking", "musl-gcc", LEAKING)):
        (place / f"{name}.c").write_text(text)
        run(compiler, "-fno-builtin", "-g", place / f"{name}.c", "-o", place / name)
    return place


def test_each_library_serves_programs_on_its_own_c_library(for_musl, prefix, programs):
    places = {"musl": for_musl, "glibc": prefix}
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


def test_a_program_is_found_by_its_name_and_a_script_is_let_through(for_musl, prefix, programs):
    done = subprocess.run([for_musl / "bin/hakmem", "run", "ls"], capture_output=True, text=True,
                          check=False)
    assert done.returncode == 1 and done.stderr.startswith("hakmem: ls runs on glibc, ")
    script = programs / "script"
    script.write_text(f"#!/bin/sh\nexec {programs / 'glibc'}\n")
    script.chmod(0o755)
    assert run(prefix / "bin/hakmem", "run", script) == "ours\n"


def test_leaks_on_musl_are_the_programs_own(for_musl, programs, hakmem):
    told = hakmem("leaks", programs / "leaking",
                  LIBHAKMEM=str(next(for_musl.rglob("libhakmem.so")))).stderr
    assert "1 block never freed, 1.2 KiB" in told and "inner" in told


def test_a_trace_on_musl_has_the_programs_calls(for_musl, programs, hakmem, tmp_path):
    told = hakmem("trace", "--out", tmp_path / "here", programs / "leaking",
                  LIBHAKMEM=str(next(for_musl.rglob("libhakmem.so")))).stderr
    trace, = (tmp_path / "here").iterdir()
    sizes = [each[1] for each in struct.iter_unpack("<QQQIHBB", trace.read_bytes())]
    assert trace.name in told and sizes.count(1234) == 1
