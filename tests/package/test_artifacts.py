"""Everything of a release: made by one command from a clean clone, with sums that are signed. The
source archive builds and is tested without a repository and without network."""
import os
import re
import shutil
import subprocess

import pytest
from files import ROOT, VERSION, clean_environment, copy_checkout, run

NEEDS = ("debian", "aarch64", "musl", "cargo", "pip", "cmake", "ninja")
EXPECTED = [
    "Containerfile", "SHA256SUMS", "SHA256SUMS.asc", "conanfile.py",
    f"hakmem-malloc-{VERSION}.crate", f"hakmem-{VERSION}.tar.gz",
    *(f"hakmem-{VERSION}-py3-none-{tag}.whl" for tag in (
        "manylinux_aarch64", "manylinux_x86_64", "musllinux_x86_64")),
    "hakmem.spec",
    *(f"{name}_{VERSION}_{processor}.deb" for processor in ("amd64", "arm64")
      for name in ("hakmem", "hakmem-dbgsym", "libhakmem-dev", "libhakmem0",
                   "libhakmem0-dbgsym")),
]


@pytest.fixture(scope="module")
def clone(tmp_path_factory):
    """A repository in which the files as they are were committed."""
    for need in NEEDS:
        if subprocess.run([ROOT / "tools/setup.sh", "--has", need], check=False).returncode != 0:
            pytest.skip(f"no {need}: tools/setup.sh {need}")
    if os.uname().machine != "x86_64":
        pytest.skip("a release is made on x86-64")
    tree = tmp_path_factory.mktemp("artifacts") / "clone"
    copy_checkout(tree, without=())
    git = ["git", "-C", tree, "-c", "user.name=A Name", "-c", "user.email=a@example.org"]
    run("git", "init", "-q", tree)
    run(*git, "add", "--all")
    run(*git, "commit", "-q", "-m", "As they are")
    return tree


def make(clone, **settings):
    environment = clean_environment(PATH=f"{ROOT}/.venv/bin:{os.environ['PATH']}", **settings)
    return subprocess.run(["make", "-s", "artifacts"], cwd=clone, capture_output=True, text=True,
                          check=False, env=environment)


@pytest.fixture(scope="module")
def artifacts(clone, tmp_path_factory):
    """The folder, with sums that a key of this test has signed. PyPI has what builds a wheel."""
    fetched = subprocess.run(["python3", "-m", "pip", "download", "-q", "--no-deps",
                              "-d", tmp_path_factory.mktemp("fetched"), "scikit-build-core>=0.10"],
                             capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip("PyPI cannot be reached")
    keys = tmp_path_factory.mktemp("keys")
    keys.chmod(0o700)
    gpg = ["gpg", "--homedir", keys, "--batch", "--quiet"]
    if not shutil.which("gpg"):
        pytest.skip("no gpg")
    run(*gpg, "--passphrase", "", "--quick-generate-key", "A Name <a@example.org>", "ed25519")
    try:
        done = make(clone, GNUPGHOME=keys)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stderr == "" and "is signed" in done.stdout
        run(*gpg, "--verify", clone / "out/artifacts/SHA256SUMS.asc",
            clone / "out/artifacts/SHA256SUMS")
    finally:
        subprocess.run(["gpgconf", "--homedir", keys, "--kill", "all"], check=False)
    return clone / "out/artifacts"


def test_everything_is_there_and_sums_are_right(artifacts):
    found = {re.sub(r"linux_\d+_\d+_", "linux_", path.name) for path in artifacts.iterdir()}
    assert found == set(EXPECTED)
    run("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS", cwd=artifacts)
    assert len((artifacts / "SHA256SUMS").read_text().splitlines()) == len(EXPECTED) - 2


def test_the_archive_builds_and_is_tested_without_a_repository_and_network(artifacts, tmp_path):
    run("tar", "xzf", artifacts / f"hakmem-{VERSION}.tar.gz", "-C", tmp_path)
    tree = tmp_path / f"hakmem-{VERSION}"
    assert not (tree / ".git").exists() and (tree / "docs/hakmem-options.7").exists()
    alone = ["unshare", "--net"] if os.getuid() == 0 else ["unshare", "--net", "--map-root-user"]
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode != 0:
        alone = []  # a sandbox allows no other network; what is built stays the same
    environment = clean_environment(PATH=f"{ROOT}/.venv/bin:{os.environ['PATH']}")
    run(*alone, "make", "-s", "release", cwd=tree, env=environment)
    said = run(*alone, "ctest", "--test-dir", "out/release", "--no-tests=error", "-R",
               "^release/(api/|model/|tidy)", cwd=tree, env=environment)
    assert "100% tests passed" in said
    run(*alone, "make", "-s", "install", f"PREFIX={tmp_path / 'prefix'}", cwd=tree, env=environment)
    assert run(tmp_path / "prefix/bin/hakmem", "run", "echo", "works") == "works\n"


def instructions(file):
    lines = [line for line in file.read_text().splitlines() if line and not line.startswith("#")]
    return [tuple(line.split(" ", 1)) for line in lines]


def test_the_image_runs_each_program_on_the_library(artifacts, tmp_path):
    """What the Containerfile says is done to a copy of this system, which stands for the image."""
    steps = instructions(artifacts / "Containerfile")
    assert [word for word, _ in steps] == ["FROM", "COPY", "RUN", "ENV"]
    (_, image), (_, copied), (_, command), (_, setting) = steps
    assert re.fullmatch(r"debian:[a-z]+-slim", image)
    pattern, place = copied.split()
    packages = list(artifacts.glob(pattern))
    assert len(packages) == 2
    (tmp_path / "root").mkdir()
    script = "\n".join([
        "set -e",
        'mount -t tmpfs none "$1" && mkdir "$1/upper" "$1/work" "$1/root" || exit 77',
        'mount -t overlay none -o "lowerdir=/,upperdir=$1/upper,workdir=$1/work" "$1/root" '
        "|| exit 77",
        'mount -t proc none "$1/root/proc" || exit 77',
        'root=$1/root place=$2 command=$3 setting=$4; shift 4',
        'mount -t tmpfs -o mode=1777 none "$root/tmp"; cp "$@" "$root$place"',
        'chroot "$root" sh -c "$command" >&2',
        'test -z "$(ls "$root$place")"',
        'exec chroot "$root" env "$setting" cat /proc/self/maps'])
    done = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, "sh",
                           tmp_path / "root", place, command, setting, *packages],
                          capture_output=True, text=True, check=False, env=clean_environment())
    if done.returncode == 77 or os.getuid() != 0 or not shutil.which("dpkg"):
        pytest.skip("this takes root, dpkg and file systems that lie on others")
    assert done.returncode == 0, done.stderr
    assert f"/libhakmem.so.{VERSION}" in done.stdout


def test_without_a_key_one_line_says_so(clone, tmp_path):
    """The end of the script alone: what comes before takes minutes."""
    script = (clone / "tools/artifacts.sh").read_text()
    end = script[script.index("(cd \"$to\" && sha256sum"):]
    (tmp_path / "to").mkdir()
    (tmp_path / "to/file").touch()
    (tmp_path / "keys").mkdir(mode=0o700)
    for key in ({}, {"GPG_KEY": "nobody"}):
        done = subprocess.run(["bash", "-c", f"set -euo pipefail\nto=to\nsay() {{ echo \"$1\"; }}\n"
                               f"{end}"], cwd=tmp_path, capture_output=True, text=True, check=False,
                              env=clean_environment(GNUPGHOME=tmp_path / "keys", **key))
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        assert done.stdout.count("is not signed: gpg has no secret key") == 1
        assert not (tmp_path / "to/SHA256SUMS.asc").exists()


def test_what_an_earlier_release_has_left_is_not_among_it(tmp_path):
    """With programs that stand for those that build, and leave what they find in out."""
    tools = {"Makefile": "recipes:\n\tmkdir -p out/recipes/rpm\n\ttouch out/recipes/rpm/spec "
                         "out/hakmem-2.0.0.tar.gz\n",
             "CMakeLists.txt": "project(hakmem VERSION 2.0.0 LANGUAGES C)\n",
             ".gitignore": "/out/\n", "packaging/container/Containerfile": "",
             "tools/artifacts.sh": (ROOT / "tools/artifacts.sh").read_text(),
             "tools/deb.sh": "#!/bin/sh\nmkdir -p out/deb && touch out/deb/a.deb\n",
             "tools/wheel.py": "import pathlib\npathlib.Path('out/wheel').mkdir()\n"
                               "pathlib.Path('out/wheel/a.whl').touch()\n",
             "bin/cargo": "#!/bin/sh\nmkdir -p out/crate/package\n"
                          "touch out/crate/package/hakmem-malloc-2.0.0.crate\n"}
    for name, text in tools.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    git = ["git", "-C", tmp_path, "-c", "user.name=A Name", "-c", "user.email=a@example.org"]
    run("git", "init", "-q", tmp_path)
    run(*git, "add", "--all")
    run(*git, "commit", "-q", "-m", "As they are")
    (tmp_path / "out/crate/package").mkdir(parents=True)
    for old in ("hakmem-1.9.0.tar.gz", "crate/package/hakmem-malloc-1.9.0.crate"):
        (tmp_path / "out" / old).touch()
    run(tmp_path / "tools/artifacts.sh", env=clean_environment(
        PATH=f"{tmp_path / 'bin'}:{os.environ['PATH']}", GNUPGHOME=tmp_path))
    assert {path.name for path in (tmp_path / "out/artifacts").iterdir()} == {
        "Containerfile", "SHA256SUMS", "a.deb", "a.whl", "hakmem-2.0.0.tar.gz",
        "hakmem-malloc-2.0.0.crate", "spec"}


def test_a_tree_with_changes_is_refused(clone):
    (clone / "new").touch()
    done = subprocess.run([clone / "tools/artifacts.sh"], capture_output=True, text=True,
                          check=False)
    (clone / "new").unlink()
    assert done.returncode == 1 and "git status" in done.stderr
