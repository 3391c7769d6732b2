"""The report: one page that needs nothing but itself, and the same in Markdown beside it."""

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
    table: Table
    pictures: tuple[str, ...]
    cells: tuple[CellPart, ...]


@dataclass(frozen=True)
class RunPart:
    name: str
    anchor: str
    smoke: str
    source: str
    environment: list[tuple[str, str]]
    versions: list[tuple[str, str]]
    headline: str
    summary: Table
    extremes: Table
    picture: str
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
                    (markdown.cost_table(cell), markdown.resource_table(cell)),
                    _pictures(anchor, plots.distribution_plot(run, cell),
                              plots.memory_plot(run, cell)))


def _family(run: Run, family: str, anchor: str) -> FamilyPart:
    cells = run.of_family(family)
    fewest = min(cell.pairs for cell in cells)
    return FamilyPart(family, anchor, sentences.smoke_label(fewest), sentences.losses(cells),
                      markdown.family_table(run, family),
                      _pictures(anchor, plots.family_plot(run, family),
                                plots.net_plot(run, family)),
                      tuple(_cell(run, cell, f"{anchor}-{place}")
                            for place, cell in enumerate(cells)))


def _outliers(run: Run) -> Table:
    rows = []
    for cell in run.cells:
        for each in cell.allocators:
            for place in each.cost.outliers if each.cost else ():
                rows.append(tuple(markdown.Field(text) for text in (
                    cell.name, each.name, str(each.rounds[place]),
                    markdown.cost(each.costs[place], cell),
                    markdown.cost(each.cost.median if each.cost else None, cell))))
    return Table(("cell", "allocator", "round", "cost", "median"), tuple(rows))


def _run(run: Run, number: int) -> RunPart:
    families = tuple(_family(run, family, f"run-{number}-family-{place}")
                     for place, family in enumerate(run.families))
    return RunPart(run.name, f"run-{number}", sentences.smoke_label(run.fewest_pairs),
                   sentences.source_line(run), markdown.environment_pairs(run),
                   markdown.versions(run), sentences.headline(run.cells),
                   markdown.summary_table(run.cells), markdown.extremes_table(run.cells),
                   plots.for_page(plots.summary_plot(run), f"run-{number}-"), families,
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
    """Writes the page to `target`, or to report.html in it if it is a folder; the same name with
    .md beside. Pictures are within the page, so that no other file is touched."""
    runs = [read_run(folder) for folder in folders]
    if not runs:
        raise LabError("a report needs at least one folder of results")
    target = target / "report.html" if target.is_dir() else target
    beside = target.with_suffix(".md")
    if beside == target:
        raise LabError(f"{target}: the page needs another name, its Markdown is written there")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(runs))
        beside.write_text(own.to_markdown(runs[0]) if len(runs) == 1 and own.is_own(runs[0])
                          else markdown.report_markdown(runs))
    except OSError as error:
        raise LabError(f"{target}: {error.strerror}") from None
