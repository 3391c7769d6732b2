"""The report: one page that needs nothing but itself, and the same in Markdown beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import jinja2

from hakmem_lab import LabError, markdown, plots
from hakmem_lab.digest import CellDigest, Run, read_run, summarise
from hakmem_lab.markdown import Table

PAGE = Path(__file__).with_name("page.html")


@dataclass(frozen=True)
class CellPart:
    """What the page shows of one cell, behind a click."""

    name: str
    command: str
    standing: str
    power: str
    smoke: str
    tables: tuple[Table, ...]
    pictures: tuple[str, ...]


@dataclass(frozen=True)
class FamilyPart:
    name: str
    anchor: str
    smoke: str
    wins: str
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


def headline(run: Run) -> str:
    """In how many cells the base is first, level, and behind: losses in the same breath."""
    own = next((each for each in summarise(run.cells) if each.name == run.base), None)
    judged = [cell for cell in run.cells if cell.standing]
    if own is None or not judged:
        return "Nothing to rank: a comparison needs two allocators with figures."
    behind = len(judged) - own.first_alone - own.first_level
    return (f"{run.base} costs least alone in {own.first_alone} of {len(judged)} cells, is level "
            f"with the first in {own.first_level}, and behind in {behind}.")


def _wins(cells: Sequence[CellDigest]) -> str:
    """Where the base is beaten for real, and by whom."""
    lost = [f"{cell.name} (by {', '.join(winners)})" for cell in cells
            if (winners := [each.name for each in cell.allocators if each.verdict == "less"])]
    if not lost:
        return "Nobody beats the base beyond the noise."
    return "The base is beaten beyond the noise in: " + "; ".join(lost) + "."


def _pictures(*drawn: str | None) -> tuple[str, ...]:
    return tuple(plots.for_page(each) for each in drawn if each)


def _cell(run: Run, cell: CellDigest) -> CellPart:
    return CellPart(cell.name, cell.command, markdown.standing_sentence(cell),
                    markdown.power_sentence(cell), markdown.smoke_label(cell.pairs),
                    (markdown.cost_table(cell), markdown.resource_table(cell)),
                    _pictures(plots.distribution_plot(run, cell),
                              plots.memory_plot(run, cell.name)))


def _family(run: Run, family: str, anchor: str) -> FamilyPart:
    cells = run.of_family(family)
    fewest = min(cell.pairs for cell in cells)
    return FamilyPart(family, anchor, markdown.smoke_label(fewest), _wins(cells),
                      markdown.family_table(run, family),
                      _pictures(plots.family_plot(run, family), plots.net_plot(run, family)),
                      tuple(_cell(run, cell) for cell in cells))


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
    return RunPart(run.name, f"run-{number}", markdown.smoke_label(run.fewest_pairs),
                   markdown.source_line(run), markdown.environment_pairs(run),
                   markdown.versions(run), headline(run), markdown.summary_table(run.cells),
                   markdown.extremes_table(run.cells),
                   plots.for_page(plots.summary_plot(run)), families,
                   markdown.failure_table(run.cells), _outliers(run))


def page(runs: Sequence[Run]) -> str:
    """The HTML; whatever stems from a program or a user is escaped, pictures are our own."""
    surroundings = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                      undefined=jinja2.StrictUndefined)
    template = surroundings.from_string(PAGE.read_text())
    return template.render(runs=[_run(run, number) for number, run in enumerate(runs)],
                           convention=markdown.CONVENTION)


def write_report(folders: list[Path], target: Path) -> None:
    """Writes the page to `target`, or to report.html in it if it is a folder; report.md beside."""
    runs = [read_run(folder) for folder in folders]
    if not runs:
        raise LabError("a report needs at least one folder of results")
    if target.is_dir() or not target.suffix:
        target = target / "report.html"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(runs))
        (target.parent / "report.md").write_text(markdown.report_markdown(runs))
    except OSError as error:
        raise LabError(f"{target}: {error.strerror}") from None
