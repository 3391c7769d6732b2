"""The version is set by one command, in each file that holds it and in no other place."""
import re
import shutil
import subprocess

import pytest
from files import ROOT, VERSION, copy_checkout, run

# What was measured or copied names versions of its own.
ELSEWHERE = (":!bench", ":!lab", ":!tests", ":!docs", ":!CHANGELOG.md", ":!packaging/abi")


@pytest.fixture
def clone(tmp_path):
    """A repository in which the files as they are were committed, with an entry to be dated."""
    tree = tmp_path / "clone"
    copy_checkout(tree)
    log = (tree / "CHANGELOG.md").read_text()
    if "\n## [Unreleased]\n" not in log:  # after a release, before the next change
        log = log.replace("\n## [", "\n## [Unreleased]\n\n## [", 1)
        (tree / "CHANGELOG.md").write_text(log)
    git = ["git", "-C", tree, "-c", "user.name=A Name", "-c", "user.email=a@example.org"]
    run("git", "init", "-q", tree)
    run(*git, "add", "--all")
    run(*git, "commit", "-q", "-m", "As they are")
    return tree


def version(tree, *words):
    return subprocess.run([tree / "tools/version.sh", *words], capture_output=True, text=True,
                          check=False)


def status(tree):
    return run("git", "-C", tree, "status", "--porcelain").split("\n")[:-1]


def test_each_file_gets_the_version_and_the_entry_a_date(clone):
    done = version(clone, "31.41.59")
    assert (done.returncode, done.stderr) == (0, "")
    changed = ("CHANGELOG.md", "CMakeLists.txt", "Cargo.toml", "include/hakmem.h")
    assert status(clone) == [f" M {name}" for name in changed]
    assert "project(hakmem VERSION 31.41.59 " in (clone / "CMakeLists.txt").read_text()
    assert '\nversion = "31.41.59"\n' in (clone / "Cargo.toml").read_text()
    header = (clone / "include/hakmem.h").read_text()
    assert re.findall(r"HAKMEM_VERSION_\w+ (\d+)", header) == ["31", "41", "59"]
    assert '/* "31.41.59", static. */' in header
    log = (clone / "CHANGELOG.md").read_text()
    assert re.search(r"^## \[31\.41\.59\] – \d{4}-\d\d-\d\d$", log, re.MULTILINE)
    assert "[Unreleased]" not in log


def test_the_old_version_is_left_nowhere(clone):
    version(clone, "31.41.59")
    left = subprocess.run(["git", "grep", "-nwF", VERSION, "--", ".", *ELSEWHERE], cwd=clone,
                          capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_the_version_of_now_may_be_released(clone):
    assert version(clone, VERSION).returncode == 0
    assert status(clone) == [" M CHANGELOG.md"]


def test_what_is_no_version_or_an_older_one_is_refused(clone):
    for words in ((), ("1.2",), ("1.2.3.4",), ("v1.2.3",), ("1.2.3-rc1",), ("01.2.3",), ("1.2.x",),
                  ("1.2.3", "1.2.4"), ("1.2.3\n",), ("",)):
        done = version(clone, *words)
        assert done.returncode == 1 and "three numbers" in done.stderr, words
    done = version(clone, "0.0.1")
    assert done.returncode == 1 and f"0.0.1 is older than {VERSION}" in done.stderr
    assert status(clone) == []


def test_a_tree_with_changes_is_refused(clone):
    (clone / "new").touch()
    done = version(clone, "31.41.59")
    assert done.returncode == 1 and "git status" in done.stderr
    (clone / "new").unlink()
    (clone / "LICENSE").write_text("")
    assert version(clone, "31.41.59").returncode == 1
    assert status(clone) == [" M LICENSE"]


def test_a_log_without_an_entry_and_a_folder_without_a_repository_are_refused(clone):
    version(clone, "31.41.59")
    run("git", "-C", clone, "-c", "user.name=A", "-c", "user.email=a@b.example", "commit", "-qam",
        "31.41.59")
    done = version(clone, "31.41.60")
    assert done.returncode == 1 and "[Unreleased]" in done.stderr
    shutil.rmtree(clone / ".git")
    done = version(clone, "31.41.60")
    assert done.returncode == 1 and "use a clone" in done.stderr


def test_each_command_takes_the_version_from_one_place():
    """A tool that makes something of a release reads CMakeLists.txt."""
    for name in ("tools/deb.sh", "tools/recipes.sh", "Makefile"):
        assert "project(hakmem VERSION" in (ROOT / name).read_text(), name
