"""The recipes of packaging/ for the archive of this checkout, built by their own tools."""
import os
import re
import shutil
import subprocess

import pytest
from files import LINKED, ROOT, VERSION, copy_checkout, run

SYSTEMS = ("conan", "rpm")


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program}")


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
    """For an archive of the files as they are, not as they were committed."""
    place = tmp_path_factory.mktemp("recipes") / "hakmem"
    copy_checkout(place / f"hakmem-{VERSION}", without=("bench/results/", "lab/"))
    (place / "out").mkdir()
    run("tar", "czf", f"out/hakmem-{VERSION}.tar.gz", f"hakmem-{VERSION}", cwd=place)
    tree = place / f"hakmem-{VERSION}"
    (tree / "out").symlink_to(place / "out")
    run(tree / "tools/recipes.sh")
    return place / "out/recipes"


def test_there_is_one_for_each_system_and_nothing_is_left_open(recipes):
    assert sorted(path.name for path in recipes.iterdir()) == sorted(SYSTEMS)
    for path in recipes.rglob("*"):
        if path.is_file():
            text = path.read_text()
            assert not re.search(r"@[A-Z0-9]+@", text), path
            assert VERSION in text, path


def test_the_archive_is_asked_for_by_name(recipes):
    shutil.move(recipes.parent / f"hakmem-{VERSION}.tar.gz", recipes.parent / "elsewhere")
    script = recipes.parents[1] / f"hakmem-{VERSION}/tools/recipes.sh"
    done = subprocess.run([script], capture_output=True, text=True, check=False)
    shutil.move(recipes.parent / "elsewhere", recipes.parent / f"hakmem-{VERSION}.tar.gz")
    assert done.returncode == 1 and "make dist" in done.stderr
    assert recipes.exists()


def test_conan_builds_a_package_that_a_program_uses(recipes, tmp_path):
    needs("conan")
    environment = {**os.environ, "CONAN_HOME": str(tmp_path / "conan")}
    run("conan", "profile", "detect", env=environment)
    for shared in (True, False):
        folder = tmp_path / f"shared-{shared}"
        folder.mkdir()
        (folder / "program.c").write_text(LINKED)
        (folder / "prefixed.c").write_text(
            "#include <hakmem.h>\n#include <hakmem_prefixed.h>\n#include <stdlib.h>\n"
            "int main(void) { return !hakmem_owns(hk_malloc(9)) || hakmem_owns(malloc(9)); }\n")
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.21)\nproject(user LANGUAGES C)\n"
            "find_package(hakmem REQUIRED)\nadd_executable(program program.c)\n"
            f"target_link_libraries(program hakmem::{'hakmem' if shared else 'static'})\n"
            "target_compile_options(program PRIVATE -fno-builtin)\n"
            "add_executable(prefixed prefixed.c)\n"
            "target_link_libraries(prefixed hakmem::prefixed)\n")
        (folder / "conanfile.txt").write_text(
            f"[requires]\nhakmem/{VERSION}\n[options]\nhakmem/*:shared={shared}\n"
            "[generators]\nCMakeDeps\nCMakeToolchain\nVirtualRunEnv\n")
        run("conan", "create", recipes / "conan", "-o", f"hakmem/*:shared={shared}",
            env=environment)
        run("conan", "install", ".", "-of", "out", cwd=folder, env=environment)
        run("sh", "-c", ". out/conanrun.sh && cmake -S . -B out -DCMAKE_BUILD_TYPE=Release"
            " -DCMAKE_TOOLCHAIN_FILE=out/conan_toolchain.cmake && cmake --build out"
            " && out/program && out/prefixed", cwd=folder, env=environment)
    licences = [path for path in (tmp_path / "conan").rglob("licenses/LICENSE")]
    assert len(licences) == 2, "one in each package"


def test_rpmbuild_makes_the_three_packages(recipes, tmp_path):
    needs("rpmbuild")
    # --nodeps: what the build needs is here by other packages than those of rpm.
    run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {tmp_path}",
        "--define", f"_sourcedir {recipes.parent}", recipes / "rpm/hakmem.spec")
    files = {}
    for package in tmp_path.glob("RPMS/*/*.rpm"):
        name = re.sub(rf"-{VERSION}.*", "", package.name)
        files[name] = run("rpm", "-qlp", "--nosignature", package)
    assert sorted(files) == ["hakmem", "hakmem-devel", "hakmem-libs"]
    assert "/usr/bin/hakmem\n" in files["hakmem"]
    assert f"libhakmem.so.{VERSION}\n" in files["hakmem-libs"]
    assert "hakmem.h\n" in files["hakmem-devel"] and "libhakmem.a\n" in files["hakmem-devel"]
    command = next(tmp_path.glob(f"RPMS/*/hakmem-{VERSION}*.rpm"))
    assert f"- {VERSION}-1\n" in run("rpm", "-qp", "--nosignature", "--changelog", command)
    assert "/README.md\n" in run("rpm", "-qdp", "--nosignature", command)
    recommended = run("rpm", "-qp", "--nosignature", "--recommends", command).split()
    assert {"python3", "python3-pyelftools", "python3-protobuf"} <= set(recommended)
    root = tmp_path / "root"
    root.mkdir()
    for package in tmp_path.glob("RPMS/*/hakmem-*.rpm"):
        if "devel" not in package.name:
            run("sh", "-c", f"rpm2archive - < '{package}' | tar xz -C '{root}'")
    assert run(root / "usr/bin/hakmem", "run", "--", "echo", "works") == "works\n"


def test_with_an_address_the_archive_is_fetched_from_there(recipes, tmp_path):
    copy = tmp_path / "checkout"
    for name in ("tools", "packaging"):
        shutil.copytree(ROOT / name, copy / name)
    shutil.copy(ROOT / "CMakeLists.txt", copy)
    (copy / "out").mkdir()
    shutil.copy(recipes.parent / f"hakmem-{VERSION}.tar.gz", copy / "out")
    run(copy / "tools/recipes.sh", env={
        **os.environ, "URL": f"https://example.org/hakmem-{VERSION}.tar.gz",
        "HOMEPAGE": "https://example.org", "MAINTAINER": "Some Body <somebody@example.org>"})
    made = copy / "out/recipes"
    for name in ("conan/conanfile.py", "rpm/hakmem.spec"):
        assert f"https://example.org/hakmem-{VERSION}.tar.gz" in (made / name).read_text(), name
    assert "Some Body <somebody@example.org>" in (made / "rpm/hakmem.spec").read_text()


def test_each_system_has_a_command_in_the_page():
    page = (ROOT / "packaging/README.md").read_text()
    rows = re.findall(r"^\| [^|`]+ \| `[^|]*out/recipes[^|]*` \|", page, re.MULTILINE)
    assert len(rows) == len(SYSTEMS)
    for system in SYSTEMS:
        assert f"out/recipes/{system}" in page


def test_the_command_says_what_it_lacks_on_any_system(built, tmp_path):
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    command = (built / "package/hakmem").read_text().replace("/usr/bin/python3", "/no/python3")
    (tmp_path / "hakmem").write_text(command)
    done = subprocess.run(["sh", tmp_path / "hakmem", "why", "1"], check=False,
                          capture_output=True, text=True,
                          env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    assert done.returncode == 1 and len(done.stderr.splitlines()) == 1
    assert "needs python3" in done.stderr and "apt" not in done.stderr
