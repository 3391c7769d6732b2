#!/usr/bin/env python3
"""Models of the concurrency protocols, checked by SPIN: *.pml in this folder.

    models.py check    checks every model, and that every broken variant is refuted
    models.py seen     notes that the models were looked at: writes the hashes of mirrored.txt

A model names the functions that it mirrors (MIRRORS file function) and its broken variants (BROKEN
NAME). mirrored.txt has a hash of each function's text without its comments; when one has changed,
`check` says which model to look at. Look at it, change it if need be, then run `models.py seen`.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
MIRRORED = FOLDER / "mirrored.txt"
# Ten times what the largest takes here; deep enough that no search of theirs is cut short.
LIMIT_S = 300
DEPTH = 100_000


@dataclass(frozen=True)
class Verdict:
    """What SPIN said of one variant ("" is the model as it is)."""

    model: str
    variant: str
    errors: int
    said: str

    def is_right(self) -> bool:
        return (self.errors > 0) == bool(self.variant)


def models() -> list[Path]:
    return sorted(FOLDER.glob("*.pml"))


def head(model: Path) -> str:
    return model.read_text().split("*/")[0]


def variants(model: Path) -> list[str]:
    return re.findall(r"^ \* BROKEN (\w+)", head(model), re.M)


def mirrored(model: Path) -> list[tuple[str, str]]:
    return re.findall(r"^ \* MIRRORS (\S+) (\w+)$", head(model), re.M)


def function_hash(path: Path, name: str) -> str:
    """Of the definition's text, comments and white space left out; "gone" when there is none."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", " ", path.read_text(), flags=re.DOTALL)
    found = re.search(rf"^\w[^;{{}}=]*\b{name}\([^;{{}}]*\)\s*\{{.*?^\}}", text, re.DOTALL | re.M)
    if not found:
        return "gone"
    return hashlib.sha256("".join(found.group().split()).encode()).hexdigest()[:12]


def hashes() -> dict[str, str]:
    """`model file function` and its hash, for all models."""
    return {f"{model.name} {path} {name}":
            function_hash(ROOT / path, name) if (ROOT / path).exists() else "gone"
            for model in models() for path, name in mirrored(model)}


def changed() -> list[str]:
    """A line per function that is not what it was when its model was last looked at."""
    lines = [line.rsplit(" ", 1) for line in MIRRORED.read_text().splitlines()
             if not line.startswith("#")]
    noted = dict(lines)
    now = hashes()
    moved = [key.split() for key in sorted(now.keys() | noted.keys())
             if now.get(key) != noted.get(key)]
    return [f"{name} of {path} changed: check the model {model}, then run models.py seen"
            for model, path, name in moved]


def note() -> None:
    lines = ["# What the models mirror, and the text that they were last compared with: models.py"]
    lines += [f"{key} {value}" for key, value in sorted(hashes().items())]
    MIRRORED.write_text("\n".join(lines) + "\n")


def ask(model: Path, variant: str) -> Verdict:
    """Every interleaving of one variant."""
    with tempfile.TemporaryDirectory() as folder:
        def run(*command: str) -> str:
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True,
                                  timeout=LIMIT_S)
            return done.stdout + done.stderr

        shutil.copy(model, folder)
        said = run("spin", *([f"-D{variant}"] if variant else []), "-a", model.name)
        said += run("gcc", "-w", "-O2", "-DSAFETY", "-DMEMLIM=2048", "-o", "pan", "pan.c")
        said += run("./pan", f"-m{DEPTH}")
    errors = re.search(r"errors: (\d+)", said)
    complete = errors and "max search depth too small" not in said and "out of memory" not in said
    return Verdict(model.stem, variant, int(errors.group(1)) if errors and complete else -1, said)


def check() -> list[Verdict]:
    """All variants of all models, the long ones first."""
    wanted = [(model, "") for model in models()]
    wanted += [(model, variant) for model in models() for variant in variants(model)]
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda pair: ask(*pair), wanted))


def main() -> int:
    if sys.argv[1:] == ["seen"]:
        note()
        return 0
    if sys.argv[1:] != ["check"]:
        print(__doc__)
        return 2
    complaints = changed()
    for verdict in check():
        word = "as it must be" if verdict.is_right() else "WRONG"
        print(f"{verdict.model:12} {verdict.variant:20} {verdict.errors:2} errors: {word}")
        if not verdict.is_right():
            complaints.append(verdict.said)
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
