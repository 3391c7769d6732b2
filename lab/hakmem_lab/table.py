"""What was measured, for the terminal: tables, bars and curves in characters."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hakmem_lab import markdown, plots
from hakmem_lab.allocators import Allocator
from hakmem_lab.digest import AllocatorDigest, CellDigest, Curve, Run, read_run
from hakmem_lab.statistics import Series
from hakmem_lab.witness import Proof

BAR_WIDTH, CURVE_WIDTH = 20, 30
STEPS = " ▁▂▃▄▅▆▇█"
COLOURS = {"better": "green", "worse": "red", "mark": "yellow"}
VERDICTS = {"less": ("faster", "green"), "more": ("slower", "red"), "same": ("no difference", ""),
            "too few": ("too few runs", "yellow")}


def _table(title: str, heads: Iterable[str], first_left: int = 1) -> Table:
    table = Table(title=Text(title) if title else None, title_justify="left",
                  title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place < first_left else "right", no_wrap=True)
    return table


def _field(field: markdown.Field) -> Text:
    style = COLOURS.get(field.kind, "") + (" bold" if field.strong else "")
    text = Text(field.text, style=style.strip())
    return text.append(f" {field.note}", "dim") if field.note else text


def show(table: markdown.Table, title: str, console: Console) -> None:
    """A table as documents have it too."""
    drawn = _table(title, table.heads)
    for column in drawn.columns:
        column.no_wrap = False
    for row in table.rows:
        drawn.add_row(*map(_field, row))
    console.print(drawn)


def _middle(series: Series | None) -> float | None:
    return series.median if series else None


def _ordered(cell: CellDigest) -> list[AllocatorDigest]:
    """The cheapest first, what failed last."""
    return sorted((own for own in cell.allocators if not own.is_floor),
                  key=lambda own: own.relative_cost.median if own.relative_cost else math.inf)


def show_comparison(folder: Path, console: Console) -> None:
    """One program on all allocators: time, memory, curves, and what it comes to."""
    run = read_run(folder)
    cell = run.cells[0]
    _show_times(cell, console)
    _show_memory(cell, run.curves.get(cell.name, {}), console)
    for own in cell.allocators:
        for _, reason in own.failures:
            console.print(Text(f"{own.name}: {reason}", "yellow"))
    for sentence in _conclusion(cell):
        console.print(Text(sentence))
    statuses = {int(row.figures["exit_status"]) for row in run.rows if "exit_status" in row.figures}
    for status in statuses:
        console.print(Text(f"The program ended with status {status} in every run.", "yellow"))
    console.print(Text(f"{markdown.rounds_text(cell.pairs)} in turn; relative to {cell.base}: the "
                       "median over rounds with its 95 % interval. "
                       + markdown.power_sentence(cell), "dim"))


def _show_times(cell: CellDigest, console: Console) -> None:
    most = max((own.relative_cost.median for own in cell.allocators
                if own.relative_cost and not own.is_floor), default=1.0)
    table = _table(cell.name, ("allocator", "time", "", f": {cell.base}", "", "CPU"), 2)
    for own in _ordered(cell):
        if own.cost is None or own.relative_cost is None:
            table.add_row(own.name, Text("failed", "yellow"))
            continue
        word, colour = VERDICTS.get(own.verdict, ("", ""))
        bar = Text(_bar(own.relative_cost.median / most), plots.colour(own.name))
        table.add_row(own.name, bar, markdown.cost(own.cost.median, cell),
                      _field(markdown.ratio(own.relative_cost)), Text(word, colour),
                      f"{markdown.significant(_middle(own.cpu))} s")
    console.print(table)


def _show_memory(cell: CellDigest, curves: Mapping[str, Curve], console: Console) -> None:
    """Memory over time as a curve of characters, to one scale for all allocators."""
    highest = max((size for curve in curves.values() for _, size in curve), default=0)
    longest = max((curve[-1][0] for curve in curves.values() if curve), default=0.0)
    table = _table("", ("allocator", "RSS over time", "peak", "mean", "x time", "faults"), 2)
    for own in _ordered(cell):
        if own.cost is None:
            continue
        area, faults = _middle(own.rss_byte_seconds), _middle(own.minor_faults)
        line = curve_of_characters(curves.get(own.name, []), longest, highest)
        table.add_row(own.name, Text(line, plots.colour(own.name)),
                      markdown.size(_middle(own.peak_rss)), markdown.size(_middle(own.mean_rss)),
                      f"{markdown.size(area)}·s" if area else "–", f"{faults or 0:,.0f}")
    console.print(table)


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


def _conclusion(cell: CellDigest) -> list[str]:
    """Which allocator suits the program: in time, and in memory."""
    sentences = [markdown.standing_sentence(cell)]
    held = [(peak, own.name) for own in cell.allocators
            if own.is_ranked and (peak := _middle(own.peak_rss))]
    if len(held) > 1:
        least, name = min(held)
        close = [other for peak, other in sorted(held)[1:] if peak <= least * 1.01]
        sentences.append(f"{name} needs the least memory at its peak, {markdown.size(least)}"
                         + (f"; within 1 %: {', '.join(close)}" if close else "") + ".")
    return sentences


def show_matrix(folder: Path, console: Console) -> None:
    """Every family and the summary."""
    run = read_run(folder)
    for family in run.families:
        _show_family(run, family, console)
    if len(run.cells) > 1:
        show(markdown.summary_table(run.cells), "summary", console)
    failures = markdown.failure_table(run.cells)
    if failures.rows:
        show(failures, "failures", console)
    console.print(Text(markdown.CONVENTION, "dim"))
    label = markdown.smoke_label(run.fewest_pairs)
    if label:
        console.print(Text(label, "yellow"))


def _show_family(run: Run, family: str, console: Console) -> None:
    """Medians alone, to fit; in bold who is first or level with the first, in colour what is real.
    Intervals are in the report."""
    full = markdown.family_table(run, family)
    table = _table(family, full.heads)
    for row in full.rows:
        setting = row[0].text.removeprefix(f"{family}, ")
        table.add_row(setting, *[_field(replace(field, note="")) for field in row[1:]])
    console.print(table)


def show_history(folder: Path, titles: Mapping[str, str], console: Console) -> None:
    """Rows are commits in their order, columns cells; relative to the first commit."""
    run = read_run(folder)
    table = _table(f"per commit, relative to {run.base}",
                   ("commit", *[cell.name for cell in run.cells], "title"))
    for name in titles:
        texts = []
        for cell in run.cells:
            own = cell.of(name)
            kind = {"less": "better", "more": "worse"}.get(own.verdict if own else "", "")
            texts.append(_field(markdown.ratio(own.relative_cost if own else None, kind=kind)))
        table.add_row(name, *texts, Text(titles[name][:50]))
    console.print(table)


def show_counters(proof: Proof, console: Console) -> None:
    """What HAKMEM itself counted, at the end of the last program of a run."""
    if not proof.counters:
        console.print("hakmem: the program ended without a word (killed, or by _exit)",
                      style="yellow")
        return
    table = _table("HAKMEM at the end of the program", ("", ""))
    for name, value in proof.counters.items():
        text = f"{value:,}" if name == "system_calls" else markdown.size(value)
        table.add_row(name.replace("_", " "), text)
    console.print(table)


def show_allocators(present: Mapping[str, Allocator], console: Console) -> None:
    table = _table("", ("allocator", "version", "settings"), first_left=3)
    for each in present.values():
        settings = " ".join(f"{name}={value}" for name, value in each.settings.items())
        table.add_row(each.name, Text(each.version), Text(settings))
    console.print(table)
