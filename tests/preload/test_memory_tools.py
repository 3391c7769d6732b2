"""Tools that bring an allocator of their own: they are in charge, and find what they find."""
import re
import shutil
import subprocess

import pytest

from conftest import clean_environment

OVERFLOW = """#include <stdio.h>
#include <stdlib.h>
int main(int argc, char **argv)
{
    char *volatile block = malloc(100);
    block[argc > 1 ? 100 : 99] = 7;
    printf("%d\\n", block[argc > 1 ? 100 : 99]);
    free(block);
    return argv[0] == NULL;
}
"""


def compiled(folder, compiler, *flags):
    """The program, or None where the compiler has no such runtime."""
    if not shutil.which(compiler):
        return None
    (folder / "overflow.c").write_text(OVERFLOW)
    done = subprocess.run([compiler, "-g", "-o", folder / "overflow", folder / "overflow.c",
                           *flags], capture_output=True, check=False)
    return folder / "overflow" if done.returncode == 0 else None


def told(program, *words, preload):
    return subprocess.run([*program, *words], env=clean_environment(LD_PRELOAD=preload),
                          capture_output=True, text=True, check=False, timeout=120)


@pytest.mark.parametrize("compiler, kind", [
    ("clang", "address"), ("clang", "memory"), ("clang", "thread"), ("gcc", "address"),
    ("gcc", "thread")])
def test_a_sanitised_program_is_left_to_its_runtime(shipped, tmp_path, compiler, kind):
    program = compiled(tmp_path, compiler, f"-fsanitize={kind}")
    if program is None or told([program], preload="").returncode != 0:
        pytest.skip(f"no {kind} sanitizer with {compiler}")
    preload = str(shipped)
    if compiler == "gcc":  # its runtime is a library, which has to be the first
        name = {"address": "libasan.so", "thread": "libtsan.so"}[kind]
        runtime = subprocess.run(["gcc", f"-print-file-name={name}"], capture_output=True,
                                 text=True, check=True).stdout.strip()
        preload = f"{runtime} {preload}"
    right = told([program], preload=preload)
    assert (right.returncode, right.stdout, right.stderr) == (0, "7\n", ""), right
    if kind == "address":
        assert "heap-buffer-overflow" in told([program], "x", preload=preload).stderr


@pytest.mark.skipif(not shutil.which("valgrind"), reason="no valgrind")
@pytest.mark.parametrize("way", ["preloaded", "linked"])
def test_memcheck_sees_the_programs_own_blocks(shipped, tmp_path, way):
    folder = shipped.parent
    flags = [f"-L{folder}", f"-Wl,-rpath,{folder}", "-lhakmem"] if way == "linked" else []
    program = compiled(tmp_path, "cc", *flags)
    preload = str(shipped) if way == "preloaded" else ""
    right = told(["valgrind", "-q", program], preload=preload)
    assert (right.returncode, right.stdout, right.stderr) == (0, "7\n", ""), right
    wrong = told(["valgrind", "-q", program], "x", preload=preload).stderr
    assert re.search(r"Invalid write of size 1", wrong)
    assert re.search(r"0 bytes after a block of size 100 alloc'd", wrong)
