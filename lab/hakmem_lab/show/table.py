"""What was measured, for the terminal."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hakmem_lab.show import columns, markdown, sentences
from hakmem_lab.show.columns import Column, plain
from hakmem_lab.judge.digest import CellDigest, Run, read_run
from hakmem_lab.measure.subject import printable
from hakmem_lab.measure.witness import Proof

MOST_AMOUNTS = 4  # allocators; of more, a table shows the base's amounts alone
COLOURS = {"better": "green", "worse": "red", "mark": "yellow"}


def _field(field: markdown.Field) -> Text:
    style = COLOURS.get(field.kind, "") + (" bold" if field.strong else "")
    text = plain(field.text, style.strip())
    return text.append(f" {printable(field.note)}", "dim") if field.note else text


def show(table: markdown.Table, title: str, console: Console) -> None:
    """A table as documents have it too."""
    heads = [Column(head, place == 0, table.spare[::-1].index(head) + 1
                    if head in table.spare else 0) for place, head in enumerate(table.heads)]
    columns.show(title, heads, [[*map(_field, row)] for row in table.rows], console)


def show_matrix(folder: Path, console: Console) -> None:
    """Every family by time and by peak memory, and a summary of each group."""
    run = read_run(folder)
    for family in run.families:
        for figure in ("time", "peak"):
            _show_family(run, family, figure, console)
    if len(run.cells) > 1:
        for cells in map(run.of_group, run.groups):
            show(markdown.summary_table(cells), sentences.title_of(cells), console)
            console.print(plain(standing := sentences.standing_of(cells)))
        if (headline := sentences.headline(run)) != standing:
            console.print(plain(headline, "bold"))
    else:
        console.print(plain(sentences.winner_sentence(run.cells[0])))
    for *where, reason in markdown.failure_table(run.cells).rows:
        console.print(plain(f"{', '.join(each.text for each in where)}: {reason.text}", "yellow"))
    console.print(Text(f"{markdown.CONVENTION} Bold: the lowest median; in colour: significant. "
                       "Amounts are medians.", "dim"))
    if label := sentences.smoke_label(run.fewest_pairs):
        console.print(Text(label, "yellow"))


def _show_family(run: Run, family: str, figure: str, console: Console) -> None:
    """Medians alone; intervals are in the report."""
    full, cells = markdown.family_table(run, family, figure), run.of_family(family)
    rows = []
    for row, cell in zip(full.rows, cells):
        fields = [replace(field, note=_amount(cell, name, figure, len(full.heads)))
                  for name, field in zip(full.heads[1:], row[1:])]
        rows.append([plain(row[0].text.removeprefix(f"{family}, ")), *map(_field, fields)])
    heads = [Column(head, place == 0) for place, head in enumerate(full.heads)]
    what = "peak RSS" if figure == "peak" else sentences.basis_of(cells)
    columns.show(f"{family}: {what}", heads, rows, console)


def _amount(cell: CellDigest, name: str, figure: str, heads: int) -> str:
    own = cell.of(name)
    if own is None or not own.told or heads > MOST_AMOUNTS + 1 and name != cell.base:
        return ""
    median = own.median(figure)
    return markdown.size(median) if figure == "peak" else markdown.time(median, cell)


def show_history(folder: Path, titles: Mapping[str, str], console: Console) -> None:
    """Rows are commits in their order, columns cells; relative to the first commit."""
    run = read_run(folder)
    rows = []
    for name, title in titles.items():
        fields = []
        for cell in run.cells:
            own = cell.of(name)
            kind = markdown.kind_of(own.verdict()) if own else ""
            fields.append(_field(markdown.ratio(own.ratio("time") if own else None, kind=kind)))
        rows.append([plain(name), *fields, plain(title[:50])])
    heads = [Column("commit", True), *[Column(cell.name) for cell in run.cells],
             Column("title", True, spare=1)]
    columns.show(f"per commit, relative to {run.base}", heads, rows, console)


def show_counters(proof: Proof, console: Console) -> None:
    """What HAKMEM itself counted, at the end of the last program of a run."""
    if not proof.counters:
        console.print("hakmem: the program ended without a word (killed, or by _exit)",
                      style="yellow")
        return
    rows = [[plain(name.replace("_", " ")),
             Text(f"{value:,}" if name == "system_calls" else markdown.size(value))]
            for name, value in proof.counters.items()]
    columns.show("HAKMEM at the end of the program", (Column("", True), Column("")), rows, console)
