"""The report: one page that needs nothing but itself."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from hakmem_lab import LabError
from hakmem_lab.show import markdown, own, plots, sentences
from hakmem_lab.judge.digest import CellDigest, Run, read_run
from hakmem_lab.show.markdown import Table

PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class CellPart:
    """What the page shows of one cell, behind a click."""

    name: str
    command: str
    winner: str
    hints: tuple[str, ...]
    smoke: str
    tables: tuple[Table, ...]
    pictures: tuple[str, ...]


@dataclass(frozen=True)
class FamilyPart:
    name: str
    anchor: str
    smoke: str
    losses: str
    tables: tuple[tuple[str, Table], ...]
    pictures: tuple[str, ...]
    cells: tuple[CellPart, ...]


@dataclass(frozen=True)
class GroupPart:
    title: str
    standing: str
    summary: Table
    picture: str


@dataclass(frozen=True)
class RunPart:
    name: str
    anchor: str
    smoke: str
    source: str
    environment: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    headline: str
    groups: tuple[GroupPart, ...]
    families: tuple[FamilyPart, ...]
    failures: Table
    outliers: Table


def _pictures(anchor: str, *drawn: str | None) -> tuple[str, ...]:
    """For one page: no two of them share a name within."""
    return tuple(plots.for_page(each, f"{anchor}-{place}-")
                 for place, each in enumerate(drawn) if each)


def _cell(run: Run, cell: CellDigest, anchor: str) -> CellPart:
    winner, *hints = sentences.of_cell(cell)
    short = [name for name in run.curves.get(cell.name, {}) if name not in run.curves_of(cell)]
    if short:
        hints.append(f"Memory, {markdown.NO_CURVE}: {', '.join(short)}.")
    return CellPart(cell.name, cell.command, winner, tuple(hints),
                    sentences.smoke_label(cell.pairs),
                    (markdown.time_table(cell), markdown.resource_table(cell)),
                    _pictures(anchor, plots.bars_plot(run, cell), plots.memory_plot(run, cell)))


def _family(run: Run, family: str, anchor: str) -> FamilyPart:
    cells = run.of_family(family)
    fewest = min(cell.pairs for cell in cells)
    return FamilyPart(family, anchor, sentences.smoke_label(fewest), sentences.losses(cells),
                      ((sentences.basis_of(cells), markdown.family_table(run, family)),
                       ("Peak RSS, and below it RSS × time",
                        markdown.family_table(run, family, "peak"))),
                      _pictures(anchor, plots.trade_off_plot(run, cells, family)),
                      tuple(_cell(run, cell, f"{anchor}-{place}")
                            for place, cell in enumerate(cells)))


def _outliers(run: Run) -> Table:
    rows = []
    for cell in run.cells:
        for each in (own for own in cell.allocators if own.told):
            for place in each.told["time"].series.outliers:
                rows.append(tuple(markdown.Field(text) for text in (
                    cell.name, each.name, str(each.rounds[place]),
                    markdown.time(each.values[place], cell),
                    markdown.time(each.median("time"), cell))))
    return Table(("cell", "allocator", "round", "time", "median"), tuple(rows))


def _group(run: Run, group: str, anchor: str) -> GroupPart:
    cells = run.of_group(group)
    title = sentences.title_of(cells)
    picture = plots.for_page(plots.trade_off_plot(run, cells, title), f"{anchor}-{group}-")
    return GroupPart(title, sentences.standing_of(cells), markdown.summary_table(cells), picture)


def _run(run: Run, number: int) -> RunPart:
    families = tuple(_family(run, family, f"run-{number}-family-{place}")
                     for place, family in enumerate(run.families))
    return RunPart(run.name, f"run-{number}", sentences.smoke_label(run.fewest_pairs),
                   sentences.source_line(run), markdown.environment_pairs(run),
                   markdown.versions(run), sentences.headline(run),
                   tuple(_group(run, group, f"run-{number}") for group in run.groups), families,
                   markdown.failure_table(run.cells), _outliers(run))


def page(runs: Sequence[Run]) -> str:
    """The HTML; whatever stems from a program or a user is escaped, pictures are our own."""
    surroundings = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                      undefined=jinja2.StrictUndefined)
    template = surroundings.from_string(PAGE.read_text())
    if len(runs) == 1 and own.is_own(runs[0]):
        return template.render(runs=runs, own=own.page(runs[0]))
    return template.render(runs=[_run(run, number) for number, run in enumerate(runs)],
                           convention=markdown.CONVENTION, own=None)


def write_report(folders: list[Path], target: Path) -> None:
    """Writes the page to `target`, or to report.html in it if it is a folder. Pictures are within
    the page, so that no other file is touched."""
    runs = [read_run(folder) for folder in folders]
    if not runs:
        raise LabError("a report needs at least one folder of results")
    target = target / "report.html" if target.is_dir() else target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(runs))
    except OSError as error:
        raise LabError(f"{target}: {error.strerror}") from None
