"""Further builds of the library: of this checkout with other variables of CMake, or of a commit.

All get the cache variables of the preset `release` of this checkout, whatever the source says of
itself: so the flags of contestants differ where that was asked for, and nowhere else.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from hakmem_lab import LabError, ROOT

PRESETS = ROOT / "CMakePresets.json"
PRESET = "release"


@cache
def preset() -> dict[str, str]:
    """The cache variables of the preset, its ancestors' included."""
    listed = json.loads(PRESETS.read_text())["configurePresets"]
    return _variables({each["name"]: each for each in listed}, PRESET)


def _variables(presets: Mapping[str, dict[str, Any]], name: str) -> dict[str, str]:
    own = presets[name]
    parents = own.get("inherits", [])
    variables: dict[str, str] = {}
    # Of two ancestors the one that is named first wins, as CMake has it.
    for parent in reversed([parents] if isinstance(parents, str) else parents):
        variables |= _variables(presets, parent)
    for key, value in own.get("cacheVariables", {}).items():
        variables[key] = str(value["value"] if isinstance(value, dict) else value)
    return variables


def build(source: Path, folder: Path, variables: Mapping[str, str]) -> str:
    """Builds libhakmem.so of a source tree in `folder`; gives the flags it was compiled with.

    `variables` of CMake come on top of the preset's. LabError if the source does not know one of
    them, or cannot be built."""
    told = [f"-D{name}={value}" for name, value in (preset() | dict(variables)).items()]
    said = _run("cmake", "-S", str(source), "-B", str(folder), "-G", "Ninja",
                "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON", *told)
    unknown = [name for name in unused(said) if name in variables]
    if unknown:
        raise LabError(f"the build has no variable {' or '.join(unknown)}")
    _run("cmake", "--build", str(folder), "--target", "hakmem")
    return flags(folder)


def unused(said: str) -> list[str]:
    """The variables that CMake's warning names as not used."""
    _, _, listed = said.partition("Manually-specified variables were not used by the project:")
    block = re.match(r"\s*\n((?: {4}\S+\n?)+)", listed)
    return block[1].split() if block else []


def flags(folder: Path) -> str:
    """The flags of malloc.c, or of the first file of the library, that decide on its code."""
    try:
        entries = json.loads((folder / "compile_commands.json").read_text())
    except (OSError, ValueError):
        return ""
    ours = [each["command"] for each in entries if "/hakmem.dir/" in each.get("command", "")]
    chosen = [command for command in ours if "src/malloc.c" in command] or ours or [""]
    return " ".join(word for word in shlex.split(chosen[0])
                    if word.startswith(("-O", "-f", "-g", "-m", "-std", "-DNDEBUG")))


def _run(*words: str) -> str:
    """What a step of the build says; LabError with its reason if it fails."""
    done = subprocess.run(words, text=True, capture_output=True, check=False)
    said = done.stdout + done.stderr
    if done.returncode != 0:
        lines = said.strip().splitlines() or ["no reason given"]
        errors = [line for line in lines if "error" in line.lower()]
        raise LabError(re.sub(r"/\S*/(?=src/|include/)", "", (errors or lines)[0].strip()))
    return said
