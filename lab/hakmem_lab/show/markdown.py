"""Digests in words and tables. A Table knows nothing of its medium; Markdown is one, HTML another.

Every figure that a document shows is formatted here, once.
"""

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hakmem_lab.show import sentences
from hakmem_lab.judge.digest import EFFECT, EQUIVALENCE, AllocatorDigest, CellDigest, Run
from hakmem_lab.judge.statistics import Ratio, Series
from hakmem_lab.judge.summary import Summary, may_rank, summarise

CONVENTION = ("Relative cost is an allocator's cost divided by the base's cost of the same round; "
              "the base is 1.00 and below 1 is better than the base.")
VERDICTS = {"base": "base", "less": "costs less", "more": "costs more", "floor": "floor",
            "level": f"level within {100 * EQUIVALENCE:.0f} %", "same": "not told apart",
            "too few": "too few rounds", "failed": "failed", "unpaired": "no round in common"}
NO_FLOOR = "the floor is no floor here"
NO_CURVE = "too short for a curve"
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))
ENVIRONMENT = (("commit", "commit"), ("compiler", "compiler"), ("build", "build"),
               ("flags", "flags"), ("cpu", "processor"), ("processors", "processors"),
               ("machine", "architecture"), ("memory_mib", "memory, MiB"),
               ("is_virtual", "virtual machine"), ("governor", "governor"),
               ("frequency_khz", "frequency, kHz"), ("kernel", "kernel"),
               ("thp", "transparent huge pages"), ("thp_defrag", "their defragmentation"),
               ("overcommit", "overcommit"), ("page_size", "page size, bytes"),
               ("c_library", "C library"), ("distribution", "distribution"),
               ("load_average", "load average at the start"), ("command", "command line"))


@dataclass(frozen=True)
class Field:
    text: str
    strong: bool = False
    note: str = ""  # of less weight, behind or under the text
    kind: str = ""  # "better" or "worse" than the base for real, "mark" for what needs attention


@dataclass(frozen=True)
class Table:
    heads: tuple[str, ...]
    rows: tuple[tuple[Field, ...], ...]
    spare: tuple[str, ...] = ()  # heads of what a narrow terminal leaves out, the first at first


def escaped(text: str) -> str:
    """As a cell of a Markdown table, or in a line of text, with nothing taken for markup."""
    text = printable(text).replace("&", "&amp;")
    for sign in "\\`*_[]|~":
        text = text.replace(sign, "\\" + sign)
    return text.replace("<", "&lt;").replace(">", "&gt;")


def printable(text: str) -> str:
    """In one line, and without signs that would command a terminal."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def code(text: str) -> str:
    """A span of code that nothing within the text can end."""
    text = printable(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    pad = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{pad}{text}{pad}{fence}"


def to_markdown(table: Table) -> str:
    lines = ["| " + " | ".join(map(escaped, table.heads)) + " |",
             "|---|" + "---:|" * (len(table.heads) - 1)]
    for row in table.rows:
        texts = [(f"**{escaped(each.text)}**" if each.strong else escaped(each.text))
                 + (f" ({escaped(each.note)})" if each.note else "") for each in row]
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None or math.isnan(value) else f"{value:.{digits}f}"


def significant(value: float | None) -> str:
    """Three digits that mean something, without an exponent."""
    if value is None or math.isnan(value):
        return "–"
    if value == 0:
        return "0"
    places = 2 - math.floor(math.log10(abs(value)))
    text = f"{value:.{min(max(places, 0), 6)}f}" if places > 0 else f"{value:,.0f}"
    return text.replace("-", "−")


def size(value: float | None) -> str:
    """Bytes in the unit that suits them."""
    if value is None or math.isnan(value):
        return "–"
    for unit, name in UNITS:
        if value >= unit:
            return f"{value / unit:.1f} {name}"
    return f"{value:.0f} B"


def cost(value: float | None, cell: CellDigest) -> str:
    """Nanoseconds per operation, or a whole program's time."""
    if value is None or math.isnan(value):
        return "–"
    if cell.counts_operations:
        return f"{significant(value)} ns/op"
    for unit, name in TIMES:
        if abs(value) >= unit:
            return f"{significant(value / unit)} {name}"
    return f"{significant(value)} ns"


def ratio(compared: Ratio | None, strong: bool = False, kind: str = "") -> Field:
    """Median with its 95 % interval, or with the number of pairs where there is no interval."""
    if compared is None:
        return Field("–")
    note = f"{_bound(compared.low, compared)}–{_bound(compared.high, compared)}"
    if math.isnan(compared.low):
        note = f"n = {compared.n}"
    elif compared.least == compared.most == 1:
        note = ""  # the base beside itself
    return Field(f"{compared.median:.2f}", strong, note, kind)


def _bound(value: float, compared: Ratio) -> str:
    """With as many digits as show that the interval excludes 1, if it does."""
    excludes = compared.low > 1 or compared.high < 1
    digits = next((digits for digits in (2, 3, 4, 5) if f"{value:.{digits}f}".strip("0") != "1."),
                  2)
    return f"{value:.{digits if excludes else 2}f}"


def kind_of(verdict: str) -> str:
    return {"less": "better", "more": "worse", "failed": "mark"}.get(verdict, "")


def summary_table(cells: Sequence[CellDigest]) -> Table:
    def row(each: Summary) -> tuple[Field, ...]:
        is_first = each is found[0] and may_rank(cells)
        counts = (each.less, each.level, each.same, each.more)
        return (Field(each.name), Field(number(each.relative_cost), is_first),
                Field(number(each.relative_peak)),
                *[Field(str(count) if each.ranked else "–") for count in (each.lowest, each.first)],
                *[Field(str(count) if any(counts) else "–") for count in counts],
                Field(str(each.cells)),
                Field(str(each.failed), kind="mark" if each.failed else ""))

    found = summarise(cells)
    base = cells[0].base if cells else "the base"
    heads = ("allocator", "relative cost, geometric mean", "relative peak RSS",
             "lowest median in", "of these for real", f"costs less than {base} in",
             "level in", "not told apart in", "costs more in", "cells", "failed in")
    return Table(heads, tuple(map(row, found)), (heads[7], heads[6], heads[9], heads[4]))


def extremes_table(cells: Sequence[CellDigest]) -> Table:
    """Where each allocator is at its best beside the base, and where at its worst."""
    rows = [(Field(each.name), Field(number(each.best[0])), Field(each.best[1]),
             Field(number(each.worst[0])), Field(each.worst[1]))
            for each in summarise(cells)
            if each.cells and not each.best[0] == each.worst[0] == 1]
    return Table(("allocator", "best relative cost", "in", "worst relative cost", "in"),
                 tuple(rows))


def family_table(run: Run, family: str) -> Table:
    """Rows are settings, columns allocators; the lowest median of a setting stands out."""
    cells = run.of_family(family)
    present = {each.name for cell in cells for each in cell.allocators}
    names = [name for name in run.allocators if name in present]
    rows = [(Field(cell.name), *[_family_field(cell, name) for name in names]) for cell in cells]
    return Table(("setting", *names), tuple(rows))


def _family_field(cell: CellDigest, name: str) -> Field:
    own = cell.of(name)
    if own is None:
        return Field("–")
    if own.cost is None:
        return Field("failed", kind="mark")
    shown = ratio(own.relative_cost)
    if own.failures:
        return Field(shown.text, False, "failed once or more", "mark")
    if own.is_floor and not cell.floor_holds:
        return Field(shown.text, False, f"{shown.note}; no floor here", "mark")
    return replace(shown, strong=_is_first(cell, name), kind=kind_of(own.verdict))


def cost_table(cell: CellDigest) -> Table:
    """All that statistics say of each allocator's cost in one cell."""
    return Table(("allocator", "n", "median", "mean", "standard deviation", "variation", "min",
                  "max", "95 % of the mean", "outlier rounds", "net cost", "relative cost",
                  "verdict", "p, adjusted", f"rounds to see {100 * EFFECT:.0f} %"),
                 tuple(_cost_row(cell, each) for each in cell.allocators))


def _cost_row(cell: CellDigest, each: AllocatorDigest) -> tuple[Field, ...]:
    if each.cost is None:
        return (Field(each.name), Field("0"), *[Field("–")] * 10,
                Field("failed", kind="mark"), Field("–"), Field("–"))
    told: Series = each.cost
    outliers = ", ".join(map(str, each.outlier_rounds))
    return (Field(each.name), Field(str(told.n)), Field(cost(told.median, cell)),
            Field(cost(told.mean, cell)), Field(cost(told.deviation, cell)),
            Field(f"{100 * told.variation:.1f} %"), Field(cost(told.least, cell)),
            Field(cost(told.most, cell)), Field(_interval(told, cell)),
            Field(outliers or "–", kind="mark" if outliers else ""), _net(cell, each),
            ratio(each.relative_cost, _is_first(cell, each.name), kind_of(each.verdict)),
            Field(VERDICTS[each.verdict], kind=kind_of(each.verdict)),
            Field("–" if math.isnan(each.adjusted_p) else f"{each.adjusted_p:.3f}"),
            Field(f"about {each.runs_to_see}" if each.runs_to_see else "–"))


def _interval(told: Series, cell: CellDigest) -> str:
    if told.n < 2:
        return "–"
    if cell.counts_operations:
        return f"{significant(told.low)}–{significant(told.high)}"
    return f"{cost(told.low, cell)}–{cost(told.high, cell)}"


def _net(cell: CellDigest, each: AllocatorDigest) -> Field:
    """Marked where the floor costs more: what is left is then no cost of allocating."""
    if each.net_cost_ns is not None and each.net_cost_ns < 0:
        return Field(cost(each.net_cost_ns, cell), note=NO_FLOOR, kind="mark")
    return Field(cost(each.net_cost_ns, cell))


def _is_first(cell: CellDigest, name: str) -> bool:
    return cell.standing is not None and name == cell.standing.first


def resource_table(cell: CellDigest) -> Table:
    """Medians of what it took besides: memory, processor time, page faults."""
    def middle(series: Series | None) -> float | None:
        return series.median if series else None

    def is_least(name: str) -> bool:
        return cell.memory is not None and name == cell.memory.first

    def row(each: AllocatorDigest) -> tuple[Field, ...]:
        area = middle(each.rss_byte_seconds)
        return (Field(each.name), Field(size(middle(each.peak_rss))),
                ratio(each.relative_peak, is_least(each.name), kind_of(each.peak_verdict)),
                Field(size(middle(each.mean_rss))),
                Field(f"{size(area)}·s" if area else "–"), Field(size(middle(each.end_rss))),
                Field(size(each.most_lazy_free)),
                Field(f"{significant(middle(each.wall))} s"),
                Field(f"{significant(middle(each.cpu))} s"),
                Field(significant(middle(each.minor_faults))),
                Field(str(each.most_major_faults), kind="mark" if each.most_major_faults else ""))
    return Table(("allocator", "peak RSS", "relative peak RSS", "mean RSS", "RSS over time",
                  "RSS at the end", "LazyFree, most", "wall time", "CPU time", "minor faults",
                  "major faults, most"),
                 tuple(map(row, cell.allocators)))


def failure_table(cells: Sequence[CellDigest]) -> Table:
    rows = [(Field(cell.name), Field(each.name), Field(sentences.named_rounds([number])),
             Field(reason, kind="mark"))
            for cell in cells for each in cell.allocators for number, reason in each.failures]
    return Table(("cell", "allocator", "round", "reason"), tuple(rows))


def environment_pairs(run: Run) -> list[tuple[str, str]]:
    """Name and value of all that the record tells, known names first."""
    known = dict(run.environment)
    known.pop("allocators", None)
    dirty = bool(known.pop("dirty", False)) or any(row.dirty for row in run.rows)
    known["commit"] = ", ".join(sorted({row.commit for row in run.rows})) \
        + (", with uncommitted changes" if dirty else ", clean")
    pairs = [(name, _plain(known.pop(key))) for key, name in ENVIRONMENT if key in known]
    return pairs + [(name, _plain(value)) for name, value in sorted(known.items())]


def _plain(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def versions(run: Run) -> list[tuple[str, str]]:
    """Allocator and version, with the settings that its rows had beyond the others'."""
    found: dict[str, str] = {}
    for row in run.rows:
        told = run.environment.get("allocators", {})
        settings = told.get(row.allocator, {}).get("settings", {}) if isinstance(told, dict) else {}
        words = " ".join(f"{name}={value}" for name, value in settings.items())
        found.setdefault(row.allocator, ", ".join(filter(None, (row.version, words))))
    return list(found.items())


def environment_paragraph(run: Run) -> str:
    told = "; ".join(f"{name}: {value}" for name, value in environment_pairs(run))
    allocators = "; ".join(f"{name} {version}".strip() for name, version in versions(run))
    source = escaped(sentences.source_line(run))
    return f"{source} {escaped(told)}. Allocators: {escaped(allocators)}."


def report_markdown(runs: Sequence[Run]) -> str:
    """The whole report as Markdown, one part per run."""
    lines = ["# Measured", "", CONVENTION, ""]
    for run in runs:
        label = sentences.smoke_label(run.fewest_pairs)
        lines += [f"## {escaped(run.name)}", "", *([f"**{label}**", ""] if label else []),
                  environment_paragraph(run), "", escaped(sentences.headline(run.cells)), "",
                  to_markdown(summary_table(run.cells)), "",
                  to_markdown(extremes_table(run.cells)), ""]
        failures = failure_table(run.cells)
        if failures.rows:
            lines += ["### Failures", "", to_markdown(failures), ""]
        for family in run.families:
            lines += [f"### {escaped(family)}", "", to_markdown(family_table(run, family)), ""]
            for cell in run.of_family(family):
                lines += [cell_markdown(cell, "####"), ""]
    return "\n".join(lines)


def cell_markdown(cell: CellDigest, heading: str = "") -> str:
    label = sentences.smoke_label(cell.pairs)
    lines = [f"{heading} {escaped(cell.name)}", ""] if heading else []
    said = [f"{code(cell.command)}.", *map(escaped, sentences.of_cell(cell)),
            *([f"**{label}**"] if label else [])]
    failures = failure_table([cell])
    return "\n".join([*lines, " ".join(said), "", to_markdown(cost_table(cell)), "",
                      to_markdown(resource_table(cell)),
                      *(["", to_markdown(failures)] if failures.rows else [])])
