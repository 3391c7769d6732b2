"""The report: one page that needs nothing but itself."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jinja2

from hakmem_lab import LabError
from hakmem_lab.show import markdown, own, plots, sentences
from hakmem_lab.judge.digest import CellDigest, Run, read_run

PAGE = Path(__file__).with_name("page.html")

Part = dict[str, Any]  # what the page shows of a cell, a family, a group or a run


def _pictures(anchor: str, *drawn: str | None) -> list[str]:
    """For one page: no two of them share a name within."""
    return [plots.for_page(each, f"{anchor}-{place}-") for place, each in enumerate(drawn) if each]


def _cell(run: Run, cell: CellDigest, anchor: str) -> Part:
    return {"name": cell.name, "command": cell.command, "winner": sentences.winner_sentence(cell),
            "smoke": sentences.smoke_label(cell.pairs),
            "tables": [markdown.time_table(cell), markdown.resource_table(cell)],
            "pictures": _pictures(anchor, plots.memory_plot(run, cell))}


def _family(run: Run, family: str, anchor: str) -> Part:
    cells = run.of_family(family)
    return {"name": family, "anchor": anchor,
            "smoke": sentences.smoke_label(min(cell.pairs for cell in cells)),
            "losses": sentences.losses(cells),
            "tables": [(sentences.basis_of(cells), markdown.family_table(run, family)),
                       ("Peak RSS, and below it RSS × time",
                        markdown.family_table(run, family, "peak"))],
            "pictures": _pictures(anchor, plots.trade_off_plot(run, cells, family)),
            "cells": [_cell(run, cell, f"{anchor}-{place}") for place, cell in enumerate(cells)]}


def _group(run: Run, group: str, anchor: str) -> Part:
    cells = run.of_group(group)
    title = sentences.title_of(cells)
    (picture,) = _pictures(f"{anchor}-{group}", plots.trade_off_plot(run, cells, title))
    return {"title": title, "standing": sentences.standing_of(cells), "picture": picture,
            "summary": markdown.summary_table(cells)}


def _run(run: Run, number: int) -> Part:
    anchor = f"run-{number}"
    return {"name": run.name, "anchor": anchor, "smoke": sentences.smoke_label(run.fewest_pairs),
            "source": sentences.source_line(run), "headline": sentences.headline(run),
            "environment": markdown.environment_pairs(run), "versions": markdown.versions(run),
            "groups": [_group(run, group, anchor) for group in run.groups],
            "families": [_family(run, family, f"{anchor}-family-{place}")
                         for place, family in enumerate(run.families)],
            "failures": markdown.failure_table(run.cells)}


def page(runs: Sequence[Run]) -> str:
    """The HTML; whatever stems from a program or a user is escaped, pictures are our own."""
    surroundings = jinja2.Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                      undefined=jinja2.StrictUndefined)
    template = surroundings.from_string(PAGE.read_text())
    if len(runs) == 1 and own.is_own(runs[0]):
        return template.render(runs=runs, own=own.page(runs[0]), colours=plots.page_colours())
    return template.render(runs=[_run(run, number) for number, run in enumerate(runs)],
                           convention=markdown.CONVENTION, own=None, colours=plots.page_colours())


def write_report(folders: list[Path], target: Path) -> Path:
    """Writes the page to `target`, or to report.html in it if it is a folder; where it is. Pictures
    are within the page, so that no other file is touched."""
    runs = [read_run(folder) for folder in folders]
    if not runs:
        raise LabError("a report needs at least one folder of results")
    target = target / "report.html" if target.is_dir() else target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(page(runs))
    except OSError as error:
        raise LabError(f"{target}: {error.strerror}") from None
    return target
