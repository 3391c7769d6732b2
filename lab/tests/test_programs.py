"""The programs of the matrix: their cells are sound, their inputs repeat, and each one runs.

Nothing here looks at the time a program takes.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from hakmem_lab import LabError, ROOT
from hakmem_lab.judge import digest
from hakmem_lab.measure import inputs, programs
from hakmem_lab.measure.subject import Cell, Subject

FOUND, LEFT_OUT = programs.cells()
NAMES = sorted([cell.name for cell in FOUND] + [name for name, _ in LEFT_OUT])
PLACEHOLDERS = {"{root}", "{port}", "{folder}", "{built}"}


def all_words(subject: Subject) -> list[str]:
    return [*subject.command, *subject.load, subject.until, *subject.settings.values()]


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def filled(words: tuple[str, ...], folder: Path, port: int) -> list[str]:
    return [word.replace("{root}", str(ROOT)).replace("{folder}", str(folder))
            .replace("{port}", str(port)) for word in words]


def answers(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def test_there_are_many_programs_and_a_third_has_threads() -> None:
    assert len(NAMES) == len(set(NAMES)) >= 30
    assert sum("threads" in name for name in NAMES) >= len(NAMES) // 4
    assert all(reason and "\n" not in reason for _, reason in LEFT_OUT)


def test_a_cell_is_told_by_one_sentence() -> None:
    for cell in FOUND:
        assert cell.family == "programs"
        assert (cell.group == "made") == (cell.name in digest.MADE)
        assert re.fullmatch(r"\w.*[^.]\.", cell.title), cell.name


def test_the_quick_selection_is_a_part_with_less_input() -> None:
    quick, left_out = programs.cells(quick=True)
    assert len(quick) + len(left_out) == 3
    whole = {cell.name: cell.subject for cell in FOUND}
    for cell in quick:
        assert whole[cell.name].command != cell.subject.command


def test_words_hold_known_placeholders_and_no_path_of_this_machine() -> None:
    for cell in FOUND:
        for word in all_words(cell.subject):
            rest = programs.INPUT.sub("", word)
            assert set(re.findall(r"\{.*?\}", rest)) <= PLACEHOLDERS, cell.name
            assert str(ROOT) not in word, cell.name
        for word in re.findall(r"\{root\}/([\w./-]+)", cell.subject.words()):
            assert (ROOT / word).is_file(), cell.name


def test_a_missing_program_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: None)
    found, left_out = programs.cells()
    assert all("/" in cell.subject.command[0] for cell in found)  # those are looked for by path
    assert ("redis", "redis-server and redis-benchmark not found") in left_out
    assert sorted([cell.name for cell in found] + [name for name, _ in left_out]) == NAMES


@pytest.fixture
def own_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Inputs and what is built lie in a fresh folder."""
    monkeypatch.setattr(inputs, "ROOT", tmp_path / "root")
    monkeypatch.setattr(inputs, "FOLDER", tmp_path / "root/out/inputs")
    return tmp_path / "root"


@pytest.mark.parametrize("kind", inputs.KINDS)
def test_an_input_has_the_same_bytes_twice(kind: str) -> None:
    first = inputs.KINDS[kind](20, 1)
    inputs.vocabulary.cache_clear()
    assert inputs.KINDS[kind](20, 1) == first
    assert inputs.KINDS[kind](20, 2) != first
    assert inputs.KINDS[kind](21, 1) != first


def test_an_input_is_made_once_and_whole(own_root: Path) -> None:
    word = inputs.ready("text", 5)
    made = own_root / word.removeprefix("{root}/")
    assert made.read_text() == inputs.text(5, 1)
    made.write_text("kept")
    assert inputs.ready("text", 5) == word
    assert made.read_text() == "kept"
    assert list(made.parent.iterdir()) == [made]


def test_a_folder_that_another_process_made_first_stays(own_root: Path) -> None:
    target = own_root / "out/inputs/built"
    with inputs.unfinished(target) as place:
        for folder in (place, target):
            folder.mkdir()
            (folder / "program").write_text(folder.name)
    assert [path.name for path in target.parent.iterdir()] == ["built"]
    assert (target / "program").read_text() == "built"


def test_a_folder_that_cannot_be_made_is_one_line(own_root: Path) -> None:
    own_root.mkdir()
    (own_root / "out").touch()
    with pytest.raises(LabError, match="out/inputs") as caught:
        inputs.ready("text", 5)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", NAMES)
def test_it_runs_on_the_systems_malloc(name: str, tmp_path: Path) -> None:
    cells = [cell for cell in FOUND if cell.name == name]
    if not cells:
        pytest.skip(dict(LEFT_OUT)[name])
    made, left_out = programs.ready(cells)
    assert not left_out
    assert not re.search(r"\{(built|input)", str(made[0].subject))
    run_once(made[0], tmp_path)


def run_once(cell: Cell, folder: Path) -> None:
    subject, port = cell.subject, free_port()
    environment = {**os.environ, **subject.settings}
    environment.pop("LD_PRELOAD", None)
    command = filled(subject.command, folder, port)
    with (folder / "output").open("w+b") as output:
        program = subprocess.Popen(command, env=environment, cwd=folder, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT)
        try:
            if subject.is_server:
                while not answers(port):
                    assert program.poll() is None, (folder / "output").read_text()
                    time.sleep(0.01)
                subprocess.run(filled(subject.load, folder, port), stdout=subprocess.DEVNULL,
                               timeout=subject.limit_s, check=True)
                program.terminate()
            status = program.wait(timeout=subject.limit_s)
        finally:
            program.kill()
            program.wait()
        ends_well = (0, -signal.SIGTERM) if subject.is_server else (0,)
        assert status in ends_well, (folder / "output").read_text(errors="replace")
