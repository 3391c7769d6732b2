"""The Rust crate: its own tests, with the sources of this checkout; and its version is ours."""
import json
import os
import shutil
import subprocess

import pytest
from files import ROOT, VERSION

pytestmark = pytest.mark.usefixtures("built")


def test_the_version_is_that_of_the_library():
    assert f'\nversion = "{VERSION}"\n' in (ROOT / "Cargo.toml").read_text()


WHO = {f"GIT_{role}_{what}": "somebody@example.org" for role in ("AUTHOR", "COMMITTER")
       for what in ("NAME", "EMAIL")}


def commit_all(folder):
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run(["git", *words], cwd=folder, env={**os.environ, **WHO}, check=True)


@pytest.fixture(scope="module")
def cargo(tmp_path_factory):
    """cargo, offline, in a repository that has what a checkout has and ignores what it ignores.
    What one test has built is there for the next."""
    if not shutil.which("cargo"):
        pytest.skip("no cargo")
    crate = tmp_path_factory.mktemp("rust") / "crate"
    for name in ("src", "include", "packaging/rust", "examples"):
        shutil.copytree(ROOT / name, crate / name)
    for name in ("Cargo.toml", "LICENSE", "README.md", ".gitignore", "tools/prefix.sh",
                 "lab/stranger/LICENSE"):
        (crate / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name.replace("lab/stranger/", ""), crate / name)
    commit_all(crate)

    def run(*words, **more):
        done = subprocess.run(["cargo", *words], cwd=crate, capture_output=True, text=True,
                              env={**os.environ, "CARGO_NET_OFFLINE": "true", **more}, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_its_own_tests(cargo):
    cargo("test", "--quiet")


def test_the_example_runs_on_it(cargo):
    said = cargo("run", "--quiet", "--example", "global")
    assert "in a block of HAKMEM: true" in said and "given back: 0" not in said


def test_the_version_of_rust_that_it_names_is_up_to_no_other_crate(cargo):
    packages = json.loads(cargo("metadata", "--format-version", "1"))["packages"]
    assert [package["name"] for package in packages] == ["hakmem-malloc"]
    assert packages[0]["rust_version"] == "1.63"  # that of Debian 12, tried there


def test_a_package_is_made_after_its_tests_and_has_what_it_needs_and_no_more(cargo):
    cargo("build", "--quiet")
    cargo("package", "--quiet")  # builds what it has packed; refused if anything is not committed
    packed = set(cargo("package", "--list").split())
    assert {"LICENSE", "src/malloc.c", "tools/prefix.sh", "packaging/rust/README.md"} <= packed
    tops = {name.split("/")[0] for name in packed}
    assert tops <= {"LICENSE", "src", "include", "tools", "packaging", "examples", "Cargo.toml",
                    "Cargo.lock", "Cargo.toml.orig", ".cargo_vcs_info.json"}


def test_a_registry_would_take_it(cargo, tmp_path):
    """An empty registry of this test's own, in which nothing can be changed."""
    index = tmp_path / "index"
    index.mkdir()
    (index / "config.json").write_text('{"dl": "file:///nowhere", "api": "https://api.invalid"}')
    commit_all(index)
    cargo("publish", "--quiet", "--dry-run", "--no-verify", "--index", f"file://{index}",
          CARGO_HOME=str(tmp_path / "home"), CARGO_NET_OFFLINE="false")


def test_another_compiler_is_used_and_one_that_is_not_there_is_named(cargo, tmp_path):
    compiler = tmp_path / "compiler"
    compiler.write_text(f'#!/bin/sh\necho called >> {tmp_path}/calls\nexec cc "$@"\n')
    compiler.chmod(0o755)
    cargo("build", CC=str(compiler))
    assert (tmp_path / "calls").exists()
    with pytest.raises(AssertionError, match="nonesuch: .* needs a C compiler"):
        cargo("build", CC="nonesuch")
