"""`hakmem ab`: one HAKMEM with several values of an option, in turn; what the option does."""

import itertools
import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hakmem_lab import LabError, ROOT
from hakmem_lab.commands import bench, options
from hakmem_lab.measure import allocators, builds, matrix, places
from hakmem_lab.show import own, table
from hakmem_lab.measure.allocators import Allocator
from hakmem_lab.measure.campaign import Campaign
from hakmem_lab.commands.compare import FAMILY
from hakmem_lab.measure.subject import OWN_GROUP, Cell, Subject, refuse_if_not_preloadable

MOST_VARIANTS = 16
BUILD_PREFIX = "build:"
VARIANTS = ROOT / "out/variants"


@dataclass(frozen=True)
class Wish:
    cells: Sequence[str]
    runs: int
    out: Path | None
    command: Sequence[str] = ()


def sweep(text: str, wish: Wish, console: Console) -> None:
    """The first value is the base that the others are compared with."""
    combinations(text)
    cells = cells_of(wish, console)
    folder = places.new_folder(wish.out, "ab-" + re.sub(r"\W+", "-", text)[:40])
    with console.status("building the release"):
        allocators.build_release()
    contestants = variants(text, console)
    campaign = Campaign(folder, places.command_line(), cells, contestants, wish.runs,
                        contestants[0].name)
    campaign.run(console)
    (own.show if wish.command else table.show_matrix)(folder, console)
    console.print(f"rows: {places.shown(folder)}", style="dim", markup=False)


def cells_of(wish: Wish, console: Console) -> list[Cell]:
    if wish.command and wish.cells:
        raise LabError("name cells or a program, not both")
    if wish.command:
        refuse_if_not_preloadable(wish.command[0])
        subject = Subject(tuple(wish.command), placeholders=(), reads_stdin=True)
        return [Cell(subject.words(), FAMILY, subject, group=OWN_GROUP)]
    if wish.cells:
        return bench.cells_of(bench.Wish(cells=wish.cells), console)
    return matrix.quick()


def variants(text: str, console: Console) -> list[Allocator]:
    """The contestants of "option=1,2" or "option=1,2;other=on,off", all combinations."""
    return [_variant(pairs, console) for pairs in combinations(text)]


def combinations(text: str) -> list[tuple[tuple[str, str], ...]]:
    """What the contestants differ in, as pairs of name and value. LabError if an option does not
    take a value; what a variable of the build takes is known only when it is built."""
    axes: dict[str, list[tuple[str, str]]] = {}
    for part in text.split(";"):
        name, equals, values = (word.strip() for word in part.partition("="))
        chosen = list(dict.fromkeys(value.strip() for value in values.split(",")))
        if not equals or "" in chosen:
            raise LabError(f"'{part}' is not OPTION=VALUE,VALUE")
        variable = _variable_of(name, chosen)
        if variable in axes:
            raise LabError(f"'{text}' names {name} twice")
        axes[variable] = [(name, value) for value in chosen]
    found = list(itertools.product(*axes.values()))
    if not 2 <= len(found) <= MOST_VARIANTS:
        raise LabError(f"'{text}' makes {len(found)} variants; 2 to {MOST_VARIANTS} can be "
                       "compared")
    return found


def _variable_of(name: str, values: Sequence[str]) -> str:
    """Of the environment, or with the prefix of the build; LabError if a value is not one."""
    if not name.startswith(BUILD_PREFIX):
        return [options.setting(name, value)[0] for value in values][0]
    if not re.fullmatch(r"\w+", name.removeprefix(BUILD_PREFIX)):
        raise LabError(f"'{name}' is not {BUILD_PREFIX}VARIABLE")
    return name


def _variant(pairs: Sequence[tuple[str, str]], console: Console) -> Allocator:
    settings, variables = {}, {}
    for name, value in pairs:
        if name.startswith(BUILD_PREFIX):
            variables[name.removeprefix(BUILD_PREFIX)] = value
        else:
            variable, text = options.setting(name, value)
            settings[variable] = text
    name = " ".join(f"{name.removeprefix(BUILD_PREFIX)}={value}" for name, value in pairs)
    if not variables:
        return allocators.hakmem().with_settings(name, settings)
    folder, flags = build_variant(variables, console)
    version = f"this checkout, built with {flags}"
    return replace(allocators.hakmem(folder), version=version).with_settings(name, settings)


def build_variant(variables: Mapping[str, str], console: Console) -> tuple[Path, str]:
    """Where the library of this checkout with other variables of CMake is, and its flags."""
    words = " ".join(f"{name}={value}" for name, value in variables.items())
    folder = VARIANTS / re.sub(r"[^\w=+-]+", "_", words)
    with console.status(escape(f"building with {words}")):
        try:
            return folder, builds.build(ROOT, folder, variables)
        except LabError as error:
            shutil.rmtree(folder, ignore_errors=True)
            raise LabError(f"{words} cannot be built: {error}") from None
