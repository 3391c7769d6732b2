"""What `hakmem ab` compares, and what it refuses before anything is built."""

from dataclasses import replace
from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.commands import sweep
from hakmem_lab.measure import allocators, builds
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.commands.cli import CONSOLE


def test_combinations_of_options_are_all_compared() -> None:
    found = sweep.variants("purge_delay_ms=0,1;junk=off,on", CONSOLE)
    assert [each.name for each in found] == [
        "purge_delay_ms=0 junk=off", "purge_delay_ms=0 junk=on",
        "purge_delay_ms=1 junk=off", "purge_delay_ms=1 junk=on"]


@pytest.mark.parametrize(("text", "said"), [
    ("", "'' is not OPTION=VALUE,VALUE"),
    ("purge_delay_ms", "is not OPTION=VALUE,VALUE"),
    ("purge_delay_ms=", "is not OPTION=VALUE,VALUE"),
    ("purge_delay_ms=0,", "is not OPTION=VALUE,VALUE"),
    ("purge_delay_ms=0,1;", "'' is not OPTION=VALUE,VALUE"),
    ("purge_delay_ms=0", "makes 1 variants"),
    ("purge_delay_ms=0,0", "makes 1 variants"),
    ("purge_delay_ms=" + ",".join(map(str, range(17))), "makes 17 variants"),
    ("purge_delay_ms=0,x", "does not take 'x'; it takes 0 to 3600000 ms"),
    ("purge_delay_ms=0,-1", "does not take '-1'"),
    ("junk=on,maybe", "junk does not take 'maybe'; it takes off or on"),
    ("free_policy=keep,1", "free_policy does not take '1'; it takes keep or batch or adaptive"),
    ("price=lean,0", "price does not take '0'; it takes 1 to 1000000 ms of processor time or "
                     "fast or balanced or lean"),
    ("mode=minimal,fast", "no mode 'fast'"),
    ("junk=on,off;HAKMEM_JUNK=on,off", "names HAKMEM_JUNK twice"),
    ("nonesuch=0,1", "no option 'nonesuch'"),
    ("build:=1,2", "'build:' is not build:VARIABLE"),
    ("build:A B=1,2", "'build:A B' is not build:VARIABLE"),
])
def test_a_mistake_is_told_before_anything_is_built(text: str, said: str,
                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: object) -> None:
        raise AssertionError("something is built")

    monkeypatch.setattr(builds, "build", refuses)
    monkeypatch.setattr(allocators, "build_release", refuses)
    with pytest.raises(LabError, match=said.replace("(", r"\(")):
        sweep.sweep(text, sweep.Wish((), 1, None, ()), CONSOLE)


@pytest.mark.parametrize(("wish", "said"), [
    (sweep.Wish(("nonesuch",), 1, None, ()), "no cell is called 'nonesuch'"),
    (sweep.Wish((), 1, None, ("no-such-program",)), "no-such-program: there is no such program"),
    (sweep.Wish(("Larson",), 1, None, ("true",)), "cells or a program, not both"),
])
def test_so_is_a_wrong_cell_or_program(wish: sweep.Wish, said: str,
                                       monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(allocators, "build_release", lambda: 1 / 0)
    with pytest.raises(LabError, match=said):
        sweep.sweep("junk=off,on", wish, CONSOLE)
