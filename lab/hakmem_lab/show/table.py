"""What was measured, for the terminal."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hakmem_lab.show import columns, markdown, sentences
from hakmem_lab.show.columns import Column, plain
from hakmem_lab.judge.digest import FLOOR, CellDigest, Run, read_run
from hakmem_lab.measure.witness import Proof

NO_FLOOR_MARK = "*"  # behind the floor's figure, where somebody costs less
COLOURS = {"better": "green", "worse": "red", "mark": "yellow"}


def _field(field: markdown.Field) -> Text:
    style = COLOURS.get(field.kind, "") + (" bold" if field.strong else "")
    text = plain(field.text, style.strip())
    return text.append(f" {markdown.printable(field.note)}", "dim") if field.note else text


def show(table: markdown.Table, title: str, console: Console) -> None:
    """A table as documents have it too."""
    heads = [Column(head, place == 0, table.spare[::-1].index(head) + 1
                    if head in table.spare else 0) for place, head in enumerate(table.heads)]
    columns.show(title, heads, [[*map(_field, row)] for row in table.rows], console)


def _show_smoke(pairs: int, console: Console) -> None:
    label = sentences.smoke_label(pairs)
    if label:
        console.print(Text(label, "yellow"))


def _show_failures(cells: Iterable[CellDigest], console: Console) -> None:
    """One line for each reason, with the rounds."""
    for cell in cells:
        for own in cell.allocators:
            for reason in dict.fromkeys(reason for _, reason in own.failures):
                rounds = [number for number, said in own.failures if said == reason]
                console.print(plain(f"{cell.name}, {own.name}, {sentences.named_rounds(rounds)}: "
                                    f"{reason}", "yellow"))


def show_matrix(folder: Path, console: Console) -> None:
    """Every family and the summary."""
    run = read_run(folder)
    for family in run.families:
        _show_family(run, family, console)
    if len(run.cells) > 1:
        show(markdown.summary_table(run.cells), "summary", console)
        console.print(plain(sentences.headline(run.cells)))
        floors = sentences.floors_sentence(run.cells)
        if floors:
            console.print(plain(f"{NO_FLOOR_MARK} {floors}", COLOURS["mark"]))
    else:
        for sentence in sentences.of_cell(run.cells[0]):
            console.print(plain(sentence))
    _show_failures(run.cells, console)
    console.print(Text(f"{markdown.CONVENTION} Bold: the lowest median; in colour: for real.",
                       "dim"))
    _show_smoke(run.fewest_pairs, console)


def _show_family(run: Run, family: str, console: Console) -> None:
    """Medians alone; intervals are in the report."""
    full = markdown.family_table(run, family)
    rows = []
    for row, cell in zip(full.rows, run.of_family(family)):
        marks = ["" if name != FLOOR or cell.floor_holds else NO_FLOOR_MARK for name in full.heads]
        rows.append([plain(row[0].text.removeprefix(f"{family}, ")),
                     *[_field(replace(field, note="", text=field.text + mark))
                       for field, mark in zip(row[1:], marks[1:])]])
    heads = [Column(head, place == 0) for place, head in enumerate(full.heads)]
    columns.show(family, heads, rows, console)


def show_history(folder: Path, titles: Mapping[str, str], console: Console) -> None:
    """Rows are commits in their order, columns cells; relative to the first commit."""
    run = read_run(folder)
    rows = []
    for name, title in titles.items():
        fields = []
        for cell in run.cells:
            own = cell.of(name)
            kind = markdown.kind_of(own.verdict) if own else ""
            fields.append(_field(markdown.ratio(own.relative_cost if own else None, kind=kind)))
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
