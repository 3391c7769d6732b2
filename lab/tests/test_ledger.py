"""The folder of results: rounds land whole, damage is cut or told in one line, names fit."""

import csv
import gzip
import os
from pathlib import Path

import broken
import pytest
from hakmem_lab import LabError
from hakmem_lab.commands.cli import CONSOLE
from hakmem_lab.measure import allocators, environment, ledger, rounds
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.measure.ledger import Ledger, Row
from hakmem_lab.measure.plan import Plan
from hakmem_lab.measure.subject import Cell, Subject

BOTH = [allocators.hakmem(), allocators.system()]
NAP = Cell("nap", "own", Subject(("sleep", "0.01")))


def measure(cell: Cell, contestants: list[allocators.Allocator], count: int,
            kept: Ledger) -> None:
    """Adds rounds until there are so many."""
    own = rounds.CellRounds(cell, contestants, kept, Plan(seed=1))
    while own.next < count and not own.is_over:
        own.measure()


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
        measure(NAP, BOTH, 3, kept)
        assert keys(kept.rows) == [(name, number) for number in range(3)
                                   for name in ("hakmem", "system")]
        assert keys(ledger.read_folder(tmp_path)) == keys(kept.rows)
        assert kept.rows[:2] == [row("hakmem", 0), row("system", 0)]


def test_an_allocator_that_failed_is_not_missed(tmp_path: Path) -> None:
    kept = Ledger(tmp_path)
    kept.append([Row("t", "nap", "own", "x", "hakmem", 0, "died"), row("system", 0)])
    kept.append([row("system", 1)])
    measure(NAP, BOTH, 2, kept)
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
        measure(Cell(name, "own", Subject(("echo", "said"))), BOTH[1:], 1,
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


def published(folder: Path) -> Path:
    """A run of this checkout, as a repository holds it."""
    own = Campaign(folder / "run", "x", [NAP], BOTH, 1, plan=Plan(seed=1))
    own.run(CONSOLE)
    ledger.publish(own.folder, folder / "published")
    return folder / "published"


def edited(folder: Path, name: str, old: str, new: str) -> list[str]:
    """What is said when a file of the folder is another; as it was before afterwards."""
    file = folder / name
    is_packed = file.suffix == ".gz"
    before = file.read_bytes()
    text = (gzip.decompress(before) if is_packed else before).decode()
    assert old in text
    changed = text.replace(old, new).encode()
    file.write_bytes(gzip.compress(changed) if is_packed else changed)
    said = ledger.verify(folder)
    file.write_bytes(before)
    return said


def test_an_edited_row_is_found(tmp_path: Path) -> None:
    folder = published(tmp_path)
    assert ledger.verify(folder) == []
    assert edited(folder, "results.csv.gz", ",ok,", ",ok,1") == [
        "published: results.csv is not what was published"]
    assert edited(folder, "environment.json", '"hakmem": {', '"hakmem": { ') == [
        "published: environment.json is not what was published"]
    assert "curves.csv" in edited(folder, "curves.csv.gz", "nap", "map")[0]
    assert "seal" in edited(folder, "manifest.json", '"seal": "', '"seal": "0')[0]
    assert "cannot be verified" in edited(folder, "manifest.json", "{", "[")[0]
    assert ledger.verify(folder) == []


@broken.needs_history
def test_a_relabelled_commit_is_found(tmp_path: Path) -> None:
    """Also when the manifest is made anew: the sources of that commit are others."""
    folder = published(tmp_path)
    now, _ = environment.commit()
    log = environment.output_of("git", "log", "--format=%h", "--abbrev=10", "--", "src").split()
    other = next(each for each in log
                 if environment.source_of(each) != environment.source_of(now))
    for name in ("results.csv", "environment.json"):
        file = tmp_path / "run" / name
        file.write_text(file.read_text().replace(now, other))
    ledger.publish(tmp_path / "run", folder)
    assert ledger.verify(folder) == [
        f"published: hakmem was not built from the sources of commit {other}"]


def test_rows_of_another_library_are_found(tmp_path: Path) -> None:
    folder = published(tmp_path)
    own = environment.hash_of(allocators.hakmem().owner)
    run = tmp_path / "run" / "results.csv"
    run.write_text(run.read_text().replace(own, "0" * 16))
    ledger.publish(tmp_path / "run", folder)
    assert ledger.verify(folder) == ["published: rows of hakmem are of another library or commit "
                                     "than environment.json says"]


def test_a_folder_without_a_manifest_is_said_to_be_one(tmp_path: Path) -> None:
    filled(tmp_path / "r", 1)
    assert ledger.verify(tmp_path / "r") == ["r: no manifest"]
