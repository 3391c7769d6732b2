"""The recipes of packaging/ for the archive of this checkout. Each is built by its own tool where
that is here; where it is not, its language has to take it."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(hakmem VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
SYSTEMS = ("alpine", "conan", "homebrew", "nix", "rpm", "spack", "vcpkg")


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False, **more)
    assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout


def needs(*programs):
    for program in programs:
        if not shutil.which(program):
            pytest.skip(f"no {program}")


@pytest.fixture(scope="module")
def recipes(tmp_path_factory):
    """For an archive of the files as they are, not as they were committed."""
    needs("git")
    place = tmp_path_factory.mktemp("recipes") / "hakmem"
    names = run("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard",
                cwd=ROOT).split("\0")
    for name in names:
        if name and (ROOT / name).is_file() and not name.startswith(("bench/results/", "lab/")):
            target = place / f"hakmem-{VERSION}" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
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
        (folder / "program.c").write_text(
            "#include <hakmem.h>\n#include <stdlib.h>\n"
            "int main(void) { return !hakmem_owns(malloc(100)); }\n")
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.21)\nproject(user LANGUAGES C)\n"
            "find_package(hakmem REQUIRED)\nadd_executable(program program.c)\n"
            f"target_link_libraries(program hakmem::{'hakmem' if shared else 'static'})\n"
            "target_compile_options(program PRIVATE -fno-builtin)\n")
        (folder / "conanfile.txt").write_text(
            f"[requires]\nhakmem/{VERSION}\n[options]\nhakmem/*:shared={shared}\n"
            "[generators]\nCMakeDeps\nCMakeToolchain\nVirtualRunEnv\n")
        run("conan", "create", recipes / "conan", "-o", f"hakmem/*:shared={shared}",
            env=environment)
        run("conan", "install", ".", "-of", "out", cwd=folder, env=environment)
        run("sh", "-c", ". out/conanrun.sh && cmake -S . -B out -DCMAKE_BUILD_TYPE=Release"
            " -DCMAKE_TOOLCHAIN_FILE=out/conan_toolchain.cmake && cmake --build out"
            " && out/program", cwd=folder, env=environment)


def test_rpmbuild_makes_the_three_packages(recipes, tmp_path):
    needs("rpmbuild")
    (tmp_path / "SOURCES").mkdir()
    shutil.copy(recipes.parent / f"hakmem-{VERSION}.tar.gz", tmp_path / "SOURCES")
    # --nodeps: what the build needs is here by other packages than those of rpm.
    run("rpmbuild", "-bb", "--nodeps", "--define", f"_topdir {tmp_path}",
        recipes / "rpm/hakmem.spec")
    files = {}
    for package in tmp_path.glob("RPMS/*/*.rpm"):
        name = re.sub(rf"-{VERSION}.*", "", package.name)
        files[name] = run("rpm", "-qlp", "--nosignature", package)
    assert sorted(files) == ["hakmem", "hakmem-devel", "hakmem-libs"]
    assert "/usr/bin/hakmem\n" in files["hakmem"]
    assert f"libhakmem.so.{VERSION}\n" in files["hakmem-libs"]
    assert "hakmem.h\n" in files["hakmem-devel"] and "libhakmem.a\n" in files["hakmem-devel"]
    root = tmp_path / "root"
    root.mkdir()
    for package in tmp_path.glob("RPMS/*/hakmem-*.rpm"):
        if "devel" not in package.name:
            run("sh", "-c", f"rpm2archive - < '{package}' | tar xz -C '{root}'")
    assert run(root / "usr/bin/hakmem", "run", "--", "echo", "works") == "works\n"


@pytest.mark.parametrize("name", ["conan/conanfile.py", "spack/package.py"])
def test_recipes_in_python_compile(recipes, name):
    compile((recipes / name).read_text(), name, "exec")


def test_the_manifest_of_vcpkg_is_json(recipes):
    manifest = json.loads((recipes / "vcpkg/vcpkg.json").read_text())
    assert manifest["version"] == VERSION
    assert "vcpkg_cmake_install()" in (recipes / "vcpkg/portfile.cmake").read_text()


@pytest.mark.parametrize("checker,name", [
    (("ruby", "-c"), "homebrew/hakmem.rb"),
    (("sh", "-n"), "alpine/APKBUILD"),
    (("nix-instantiate", "--parse"), "nix/default.nix"),
])
def test_their_languages_take_the_others(recipes, checker, name):
    needs(checker[0])
    run(*checker, recipes / name)


def test_alpine_builds_from_the_sums_that_stand_there(recipes):
    needs("sha512sum")
    text = (recipes / "alpine/APKBUILD").read_text()
    wanted = re.search(r'sha512sums="(\w+)', text)[1]
    archive = recipes.parent / f"hakmem-{VERSION}.tar.gz"
    assert run("sha512sum", archive).split()[0] == wanted

