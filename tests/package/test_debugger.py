"""What gdb knows of the library: types of what programs call, so that its calls into them work.

gdb puts a text such as "abc" into memory that it asks malloc of the program for. With debug
information that has no types, malloc returns nothing there, and a library without any works."""
import shutil
import subprocess

import pytest
from files import clean_environment, run

pytestmark = pytest.mark.skipif(not shutil.which("gdb"), reason="no gdb")

TYPES = {
    "malloc": "void *(size_t)",
    "calloc": "void *(size_t, size_t)",
    "realloc": "void *(void *, size_t)",
    "aligned_alloc": "void *(size_t, size_t)",
    "free": "void (void *)",
}
NOT_HERE = "Couldn't write extended state status"  # a kernel without what gdb calls functions by


@pytest.fixture(params=["built", "installed", "with its debug information apart"])
def seen(request, library, built, tmp_path):
    """The library in each place where a debugger meets it."""
    if request.param == "built":
        return library
    run("cmake", "--install", built, "--prefix", tmp_path)
    if request.param != "installed":
        run("cmake", "--install", built, "--prefix", tmp_path, "--component", "debug")
    return next(tmp_path.rglob("libhakmem.so")).resolve()


def gdb(*commands, program):
    words = [word for command in commands for word in ("-ex", command)]
    done = subprocess.run(["gdb", "-q", "-nx", "-batch", *words, program], check=False,
                          capture_output=True, text=True, env=clean_environment())
    return done.stdout, done.stdout + done.stderr


def test_functions_have_their_types(seen):
    said, everything = gdb(*(f"ptype {name}" for name in TYPES), program=seen)
    assert said.splitlines() == [f"type = {kind}" for kind in TYPES.values()], everything


def test_a_debugger_calls_functions_of_the_program(seen, compiled):
    program = compiled("#include <stdlib.h>\nint main(void) { free(malloc(10)); return 0; }\n",
                       "-g", "-O0")
    said, everything = gdb(f"set environment LD_PRELOAD {seen}", "set startup-with-shell off",
                           "break main", "run", 'print (char *)strdup("abc")', "print malloc(10)",
                           "print malloc_usable_size(malloc(10))", program=program)
    if NOT_HERE in everything:
        pytest.skip("gdb can call no function on this kernel")
    assert '"abc"' in said and "= (void *) 0x" in said and "\n$3 = 16" in said, everything
