"""The packages for Debian, built as `make deb` builds them: what lintian says, and what they do.
Those for 64-bit Arm are asked for where their cross compiler is."""
import json
import os
import re
import shutil
import subprocess

import pytest
from files import LINKED, ROOT, UNAWARE, clean_environment, copy_checkout, run

PACKAGES = ("hakmem", "libhakmem-dev", "libhakmem0")


def has(need):
    return subprocess.run([ROOT / "tools/setup.sh", "--has", need], check=False).returncode == 0


@pytest.fixture(scope="module")
def packages(tmp_path_factory):
    """A clone in which the files as they are were committed, what was said, and the packages."""
    if not has("debian"):
        pytest.skip("what packages for Debian are built with is not here: tools/setup.sh debian")
    tree = tmp_path_factory.mktemp("deb") / "clone"
    copy_checkout(tree)
    git = ["git", "-C", tree, "-c", "user.name=A Name", "-c", "user.email=a@example.org"]
    run("git", "init", "-q", tree)
    run(*git, "add", "--all")
    run(*git, "commit", "-q", "-m", "As they are")
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("DEB", "CFLAGS", "LD_"))}
    for_all = [run("dpkg", "--print-architecture").strip(), *["arm64"] * has("aarch64")]
    environment["ARCHITECTURES"] = " ".join(dict.fromkeys(for_all))
    done = subprocess.run([tree / "tools/deb.sh"], capture_output=True, text=True, check=False,
                          env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done, sorted((tree / "out/deb").glob("*.deb"))


@pytest.fixture(scope="module")
def here(packages):
    """Those for this processor."""
    processor = run("dpkg", "--print-architecture").strip()
    return [each for each in packages[1] if each.stem.endswith(f"_{processor}")]


@pytest.fixture(scope="module")
def for_arm(packages):
    """Those for another processor than this."""
    if not has("aarch64") or os.uname().machine == "aarch64":
        pytest.skip("no cross compiler, or this is the processor")
    return [each for each in packages[1] if each.stem.endswith("_arm64")]


def unpack(packages, root):
    for package in packages:
        run("dpkg-deb", "-x", package, root)
    return root


@pytest.fixture(scope="module")
def unpacked(here, tmp_path_factory):
    return unpack(here, tmp_path_factory.mktemp("root"))


def names(files):
    return sorted(file.name.split("_")[0] for file in files)


def test_lintian_has_nothing_to_say(packages, here):
    done, files = packages
    assert names(here) == sorted([*PACKAGES, "hakmem-dbgsym", "libhakmem0-dbgsym"])
    assert done.stderr == ""
    assert sorted(done.stdout.splitlines()) == [f"out/deb/{each.name}" for each in files]


def test_the_command_runs_a_program_on_the_library(unpacked, tmp_path):
    library = next(unpacked.glob("usr/lib/*/libhakmem.so.0")).resolve()
    file = tmp_path / "stats.json"
    maps = run(unpacked / "usr/bin/hakmem", "run", f"stats={file}", "cat", "/proc/self/maps")
    assert str(library) in maps
    assert json.loads(file.read_text())["statistics"]["mapped"] > 0


def test_a_program_links_with_what_the_dev_package_has(unpacked, compiled):
    libraries = next(unpacked.glob("usr/lib/*/libhakmem.so")).parent
    for words in ("-lhakmem", libraries / "libhakmem.a"):
        run(compiled(LINKED, f"-I{unpacked / 'usr/include'}", f"-L{libraries}", words, "-pthread"),
            env={**os.environ, "LD_LIBRARY_PATH": str(libraries)})


def test_those_for_arm_have_what_those_of_this_processor_have(here, for_arm, unpacked, tmp_path):
    assert names(for_arm) == names(here)
    root = unpack(for_arm, tmp_path / "root")
    library = next(root.glob("usr/lib/aarch64-linux-gnu/libhakmem.so.0")).resolve()
    assert "AArch64" in run("readelf", "-hW", library)
    shown = [{line.split()[-1] for line in run("nm", "-D", "--defined-only", each).splitlines()}
             for each in (library, next(unpacked.glob("usr/lib/*/libhakmem.so.0")).resolve())]
    assert shown[0] == shown[1]
    package = next(each for each in for_arm if each.name.startswith("libhakmem0_"))
    needs = run("dpkg-deb", "-f", package, "Architecture", "Depends")
    assert re.fullmatch(r"Architecture: arm64\nDepends: libc6 \(>= [\d.]+\)\n", needs), needs
    (tmp_path / "program.c").write_text(UNAWARE)
    run("aarch64-linux-gnu-gcc", "-fno-builtin", tmp_path / "program.c", "-o", tmp_path / "program")
    assert run("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu", "-E", f"LD_PRELOAD={library}",
               tmp_path / "program") == "ours\n"


def test_they_install_in_order_and_leave_nothing_behind(here, tmp_path):
    """By dpkg, into a folder of its own. Tools that root has run leave no file either."""
    if os.getuid() != 0:
        pytest.skip("not root")
    root = tmp_path / "root"
    (root / "var/lib/dpkg/updates").mkdir(parents=True)
    (root / "var/lib/dpkg/info").mkdir()
    (root / "var/lib/dpkg/status").touch()
    dpkg = ["dpkg", f"--root={root}", "--force-depends", "--force-script-chrootless"]
    run(*dpkg, "-i", *(each for each in here if "dbgsym" not in each.name))
    assert all((root / "var/lib/dpkg/info").glob(f"{name}*.list") for name in PACKAGES)
    done = subprocess.run([root / "usr/bin/hakmem", "stat", "--help"], env=clean_environment(),
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    run(*dpkg, "--purge", *PACKAGES)
    assert not (root / "usr").exists() or not any(root.glob("usr/**/*hakmem*"))


def test_a_folder_without_a_repository_is_told_in_one_line(tmp_path):
    for name in ("Makefile", "CMakeLists.txt", "tools/deb.sh", "tools/recipes.sh",
                 "tools/setup.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / "tools/setup.sh").write_text("#!/bin/sh\n")
    for target in ("deb", "dist", "recipes"):
        done = subprocess.run(["make", "-s", target], cwd=tmp_path, capture_output=True, text=True,
                              check=False)
        assert done.returncode != 0
        said = [line for line in done.stderr.splitlines() if not line.startswith("make")]
        assert len(said) == 1 and "no git repository: use a clone" in said[0], (target, said)
