"""`hakmem ab`: one HAKMEM with several values of an option, in turn; what the option does."""

import itertools
import re
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from hakmem_lab import ROOT, LabError, allocators, bench, cli, matrix, options, table
from hakmem_lab.allocators import Allocator
from hakmem_lab.campaign import Campaign
from hakmem_lab.compare import FAMILY
from hakmem_lab.preload import refuse_if_not_preloadable
from hakmem_lab.subject import Cell, Subject, find_program

MOST_VARIANTS = 16
BUILD_PREFIX = "build:"


@dataclass(frozen=True)
class Wish:
    cells: Sequence[str]
    runs: int
    out: Path | None
    command: Sequence[str]


def sweep(text: str, wish: Wish, console: Console) -> None:
    """The first value is the base that the others are compared with."""
    with console.status("building the release"):
        allocators.build_release()
    contestants = variants(text, console)
    cells = _cells(wish, console)
    folder = cli.new_folder(wish.out, "ab-" + re.sub(r"\W+", "-", text)[:40])
    command = shlex.join(["hakmem", "ab", text, "-n", str(wish.runs)])
    campaign = Campaign(folder, command, cells, contestants, wish.runs, contestants[0].name)
    campaign.run(console)
    table.show_matrix(folder, console)
    console.print(f"rows: {cli.shown(folder)}", style="dim", markup=False)


def _cells(wish: Wish, console: Console) -> list[Cell]:
    if wish.command:
        refuse_if_not_preloadable(find_program(wish.command[0]))
        subject = Subject(tuple(wish.command))
        return [Cell(subject.words(), FAMILY, subject)]
    if wish.cells:
        return bench.cells_of(bench.Wish(cells=wish.cells), console)
    return matrix.quick()


def variants(text: str, console: Console) -> list[Allocator]:
    """The contestants of "option=1,2" or "option=1,2;other=on,off", all combinations."""
    axes: list[list[tuple[str, str]]] = []
    for part in text.split(";"):
        name, equals, values = part.strip().partition("=")
        chosen = list(dict.fromkeys(values.split(",")))
        if not equals or "" in chosen:
            raise LabError(f"'{part}' is not OPTION=VALUE,VALUE")
        axes.append([(name, value) for value in chosen])
    combinations = list(itertools.product(*axes))
    if not 2 <= len(combinations) <= MOST_VARIANTS:
        raise LabError(f"'{text}' makes {len(combinations)} variants; 2 to {MOST_VARIANTS} can be "
                       "compared")
    return [_variant(pairs, console) for pairs in combinations]


def _variant(pairs: Sequence[tuple[str, str]], console: Console) -> Allocator:
    settings, flags = {}, []
    for name, value in pairs:
        if name.startswith(BUILD_PREFIX):
            flags.append(f"-D{name.removeprefix(BUILD_PREFIX)}={value}")
        else:
            settings[options.variable_of(name)] = value
    library = build_variant(flags, console) if flags else allocators.BUILD
    name = " ".join(f"{name.removeprefix(BUILD_PREFIX)}={value}" for name, value in pairs)
    return allocators.hakmem(library).with_settings(name, settings)


def build_variant(flags: Sequence[str], console: Console) -> Path:
    """The library of this checkout with other variables of CMake, in out/variants/."""
    folder = ROOT / "out/variants" / re.sub(r"[^\w=+-]+", "_", " ".join(flags))
    with console.status(f"building with {' '.join(flags)}"):
        for words in (["cmake", "-S", str(ROOT), "-B", str(folder), "-G", "Ninja",
                       "-DCMAKE_BUILD_TYPE=Release", *flags],
                      ["cmake", "--build", str(folder), "--target", "hakmem"]):
            done = subprocess.run(words, text=True, capture_output=True, check=False)
            if done.returncode != 0:
                said = [line for line in (done.stdout + done.stderr).splitlines()
                        if "error" in line.lower()] or ["no reason given"]
                raise LabError(f"{' '.join(flags)} could not be built: {said[0].strip()}")
    return folder
