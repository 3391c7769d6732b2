"""What was measured, for the terminal: tables, bars and curves in characters."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.text import Text

from hakmem_lab.show import columns, markdown, plots, sentences
from hakmem_lab.show.columns import Column, plain
from hakmem_lab.judge.digest import CellDigest, Curve, Run, read_run
from hakmem_lab.measure.witness import Proof

BAR_WIDTH, CURVE_WIDTH = 20, 30
MOST_AMOUNTS = 4  # allocators; of more, a table shows the base's amounts alone
STEPS = " ▁▂▃▄▅▆▇█"
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


def show_comparison(folder: Path, console: Console) -> None:
    """One program on all allocators: time, memory, curves, and what it comes to."""
    run = read_run(folder)
    cell = run.cells[0]
    _show_times(cell, console)
    _show_memory(cell, run.curves_of(cell), plots.styles(run.allocators), console)
    _show_failures([cell], console)
    for sentence in sentences.of_cell(cell):
        console.print(plain(sentence))
    statuses = {int(row.figures["exit_status"]) for row in run.rows if "exit_status" in row.figures}
    for status in statuses:
        console.print(Text(f"The program ended with status {status} in every run.", "yellow"))
    console.print(plain(f"{sentences.rounds_sentence(cell)}; relative to {cell.base}: "
                        "the median over rounds with its 95 % interval.", "dim"))
    _show_smoke(cell.pairs, console)


def _show_smoke(pairs: int, console: Console) -> None:
    label = sentences.smoke_label(pairs)
    if label:
        console.print(Text(label, "yellow"))


def _show_times(cell: CellDigest, console: Console) -> None:
    style = plots.styles([own.name for own in cell.allocators])
    most = max((ratio.median for own in cell.allocators if (ratio := own.ratio("time"))),
               default=1.0)
    rows = []
    for own in markdown.ordered(cell):
        ratio, verdict = own.ratio("time"), own.verdict()
        kind = COLOURS.get(markdown.kind_of(verdict), "")
        words = Text(markdown.said(own.told["time"]) if own.told else verdict.value, kind)
        bar = _bar(ratio.median / most) if ratio else ""
        rows.append([plain(own.name), Text(bar, style[own.name][0]),
                     Text(markdown.time(own.median("time"), cell)), _field(markdown.ratio(ratio)),
                     words, Text(markdown.duration(own.median("wall")))])
    columns.show(cell.name, (
        Column("allocator", True), Column("", True, spare=2), Column(cell.basis.value),
        Column(f": {cell.base}"), Column("", True), Column("wall time", spare=1)), rows, console)


def _show_memory(cell: CellDigest, curves: Mapping[str, Curve],
                 style: Mapping[str, tuple[str, str]], console: Console) -> None:
    """Memory over time as a curve of characters, to one scale for all allocators."""
    highest = max((size for curve in curves.values() for _, size in curve), default=0)
    longest = max((curve[-1][0] for curve in curves.values() if curve), default=0.0)
    rows = []
    for own in (each for each in markdown.ordered(cell) if each.told):
        line = curve_of_characters(curves[own.name], longest, highest) if own.name in curves \
            else markdown.NO_CURVE if "mean" not in own.told else "–"
        kind = markdown.kind_of(own.verdict("peak"))
        rows.append([
            plain(own.name), Text(line, style[own.name][0]),
            Text(markdown.size(own.median("peak"))),
            _field(markdown.ratio(own.ratio("peak"), kind=kind)),
            Text(markdown.size(own.median("mean"))), Text(markdown.area(own.median("area"))),
            Text(f"{own.median('faults') or 0:,.0f}")])
    columns.show("", (
        Column("allocator", True), Column("RSS over time", True, spare=1), Column("peak"),
        Column(f": {cell.base}"), Column("mean"), Column("x time", spare=3),
        Column("faults", spare=2)), rows, console)


def _show_failures(cells: Iterable[CellDigest], console: Console) -> None:
    """One line for each reason, with the rounds."""
    for cell in cells:
        for own in cell.allocators:
            for reason in dict.fromkeys(reason for _, reason in own.failures):
                rounds = [number for number, said in own.failures if said == reason]
                console.print(plain(f"{cell.name}, {own.name}, {sentences.named_rounds(rounds)}: "
                                    f"{reason}", "yellow"))


def _bar(share: float) -> str:
    """A bar in eighths of a character."""
    eighths = round(share * BAR_WIDTH * 8)
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def curve_of_characters(curve: Curve, longest: float, highest: int) -> str:
    """The highest sample of each of CURVE_WIDTH stretches of time, in eighths of a line."""
    peaks = [0] * CURVE_WIDTH
    for seconds, size in curve:
        place = min(int(seconds / longest * CURVE_WIDTH) if longest else 0, CURVE_WIDTH - 1)
        peaks[place] = max(peaks[place], size)
    last = max((place for place, size in enumerate(peaks) if size), default=-1)
    for place in range(1, last + 1):  # a stretch without a sample is as the one before
        peaks[place] = peaks[place] or peaks[place - 1]
    return "".join(STEPS[max(1, round(size / highest * 8))] if size else " " for size in peaks)


def show_matrix(folder: Path, console: Console) -> None:
    """Every family by time and by peak memory, and a summary of each group."""
    run = read_run(folder)
    for family in run.families:
        for figure in ("time", "peak"):
            _show_family(run, family, figure, console)
    if len(run.cells) > 1:
        for cells in map(run.of_group, run.groups):
            show(markdown.summary_table(cells), sentences.title_of(cells), console)
            console.print(plain(sentences.standing_of(cells)))
        console.print(plain(sentences.headline(run), "bold"))
    else:
        for sentence in sentences.of_cell(run.cells[0]):
            console.print(plain(sentence))
    _show_failures(run.cells, console)
    console.print(Text(f"{markdown.CONVENTION} Bold: the lowest median; in colour: significant. "
                       "Amounts are medians.", "dim"))
    _show_smoke(run.fewest_pairs, console)


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
