"""Where rows go, and how paths and the command line are told: from the checkout, or from home."""

import os
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hakmem_lab import LabError, ROOT
from hakmem_lab.measure.subject import printable

RESULTS = ROOT / "results"


def new_folder(out: Path | None, name: str) -> Path:
    """A folder for the rows of one run; LabError if it holds some already."""
    folder = out or RESULTS / f"{time.strftime('%Y-%m-%d-%H%M%S')}-{name}"
    if (folder / "results.csv").exists():
        raise LabError(f"{folder} holds results already; name another folder")
    return folder


def empty_folder(out: Path | None, name: str) -> Path:
    """A folder for folders of rows; LabError if there is anything in it."""
    folder = new_folder(out, name)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise LabError(f"{folder} is there and not an empty folder; name another one")
    return folder


def newest_folder() -> Path:
    """The folder of results/ whose rows are the newest."""
    held = sorted((file.stat().st_mtime, file.parent) for file in RESULTS.glob("*/results.csv"))
    if not held:
        raise LabError("there are no results yet; `hakmem compare` or `hakmem bench` makes some")
    return held[-1][1]


def shown(folder: Path) -> str:
    """A path as a user would type it from the checkout."""
    absolute = folder.absolute()
    return str(absolute.relative_to(ROOT) if absolute.is_relative_to(ROOT) else absolute)


def command_line(words: Sequence[str] | None = None) -> str:
    """What was typed, without the paths of this machine: those of the checkout begin at it, those
    of the user's home with ~."""
    text = shlex.join(["hakmem", *(sys.argv[1:] if words is None else words)])
    text = _without(str(ROOT), text, "", ".")
    home = os.environ.get("HOME", "").rstrip("/")
    return printable(_without(home, text, "~/", "~") if home else text)


def _without(folder: str, text: str, inside: str, itself: str) -> str:
    """Replaces "folder/" and "folder", where these are not the middle of another path."""
    begin = rf"(?<![\w/.-]){re.escape(folder)}"
    return re.sub(rf"{begin}/*(?![\w/.-])", itself, re.sub(rf"{begin}/+(?=[\w.-])", inside, text))
