"""A run that goes on after an interruption: the same plan, commit and allocators, or one line."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.commands import bench, compare
from hakmem_lab.measure import allocators, campaign, environment, ledger
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.commands.cli import CONSOLE
from hakmem_lab.measure.subject import Cell, Subject

NAP = Cell("nap", "own", Subject(("sleep", "0.01")))
HAKMEM = [sys.executable, "-m", "hakmem_lab"]


def resumed(folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*HAKMEM, "resume", str(folder)], capture_output=True,
                          text=True, check=False, timeout=60)


def run(folder: Path, count: int, names: str = "hakmem,system") -> ledger.Ledger:
    return Campaign(folder, "hakmem of a test", [NAP], allocators.choose(names), count).run(
        CONSOLE, {"runs": count})


def test_a_run_that_gets_sigterm_ends_with_130_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    command = [*HAKMEM, "bench", "-n", "20", "--allocators", "hakmem", "--no-programs", "--cells",
               "hand-over, ring of 2", "--busy-ok", "--out", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not (folder / "results.csv").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        said, complaint = process.communicate(timeout=60)
    assert (process.returncode, complaint) == (130, b"")
    assert b"resume" in said
    kept = ledger.read_folder(folder)
    assert {row.allocator for row in kept} == {"hakmem"}
    with ledger.locked(folder):
        assert "another run is writing" in resumed(folder).stderr
    assert resumed(folder).returncode == 0
    assert ledger.read_folder(folder)[:len(kept)] == kept
    assert len(ledger.read_folder(folder)) == 20


def test_another_commit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(tmp_path, 1)
    monkeypatch.setattr(environment, "commit", lambda: ("0123456789", False))
    with pytest.raises(LabError, match="checkout is at commit 0123456789: .* --out"):
        run(tmp_path, 2)
    assert len(ledger.read_folder(tmp_path)) == 2


def test_other_allocators_are_refused(tmp_path: Path) -> None:
    run(tmp_path, 1)
    with pytest.raises(LabError, match="was begun with hakmem, system; here are now hakmem"):
        run(tmp_path, 2, "hakmem")


@pytest.mark.parametrize("name", [campaign.PLAN, ledger.ENVIRONMENT])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"nonesuch": 1}', '{"allocators": 7}'])
def test_damage_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str,
                            text: str) -> None:
    monkeypatch.setattr(compare, "ready_allocators", lambda wanted, console: None)
    run(tmp_path, 1)
    (tmp_path / campaign.PLAN).write_text(json.dumps({"allocators": "hakmem,system"}))
    (tmp_path / name).write_text(text)
    with pytest.raises(LabError) as refused:
        bench.resume(tmp_path, CONSOLE)
    assert str(tmp_path) in str(refused.value) and "\n" not in str(refused.value)


def test_what_is_not_handed_over_is_said_once(tmp_path: Path,
                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HAKMEM_MODE", "minimal")
    monkeypatch.setenv("MALLOC_ARENA_MAX", "1")
    with CONSOLE.capture() as said:
        run(tmp_path, 1)
    assert said.get().count("HAKMEM_MODE, MALLOC_ARENA_MAX") == 1
