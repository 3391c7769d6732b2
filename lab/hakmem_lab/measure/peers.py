"""The other allocators, as bench/peers/build.py knows them: which there are, and building them."""

import importlib.util
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from typing import Any

from rich.console import Console
from rich.progress import (BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn,
                           TimeElapsedColumn)

from hakmem_lab import ROOT


@cache
def _recipes() -> Any:
    """The module bench/peers/build.py."""
    spec = importlib.util.spec_from_file_location("build_peers", ROOT / "bench/peers/build.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # its dataclasses look it up
    spec.loader.exec_module(module)
    return module


def names() -> list[str]:
    return list(_recipes().PEERS)


def is_source(name: str) -> bool:
    """Is it built from source, which takes minutes, or taken from a package in seconds?"""
    return isinstance(_recipes().PEERS[name], _recipes().Crate)


def is_built(name: str) -> bool:
    return bool(_recipes().is_built(name))


def has_failed(name: str) -> bool:
    """Could it not be built by the recipe of today, though the tools were there?"""
    return not is_built(name) and bool(_recipes().rows_of(name))


def build(wanted: Iterable[str], console: Console) -> None:
    """Builds these behind a progress bar. What is built already is left as it is, so that an
    interrupted call goes on where it stopped; what cannot be built is skipped with a line."""
    wanted = list(wanted)
    if any(map(is_source, wanted)):
        subprocess.run([str(ROOT / "tools/setup.sh"), "peers"], check=False)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(bar_width=30),
               MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=len(wanted))
        for name in wanted:
            bar.update(task, description=f"{'building' if is_source(name) else 'fetching'} {name}")
            bar.console.print(_recipes().ensure(name), style="dim", markup=False)
            bar.advance(task)
