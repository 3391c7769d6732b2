"""A user's own suites: the format, mimalloc-bench's layout, and the one line when it is wrong."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.measure import inputs, ledger, programs
from hakmem_lab.measure.subject import OWN_GROUP

SCRIPT = """#!/bin/sh
test "$1" = fine && exit 0
exit 3
"""


def suite_of(folder: Path, text: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / programs.OF_SUITE).write_text(text)
    return folder


def program(path: Path, text: str = SCRIPT) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def hakmem(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hakmem_lab", *words], capture_output=True,
                          text=True, check=False, timeout=120)


def test_a_suite_is_measured_on_all_allocators_with_proof(tmp_path: Path) -> None:
    folder = suite_of(tmp_path / "mine", """
        folder = "bin"
        [[program]]
        name = "sorted words"
        title = "Sorts a text."
        command = "sort {input:text,50}"
        [[program]]
        name = "a script"
        command = "./script fine"
        settings = {KIND = "any"}
        [[program]]
        name = "built"
        build = "cp script {built}"
        command = "{built} fine"
        [[program]]
        name = "not there"
        command = "./nonesuch"
    """)
    program(folder / "bin/script")
    done = hakmem("suite", "-n", "1", "--allocators", "hakmem,system", "--out", tmp_path / "rows",
                  folder)
    assert done.returncode == 0, done.stderr
    assert "skipped: not there: ./nonesuch not found" in done.stdout
    rows = ledger.read_folder(tmp_path / "rows")
    assert {row.cell for row in rows} == {"sorted words", "a script", "built"}
    assert {row.allocator for row in rows} == {"hakmem", "system"}
    assert all(row.is_ok and row.family == "mine" and row.group == OWN_GROUP for row in rows)
    assert {row.owner for row in rows if row.allocator == "hakmem"} == {"libhakmem.so"}
    assert str(tmp_path) not in "".join(row.command for row in rows)
    again = hakmem("resume", tmp_path / "rows")
    assert again.returncode == 0, again.stderr


def test_mimalloc_bench_is_known_by_its_layout(tmp_path: Path) -> None:
    (tmp_path / "bench/espresso").mkdir(parents=True)
    for name in ("cfrac", "espresso", "sh6bench", "barnes"):
        program(tmp_path / "out/bench" / name)
    found, left_out = programs.suite(tmp_path)
    assert [cell.name for cell in found] == ["cfrac", "sh6benchN"]
    assert {cell.family for cell in found} == {"mimalloc-bench"}
    assert found[1].subject.command == ("./sh6bench", str(2 * (os.cpu_count() or 1)))
    assert found[1].subject.folder == str(tmp_path / "out/bench")
    assert ("larsonN", "./larson not found") in left_out
    assert ("espresso", "../../bench/espresso/largest.espresso not found") in left_out
    (tmp_path / "bench/espresso/largest.espresso").touch()
    assert "espresso" in [cell.name for cell in programs.suite(tmp_path)[0]]


def test_a_suite_of_its_own_goes_before_the_layout(tmp_path: Path) -> None:
    program(tmp_path / "out/bench/cfrac")
    (tmp_path / "bench").mkdir()
    suite_of(tmp_path, '[[program]]\nname = "mine"\ncommand = "true"')
    assert [cell.name for cell in programs.suite(tmp_path)[0]] == ["mine"]


@pytest.mark.parametrize(("text", "said"), [
    ("[[program", "at end of document"),
    ("nonesuch = 1", "at the top there are only 'folder' and"),
    ("program = 1", "not iterable"),
    ("program = [1]", "at the top there are only"),
    ("", "no program of the suite can be run .it names none"),
    ('[[program]]\nname = "a"', "program 1 needs a name and a command"),
    ('[[program]]\nname = "a"\ncommand = "true"\nneed = []', "no key 'need'; there are name, "),
    ('[[program]]\nname = "a"\ncommand = "true"\nneeds = "b"', "needs = 'b' is of the wrong type"),
    ('[[program]]\nname = "a"\ncommand = "true"\nneeds = [1]', "is of the wrong type"),
    ('[[program]]\nname = "a"\ncommand = "true"\nsettings = {A = 1}', "is of the wrong type"),
    ('[[program]]\nname = "a"\ncommand = "true \'"', "No closing quotation"),
    ('[[program]]\nname = "a"\ncommand = "true"\n' * 2, "two programs have the same name"),
    ('[[program]]\nname = "a"\ncommand = "./no"', "a: ./no not found"),
])
def test_what_cannot_be_meant_is_one_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(LabError, match=said) as caught:
        programs.suite(suite_of(tmp_path, text))
    assert "\n" not in str(caught.value)


def test_a_folder_without_a_suite_is_refused(tmp_path: Path) -> None:
    done = hakmem("suite", tmp_path)
    assert done.returncode != 0
    assert "has no hakmem-suite.toml and is no build of mimalloc-bench" in done.stderr
    assert "no such" in hakmem("suite", tmp_path / "nonesuch").stderr.lower() \
        or "has no hakmem-suite.toml" in hakmem("suite", tmp_path / "nonesuch").stderr


def test_an_unknown_input_and_a_failed_build_are_told(tmp_path: Path) -> None:
    suite_of(tmp_path, '[[program]]\nname = "a"\ncommand = "true"\nbuild = "echo no >&2; false"')
    made, left_out = programs.ready(programs.suite(tmp_path)[0])
    assert (made, left_out) == ([], [("a", "its build failed: no")])
    suite_of(tmp_path, '[[program]]\nname = "a"\ncommand = "cat {input:poem,3}"')
    with pytest.raises(LabError, match="no input is called 'poem'; there are text, "):
        programs.ready(programs.suite(tmp_path)[0])


def test_what_is_built_follows_its_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (inputs, programs):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(inputs, "FOLDER", tmp_path / "out/inputs")
    suite_of(tmp_path, """[[program]]
        name = "a"
        build = "echo made >> made.log; cp {root}/source {built}"
        command = "cat {built}"
    """)
    seen = []
    for text in ("one", "one", "other"):
        (tmp_path / "source").write_text(text)
        word = programs.ready(programs.suite(tmp_path)[0])[0][0].subject.command[1]
        seen.append((tmp_path / word.removeprefix("{root}/")).read_text())
    assert seen == ["one", "one", "other"]
    assert (tmp_path / "made.log").read_text() == "made\n" * 2
