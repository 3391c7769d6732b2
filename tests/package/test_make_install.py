"""`make install` and `make uninstall`: folders, rights, the loader, separate debug information."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from files import ROOT, run


@pytest.fixture(scope="module")
def build(built, tmp_path_factory):
    """A build folder of its own, since installing configures it, with what has been built."""
    folder = tmp_path_factory.mktemp("build")
    run("cmake", "-S", ROOT, "-B", folder, "-DHAKMEM_LIBRARY_ONLY=ON")
    for path in [*built.glob("libhakmem*"), *built.glob("librecorder*")]:
        if re.search(r"\.(a|so)[\d.]*$", path.name):
            shutil.copy(path, folder, follow_symlinks=False)
    return folder


@pytest.fixture
def make(build, tmp_path):
    """Runs the script of both targets, with an ldconfig that notes that it was called; it ends with
    the status."""
    fake = tmp_path / "bin/ldconfig"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho called >> {tmp_path}/ldconfig\ncat {tmp_path}/known || :\n")
    fake.chmod(0o755)

    def run_script(target, status=0, **settings):
        names = ("PREFIX", "DESTDIR", "DEBUG")
        environment = {name: text for name, text in os.environ.items() if name not in names}
        environment |= {"BUILD": str(build), "PATH": f"{fake.parent}:{os.environ['PATH']}"}
        done = subprocess.run([ROOT / "tools/install.sh", target], capture_output=True, text=True,
                              check=False, env=environment | {
                                  name: str(value) for name, value in settings.items()})
        assert done.returncode == status, done.stderr
        return done

    return run_script


def files_in(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*")
                  if path.is_symlink() or path.is_file())


def test_what_was_installed_goes_and_nothing_else(make, tmp_path):
    prefix = tmp_path / "prefix"
    (prefix / "bin").mkdir(parents=True)
    (prefix / "bin/other").touch()
    make("install", PREFIX=prefix, DEBUG=1)
    assert "bin/hakmem" in files_in(prefix)
    make("uninstall", PREFIX=prefix)
    assert files_in(prefix) == ["bin/other"]
    assert not [path for path in prefix.rglob("*hakmem*")]
    again = make("uninstall", PREFIX=prefix, status=1)
    assert again.stderr == f"uninstall: nothing was installed in {prefix} by make install\n"


def test_below_usr_libraries_lie_where_the_system_has_them(make, tmp_path):
    root = tmp_path / "root"
    done = make("install", PREFIX="/usr", DESTDIR=root)
    library = next(root.rglob("libhakmem.so"))
    if Path("/etc/debian_version").exists():
        names = run("cc", "-print-multiarch").strip()
        assert library.parent == root / "usr/lib" / names
    folder = f"/{library.parent.relative_to(root)}"
    assert f"install: run ldconfig once the library is in {folder}\n" in done.stdout
    assert not (tmp_path / "ldconfig").exists()
    assert str(library) in run(root / "usr/bin/hakmem", "run", "readlink", "-f", library)
    maps = run(root / "usr/bin/hakmem", "run", "cat", "/proc/self/maps")
    assert str(library.resolve()) in maps
    make("uninstall", PREFIX="/usr", DESTDIR=root)
    assert files_in(root) == []


def test_the_loader_is_told_or_the_user_is(make, tmp_path):
    prefix = tmp_path / "prefix"
    done = make("install", PREFIX=prefix)
    folder = next(prefix.rglob("libhakmem.so")).parent
    assert f"ldconfig does not know {folder}: programs linked with -lhakmem need" in done.stdout
    if os.getuid() == 0:
        assert (tmp_path / "ldconfig").exists()
        (tmp_path / "lib").symlink_to(folder)  # as /lib is to /usr/lib
        (tmp_path / "known").write_text("\tlibhakmem.so.0 (libc6) => /false/libhakmem.so.0\n"
                                        f"\tlibhakmem.so.0 => {tmp_path}/lib/libhakmem.so.0\n")
        done = make("install", PREFIX=prefix)
        assert "ldconfig" not in done.stdout


def test_a_place_without_the_right_to_write_is_one_line(make):
    done = make("install", PREFIX="/dev/null/prefix", status=1)
    line, = done.stderr.splitlines()
    assert "you may not write to /dev/null/prefix" in line
    assert "make install PREFIX=$HOME/.local" in line


def test_debug_information_in_a_file_of_its_own(make, tmp_path):
    def sections(path):
        return set(re.findall(r"\] (\.\S+)", run("readelf", "-SW", path)))

    prefix = tmp_path / "prefix"
    for _ in range(2):
        make("install", PREFIX=prefix, DEBUG=1)
        library = next(prefix.rglob("libhakmem.so")).resolve()
        debug = library.parent / ".debug" / f"{library.name}.debug"
        assert ".debug_info" in sections(debug) and ".debug_info" not in sections(library)
        assert ".gnu_debuglink" in sections(library)
    make("install", PREFIX=prefix)
    assert ".debug_info" in sections(library)
