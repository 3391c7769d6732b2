"""The folder of results: rounds land whole, damage is cut or told in one line, names fit."""

import csv
import os
from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.measure import allocators, ledger, rounds
from hakmem_lab.measure.ledger import Ledger, Row
from hakmem_lab.measure.subject import Cell, Subject

BOTH = [allocators.hakmem(), allocators.system()]
NAP = Cell("nap", "own", Subject(("sleep", "0.01")))


def row(allocator: str, number: int, cell: str = "nap") -> Row:
    return Row("t", cell, "own", "x", allocator, number, "ok", cost_ns=1.0)


def filled(folder: Path, count: int) -> Path:
    """Rounds of both allocators; gives the file."""
    kept = Ledger(folder)
    for number in range(count):
        kept.append([row("hakmem", number), row("system", number)])
    return kept.file


def keys(rows: list[Row]) -> list[tuple[str, int]]:
    return [(each.allocator, each.round) for each in rows]


@pytest.mark.parametrize("cut", [1, 10, 40])
def test_half_a_round_at_the_end_is_measured_again(tmp_path: Path, cut: int) -> None:
    """Whatever the power cut left of it: half a line, or whole lines of half a round."""
    file = filled(tmp_path, 2)
    whole = file.read_bytes()
    lines = whole.splitlines(keepends=True)
    for text in (whole[:-cut], b"".join(lines[:-1])):
        file.write_bytes(text)
        kept = Ledger(tmp_path)
        rounds.measure_cell(NAP, BOTH, 3, kept)
        assert keys(kept.rows) == [(name, number) for number in range(3)
                                   for name in ("hakmem", "system")]
        assert keys(ledger.read_folder(tmp_path)) == keys(kept.rows)
        assert kept.rows[:2] == [row("hakmem", 0), row("system", 0)]


def test_an_allocator_that_failed_is_not_missed(tmp_path: Path) -> None:
    kept = Ledger(tmp_path)
    kept.append([Row("t", "nap", "own", "x", "hakmem", 0, "died"), row("system", 0)])
    kept.append([row("system", 1)])
    rounds.measure_cell(NAP, BOTH, 2, kept)
    assert keys(kept.rows) == [("hakmem", 0), ("system", 0), ("system", 1)]


def test_an_interrupt_in_the_middle_of_writing_takes_the_round_back(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = filled(tmp_path, 1)
    before, kept = file.read_bytes(), Ledger(tmp_path)

    def interrupted(*_: object, **__: object) -> None:
        with file.open("ab") as damaged:
            damaged.write(b"half a li")
        raise KeyboardInterrupt

    monkeypatch.setattr(kept, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kept.append([row("hakmem", 1)])
    assert file.read_bytes() == before and len(kept.rows) == 2


def test_one_run_at_a_time_writes_to_a_folder(tmp_path: Path) -> None:
    with ledger.locked(tmp_path / "r"):
        with pytest.raises(LabError, match="another run is writing"), ledger.locked(tmp_path / "r"):
            pass
    with ledger.locked(tmp_path / "r"):
        assert not os.listdir(tmp_path / "r")


def test_a_long_name_has_a_log_of_its_own(tmp_path: Path) -> None:
    """Two names that differ at the end only, beyond what a file name may have."""
    names = ["x" * 300 + end for end in "ab"] + ["\N{GREEK SMALL LETTER PI}" * 200]
    for name in names:
        rounds.measure_cell(Cell(name, "own", Subject(("echo", "said"))), BOTH[1:], 1,
                            Ledger(tmp_path))
    logs = sorted(path.name for path in (tmp_path / ledger.RAW).iterdir())
    assert logs == sorted(f"{rounds.log_name(name)}.log" for name in names) and len(logs) == 3
    assert rounds.log_name("tiny hot, 8 B x 1") == "tiny-hot--8-B-x-1"


def test_any_text_is_kept(tmp_path: Path) -> None:
    odd = row("hakmem", 0, 'comma, "quote", \N{GREEK SMALL LETTER PI}')
    Ledger(tmp_path).append([odd])
    assert Ledger(tmp_path).rows == [odd]
    with (tmp_path / ledger.RESULTS).open(newline="", encoding="utf-8") as lines:
        assert next(csv.reader(lines)) == ledger.COLUMNS


@pytest.mark.parametrize("text", ["", "{", "[1]", "7"])
def test_a_damaged_object_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "plan.json").write_text(text)
    with pytest.raises(LabError, match="plan.json is damaged"):
        ledger.read_object(tmp_path / "plan.json")
