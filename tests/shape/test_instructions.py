"""instructions.py leaves out what the start of a program takes, and finds a round too long."""

import instructions
import pytest


@pytest.fixture(autouse=True)
def counted(monkeypatch):
    """The start takes 90,000 instructions and each round 70, whatever its calls."""
    monkeypatch.setattr(instructions, "build", lambda folder: folder)
    monkeypatch.setattr(instructions, "count", lambda program, library, kind, rounds:
                        90_000 + 70 * rounds)
    monkeypatch.setattr(instructions.platform, "machine", lambda: "x86_64")


def test_the_start_does_not_count():
    assert instructions.per_round(None, None, "malloc_free") == 70


def test_a_round_that_is_too_long_is_found(monkeypatch, capsys):
    monkeypatch.setattr(instructions, "BUDGET", {"malloc_free": 69, "usable_size": 70})
    assert instructions.main(None) == 1
    assert capsys.readouterr().out.splitlines() == [
        "malloc_free: 70 instructions a round, at most 69: too many",
        "usable_size: 70 instructions a round, at most 70"]


def test_rounds_within_their_budgets_pass(monkeypatch):
    monkeypatch.setattr(instructions, "BUDGET", {"malloc_free": 70})
    assert instructions.main(None) == 0
