"""tools/setup.sh on a machine where nothing can be installed: a line each, or one clear error."""

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hakmem_lab import ROOT

TOOLS = ("bash", "sed", "cut", "xargs", "sort", "dirname", "cat", "ls", "id", "mkdir", "tail",
         "env", "realpath", "mktemp", "rm", "echo", "python3")


@pytest.fixture
def setup(tmp_path: Path) -> "Setup":
    return Setup(tmp_path)


class Setup:
    """A checkout on a machine with a shell and Python, no network and no root."""

    def __init__(self, place: Path) -> None:
        self.root, self.bin = place / "checkout", place / "bin"
        for name in ("tools/setup.sh", "tools/apt_unpack.sh", "tools/build.sh",
                     "tests/programs/packages.txt", "packaging/debian/control"):
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.root / name)
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or "")
        self.fake("id", "echo 1000")
        self.fake("python3", "exit 1")  # has no module, and can make no environment

    def fake(self, name: str, script: str) -> None:
        (self.bin / name).unlink(missing_ok=True)
        (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.bin / name).chmod(0o755)

    def __call__(self, *needs: str) -> subprocess.CompletedProcess[str]:
        return self.run("tools/setup.sh", *needs)

    def run(self, script: str, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([self.root / script, *words], capture_output=True,
                              text=True, check=False, env={"PATH": str(self.bin)}, timeout=60)


OPTIONAL = ("c++", "mypy", "ninja", "strace", "spin", "aarch64", "fuzzer", "debian", "peers",
            "programs")


def test_what_can_be_done_without_is_one_line_each(setup: Setup) -> None:
    done = setup(*OPTIONAL)
    assert done.returncode == 0, done
    for need in OPTIONAL:
        assert done.stdout.count(f"setup: no {need} here: ") == 1
    assert "strace here: tests that trace system calls are skipped\n" in done.stdout


@pytest.mark.parametrize("need", ["cmake", "pytest", "cli", "lab", "plots"])
def test_what_nothing_works_without_is_an_error(setup: Setup, need: str) -> None:
    done = setup("strace", need)
    assert done.returncode == 1
    line, = done.stderr.splitlines()
    assert line.startswith(f"setup: {need} is missing and could not be installed; as root: apt")
    assert "; or: pip install " in line
    assert not (setup.root / ".venv").exists()


def test_a_target_can_need_what_the_tests_can_do_without(setup: Setup) -> None:
    done = setup("--must", "debian")
    assert done.returncode == 1
    assert done.stderr == (
        "setup: debian is missing and could not be installed; as root: apt install "
        "build-essential debhelper lintian cmake ninja-build systemtap-sdt-dev\n")
    setup.fake("lintian", "exit 0")
    setup.fake("dpkg-checkbuilddeps", "exit 1")
    assert setup("--must", "debian").returncode == 1
    setup.fake("dpkg-checkbuilddeps", "exit 0")
    done = setup("--must", "debian")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_build_that_lacks_its_compiler_names_the_packages(setup: Setup) -> None:
    done = setup.run("tools/build.sh", "release")
    assert done.returncode == 1
    assert "cmake is missing and could not be installed" in done.stderr.splitlines()[-1]
    setup.fake("cmake", "echo cmake version 3.25.1")
    setup.fake("ninja", "exit 0")
    for preset, package in (("musl", "musl-tools"), ("aarch64", "qemu-user"), ("fuzz", "clang")):
        done = setup.run("tools/build.sh", preset)
        assert done.returncode == 1 and "CMake" not in done.stderr
        said = done.stderr.splitlines()[-1]
        assert said.startswith(f"build: out/{preset} needs ") and package in said


def test_root_without_a_network_is_no_worse_off(setup: Setup) -> None:
    setup.fake("id", "echo 0")
    setup.fake("apt-get", "exit 100")
    done = setup("strace")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("setup: installing with apt: strace\n"
                           "setup: no strace here: tests that trace system calls are skipped\n")


def test_a_machine_without_python_can_be_helped(setup: Setup) -> None:
    (setup.bin / "python3").unlink()
    setup.fake("id", "echo 0")
    setup.fake("apt-get", f"[ $1 != install ] || echo 'exit 0' > {setup.bin}/strace; "
               f"chmod +x {setup.bin}/strace")
    (setup.bin / "chmod").symlink_to(shutil.which("chmod") or "")
    done = setup("strace")
    assert (done.returncode, done.stdout) == (0, "setup: installing with apt: strace\n"), done


def test_only_root_asks_apt_to_install(setup: Setup) -> None:
    setup.fake("apt-get", f"echo \"$@\" >> {setup.bin}/asked")
    setup("strace")
    assert not (setup.bin / "asked").exists()
    setup.fake("id", "echo 0")
    setup("strace")
    assert "install -y" in (setup.bin / "asked").read_text()


def test_another_apt_that_is_at_work_is_waited_for(setup: Setup) -> None:
    """The lock of the packages is waited for by apt, that of the lists is asked for again."""
    (setup.bin / "sleep").symlink_to(shutil.which("sleep") or "")
    setup.fake("id", "echo 0")
    setup.fake("apt-get", f"echo \"$@\" >> {setup.bin}/asked; [ $1 = update ] || exit 0; "
               f"[ ! -e {setup.bin}/busy ] || exit 0; echo > {setup.bin}/busy; "
               "echo 'E: Could not get lock /var/lib/apt/lists/lock.' >&2; exit 100")
    setup("strace")
    asked = (setup.bin / "asked").read_text().splitlines()
    assert [line.split()[0] for line in asked[:3]] == ["update", "update", "install"]
    assert all("DPkg::Lock::Timeout=" in line for line in asked if line.startswith("install"))


def test_what_is_there_is_left_alone(setup: Setup) -> None:
    setup.fake("strace", "exit 0")
    done = setup("strace")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert os.listdir(setup.root) != [] and not (setup.root / ".venv").exists()


def test_without_ninja_make_builds(setup: Setup) -> None:
    """And what the other of both has configured is no obstacle."""
    setup.fake("cmake", f"echo cmake version 3.25.1; echo \"$@\" >> {setup.bin}/asked")
    setup.fake("nproc", "echo 2")
    setup.fake("grep", f"exec {shutil.which('grep')} \"$@\"")
    cache = setup.root / "out/release/CMakeCache.txt"

    def build() -> str:
        done = subprocess.run([setup.root / "tools/build.sh", "release"], capture_output=True,
                              text=True, check=False, env={"PATH": str(setup.bin)}, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        return (setup.bin / "asked").read_text().splitlines()[-2]

    assert build() == "--preset release -G Unix Makefiles"
    cache.write_text("CMAKE_GENERATOR:INTERNAL=Unix Makefiles\n")
    build()
    assert cache.exists()
    setup.fake("ninja", "exit 0")
    assert build() == "--preset release -G Ninja"
    assert not cache.exists()


@pytest.mark.skipif(shutil.which("flock") is None, reason="there is no flock here")
def test_a_build_waits_for_another_one_of_its_preset(setup: Setup) -> None:
    for tool in ("flock", "grep", "nproc"):
        (setup.bin / tool).unlink(missing_ok=True)
        (setup.bin / tool).symlink_to(shutil.which(tool) or "")
    asked = setup.root / "asked"
    setup.fake("cmake", 'echo cmake version 3.30.0; '
               f'case $1 in --version) ;; *) : > {asked} ;; esac')
    (setup.root / "out/release").mkdir(parents=True)
    with open(setup.root / "out/release/build.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with subprocess.Popen([setup.root / "tools/build.sh", "release"], text=True,
                              env={"PATH": str(setup.bin)}, stdout=subprocess.PIPE) as build:
            assert build.stdout is not None
            while "waits for another build of out/release" not in (line := build.stdout.readline()):
                assert line != ""
            assert not asked.exists()
            fcntl.flock(lock, fcntl.LOCK_UN)
            build.communicate(timeout=60)
    assert build.returncode == 0 and asked.exists()
