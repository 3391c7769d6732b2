"""The Python package: wheels are built from this checkout, their tags are true, and the command
runs a program."""
import importlib.util
import os
import re
import shutil
import subprocess
import venv
import zipfile
from pathlib import Path

import pytest
from files import LEAKING, ROOT, UNAWARE, clean_environment, run

ARM = ["qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"]
FINDING = """
#include <stdio.h>
#include <stdlib.h>
int main(void)
{
    void *places[] = {(void *)main, (void *)puts, stdout};
    for (int at = 0; at < 3; at++) {
        struct dl_find_object theirs = {0}, ours = {0};
        int found = _dl_find_object(places[at], &theirs);
        if (__wrap__dl_find_object(places[at], &ours) != found)
            return 1 + at;
        if (found == 0 && ours.dlfo_eh_frame != theirs.dlfo_eh_frame)
            return 10 + at;
    }
    struct dl_find_object none;
    return __wrap__dl_find_object(malloc(1), &none) == -1 ? 0 : 20;
}
"""

pytestmark = pytest.mark.usefixtures("built")


def environment_in(place, **settings):
    return clean_environment(PATH=f"{place / 'bin'}:{os.environ['PATH']}", **settings)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A virtual environment that can fetch packages."""
    place = tmp_path_factory.mktemp("environment")
    try:
        venv.create(place, with_pip=True)
    except (subprocess.CalledProcessError, SystemExit):  # Debian's venv ends the program
        pytest.skip("this Python has no ensurepip")
    fetched = subprocess.run([place / "bin/python", "-m", "pip", "install", "-q",
                              "scikit-build-core>=0.10", "ninja", "pyelftools", "protobuf"],
                             capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip("PyPI cannot be reached")
    return place


@pytest.fixture(scope="module")
def wheels(place, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheels")
    said = run(place / "bin/python", ROOT / "tools/wheel.py", folder, env=environment_in(place))
    assert sorted(said.split()) == sorted(str(path) for path in folder.iterdir())
    return {re.sub(r"^.*-(?:many|(musl))linux_\d+_\d+_", r"\1 ", path.stem).strip(): path
            for path in folder.iterdir()}


def test_the_wheel_runs_a_program(place, wheels):
    environment = environment_in(place)
    wheel = wheels[os.uname().machine]
    run(place / "bin/python", "-m", "pip", "install", "-q", "--no-index", wheel, env=environment)
    said = run(place / "bin/hakmem", "run", "mode=balanced", "--", place / "bin/python",
               "-c", "import os; print(os.environ['HAKMEM_MODE'], 'libhakmem' in "
               "open('/proc/self/maps').read())", env=environment)
    assert said == "balanced True\n"
    assert "malloc is HAKMEM's" in run(place / "bin/hakmem", "run", "--", place / "bin/python",
                                       ROOT / "examples/words.py", env=environment)
    assert run(place / "bin/hakmem", "--version", env=environment).startswith("hakmem ")


def test_a_checkout_is_installed_by_pip(place):
    environment = environment_in(place)
    run(place / "bin/python", "-m", "pip", "install", "-q", "--no-build-isolation", "--no-deps",
        "--force-reinstall", ROOT, env=environment)
    said = run(place / "bin/hakmem", "run", place / "bin/python", "-c",
               "print('libhakmem' in open('/proc/self/maps').read())", env=environment)
    assert said == "True\n"


def libraries_in(wheel, place):
    with zipfile.ZipFile(wheel) as files:
        return [files.extract(f"hakmem/{name}", place)
                for name in ("libhakmem.so", "librecorder.so")]


def test_each_tag_is_true(wheels, tmp_path):
    assert os.uname().machine in wheels
    for name, wheel in wheels.items():
        tag = re.fullmatch(r".*-(py3-none-(many|musl)linux_\d_(\d+)_(\w+))", wheel.stem)
        assert tag and tag[4] == name.split()[-1], wheel.name
        with zipfile.ZipFile(wheel) as files:
            assert files.testzip() is None
            about = next(name for name in files.namelist() if name.endswith("/WHEEL"))
            assert f"\nTag: {tag[1]}\n" in files.read(about).decode()
        libraries = libraries_in(wheel, tmp_path / name)
        wanted = run("readelf", "-dVW", *libraries)
        if tag[2] == "musl":
            assert "GLIBC" not in wanted and "[libc.so]" in wanted
        else:
            assert max(map(int, re.findall(r"GLIBC_2\.(\d+)", wanted))) <= int(tag[3])
            # 2.34 is the first whose libpthread and libdl are one with libc; no newer is needed.
            assert int(tag[3]) <= 34
        names = {"x86_64": "X86-64", "aarch64": "AArch64"}
        assert re.search(rf"Machine:.*{names[tag[4]]}", run("readelf", "-hW", libraries[0]))


def test_the_record_of_a_wheel_is_right(place, wheels):
    """As the tools of PyPI see it: sums, sizes and names."""
    for wheel in wheels.values():
        said = run(place / "bin/python", "-c", """
import base64, csv, hashlib, io, sys, zipfile
files = zipfile.ZipFile(sys.argv[1])
record = next(name for name in files.namelist() if name.endswith("/RECORD"))
rows = {row[0]: row[1:] for row in csv.reader(io.StringIO(files.read(record).decode()))}
assert sorted(rows) == sorted(files.namelist())
for name, (digest, size) in rows.items():
    data = files.read(name)
    found = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
    assert name == record or (digest, size) == ("sha256=" + found, str(len(data))), name
print("right")""", wheel)
        assert said == "right\n"


def test_the_one_for_arm_runs_a_program(wheels, tmp_path):
    if "aarch64" not in wheels or os.uname().machine == "aarch64":
        pytest.skip("no cross compiler, or this is the processor")
    library = libraries_in(wheels["aarch64"], tmp_path)[0]
    (tmp_path / "program.c").write_text(UNAWARE)
    run("aarch64-linux-gnu-gcc", "-fno-builtin", tmp_path / "program.c", "-o", tmp_path / "program")
    assert run(*ARM, "-E", f"LD_PRELOAD={library}", tmp_path / "program") == "ours\n"
    assert subprocess.run([*ARM, tmp_path / "program"], capture_output=True, text=True,
                          check=False).stdout == "not\n"


def test_the_one_for_musl_runs_a_program(wheels, tmp_path):
    if not shutil.which("musl-gcc"):
        pytest.skip("no musl-gcc")
    library = libraries_in(wheels[f"musl {os.uname().machine}"], tmp_path)[0]
    (tmp_path / "program.c").write_text(UNAWARE)
    run("musl-gcc", "-fno-builtin", tmp_path / "program.c", "-o", tmp_path / "program")
    assert run(tmp_path / "program", env=clean_environment(LD_PRELOAD=library)) == "ours\n"


def test_call_stacks_are_whole(place, wheels, compiled, tmp_path):
    """The unwinder works with the function that stands for _dl_find_object."""
    library = libraries_in(wheels[os.uname().machine], tmp_path)[0]
    compiled(LEAKING, "-g", "-O1")
    done = subprocess.run([place / "bin/python", "-m", "hakmem.command", "leaks", "./program"],
                          cwd=tmp_path, capture_output=True, text=True, check=False,
                          env=environment_in(place, PYTHONPATH=ROOT / "python",
                                             LIBHAKMEM=library))
    assert all(name in done.stderr for name in ("inner", "outer", "main")), done.stderr


def test_objects_are_found_without_the_function_of_a_recent_c_library(compiled):
    if "_dl_find_object" not in Path("/usr/include/dlfcn.h").read_text():
        pytest.skip("this C library has nothing to compare with")
    source = (ROOT / "packaging/python/find_object.c").read_text()
    run(compiled("#define _GNU_SOURCE\n#include <dlfcn.h>\n#define dlsym(handle, name) NULL\n"
                 + source + FINDING, "-std=c17", "-Wall", "-Wextra", "-Werror"))


def test_a_library_that_no_tag_allows_is_refused(tmp_path):
    loader = importlib.util.spec_from_file_location("wheel_tool", ROOT / "tools/wheel.py")
    tool = importlib.util.module_from_spec(loader)
    loader.loader.exec_module(tool)
    run("sh", "-c", "echo 'int strange;' | cc -shared -fPIC -xc - -o libstrange.so -Wl,-soname,"
        "libstrange.so.1; echo 'extern int strange; int *place(void) { return &strange; }' | "
        "cc -shared -fPIC -xc - -x none -o library.so libstrange.so", cwd=tmp_path)
    with pytest.raises(SystemExit, match="libstrange.so.1, which no manylinux tag allows"):
        tool.platform_tag(tmp_path / "library.so")


def test_the_target_fetches_what_it_lacks():
    """make wheel has pip fetched where a bare python3 has none."""
    table = (ROOT / "tools/setup.sh").read_text()
    assert re.search(r"^pip +has_modules pip +python3-pip +pip$", table, re.MULTILINE)
    assert re.search(r"^wheel:.*\n\t@tools/setup.sh pip ", (ROOT / "Makefile").read_text(),
                     re.MULTILINE)
