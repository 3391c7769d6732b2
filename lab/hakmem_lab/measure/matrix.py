"""The matrix: the benchmark programs of this repository at every setting, as the cells of
lab/matrix.toml."""

import tomllib
from typing import Any

from hakmem_lab import ROOT
from hakmem_lab.measure.subject import Cell, Subject

TABLE = tomllib.loads((ROOT / "lab/matrix.toml").read_text())
LIMIT_S = 60.0  # besides what a script takes: far more than any allocator that is not stuck


def _cell(family: dict[str, Any], name: str, words: str, title: str) -> Cell:
    command = (*family.get("program", "").split(), *words.split())
    subject = Subject(command, limit_s=LIMIT_S, has_json=True)
    return Cell(f"{family['name']}, {name}", family["name"], subject, title=title,
                group=family["group"], is_long=family.get("is_long", False))


def families() -> list[Cell]:
    """All cells of the benchmark programs."""
    return [_cell(family, *row) for family in TABLE["family"] for row in family["cells"]]


def quick() -> list[Cell]:
    """One setting or two of each family: for a first look."""
    return [cell for cell in families() if cell.name in TABLE["quick"]]
