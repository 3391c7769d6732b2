#!/usr/bin/env python3
"""Models of the concurrency protocols, checked by SPIN: *.pml in this folder.

Checks every model, and that every broken variant is refuted. A model names the functions that it
mirrors (MIRRORS file function): who changes one looks at the model. It names its broken variants
too (BROKEN NAME).
"""

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


def is_defined(path: Path, name: str) -> bool:
    text = re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.DOTALL) if path.exists() else ""
    return re.search(rf"^\w[^;{{}}=]*\b{name}\([^;{{}}]*\)\s*\{{", text, re.M) is not None


def gone() -> list[str]:
    """A line per function that a model names and nobody defines."""
    return [f"{model.name} mirrors {name}, which {path} does not define"
            for model in models() for path, name in mirrored(model)
            if not is_defined(ROOT / path, name)]


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
    complaints = gone()
    for verdict in check():
        word = "as it must be" if verdict.is_right() else "WRONG"
        print(f"{verdict.model:12} {verdict.variant:20} {verdict.errors:2} errors: {word}")
        if not verdict.is_right():
            complaints.append(verdict.said)
    print("\n".join(complaints))
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
