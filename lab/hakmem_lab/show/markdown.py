"""Digests in tables. A Table knows nothing of its medium; Markdown is one, HTML another.

Every figure that a document shows is formatted here, once.
"""

import math
import re
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from hakmem_lab.show import sentences
from hakmem_lab.judge.digest import AllocatorDigest, Basis, CellDigest, Run, Told
from hakmem_lab.judge.statistics import Mean, Ratio, Verdict
from hakmem_lab.judge.summary import Summary, regrets, summarise
from hakmem_lab.measure.subject import printable

CONVENTION = ("A ratio is an allocator's figure divided by the base's of the same round; "
              "the base is 1.00 and below 1 is better than the base.")
MARKS = "Bold: the lowest median of the row. ▾: significantly below the base."
UNITS = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
TIMES = ((1e9, "s"), (1e6, "ms"), (1e3, "µs"))


@dataclass(frozen=True)
class Field:
    text: str
    strong: bool = False
    note: str = ""  # of less weight, behind or under the text
    kind: str = ""  # significantly "better" or "worse" than the base; "mark": needs attention


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


def to_markdown(table: Table) -> str:
    lines = ["| " + " | ".join(map(escaped, table.heads)) + " |",
             "|---|" + "---:|" * (len(table.heads) - 1)]
    for row in table.rows:
        texts = [(f"**{escaped(each.text)}**" if each.strong else escaped(each.text))
                 + " ▾" * (each.kind == "better")
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


def time(value: float | None, cell: CellDigest) -> str:
    """Nanoseconds per operation, or the time of a whole program."""
    if cell.basis is Basis.OPERATION and value is not None:
        return f"{significant(value)} ns/op"
    return duration(value)


def duration(value: float | None) -> str:
    """Nanoseconds in the unit that suits them."""
    if value is None or math.isnan(value):
        return "–"
    unit, name = next((each for each in TIMES if abs(value) >= each[0]), (1, "ns"))
    return f"{significant(value / unit)} {name}"


def area(value: float | None) -> str:
    return f"{size(value)}·s" if value else "–"


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


def mean(told: Mean, strong: bool = False) -> Field:
    """With its interval, unless it is the base beside itself."""
    has_interval = not math.isnan(told.low) and told.low < told.high
    return Field(number(told.value), strong,
                 f"{told.low:.2f}–{told.high:.2f}" if has_interval else "")


def kind_of(verdict: Verdict) -> str:
    return {Verdict.LESS: "better", Verdict.MORE: "worse", Verdict.FAILED: "mark"}.get(verdict, "")


def said(told: Told) -> str:
    """A verdict in words; where nothing was found, with what could have been."""
    seen = told.smallest_seen
    if told.verdict is Verdict.SAME and not math.isnan(seen):
        return f"{told.verdict.value} (could have seen {sentences.percent(seen)})"
    return told.verdict.value


def summary_table(cells: Sequence[CellDigest]) -> Table:
    """The allocators over the cells of one group, by the time that it is judged by."""
    base = cells[0].base
    has_wall = any(cell.basis is Basis.CPU for cell in cells)

    def row(each: Summary) -> tuple[Field, ...]:
        counts = (each.ahead, each.behind, each.lighter, each.heavier)
        return (Field(each.name), Field(str(each.rank or "–")),
                mean(each.means["time"], each.rank == 1),
                *([mean(each.means["wall"])] if has_wall else []),
                mean(each.means["peak"]), mean(each.means["area"]),
                *[Field(str(count) if each.name != base and each.rank else "–")
                  for count in counts],
                Field(str(each.failed), kind="mark" if each.failed else ""))

    heads = ("allocator", "rank", sentences.basis_of(cells), *(["wall time"] if has_wall else []),
             "peak RSS", "RSS × time", f"less time than {base} in", "more time in",
             "less peak RSS in", "more RSS in", "failed in")
    return Table(heads, tuple(map(row, summarise(cells))), (heads[-2], heads[-3], "RSS × time"))


def regret_table(cells: Sequence[CellDigest], names: Sequence[str], prices: Sequence[int]) -> Table:
    """For each price of a GiB and second, in ms: the mean regret of each, and the largest."""
    found = [regrets(cells, names, price) for price in prices]
    rows = [(Field(name), *[
        Field("failed", kind="mark") if math.inf in (of[name] or [math.inf]) else
        Field(sentences.percent(sum(of[name]) / len(of[name])),
              note=f"at most {sentences.percent(max(of[name]))}")
        for of in found]) for name in names]
    return Table(("allocator", *[f"at {price} ms" for price in prices]), tuple(rows))


def family_table(run: Run, family: str, figure: str = "time") -> Table:
    """Rows are settings, columns allocators; the lowest median of a setting stands out. Beside
    peak memory stands memory over time."""
    cells = run.of_family(family)
    present = {each.name for cell in cells for each in cell.allocators}
    names = [name for name in run.allocators if name in present]
    rows = [(Field(cell.name), *[_family_field(cell, name, figure) for name in names])
            for cell in cells]
    return Table(("setting", *names), tuple(rows))


def losses_table(cells: Sequence[CellDigest], figures: Sequence[str]) -> Table:
    """Rows are cells in which another is significantly below the base, the lowest named first."""
    heads = {"time": sentences.basis_of(cells), "peak": "peak RSS", "end": "RSS at the end"}
    rows = [(Field(cell.name), *[Field(_below(cell, figure)) for figure in figures])
            for cell in cells if any(_below(cell, figure) != "–" for figure in figures)]
    return Table(("setting", *[heads[figure] for figure in figures]), tuple(rows))


def _below(cell: CellDigest, figure: str) -> str:
    found = sorted((told.median, own.name) for own in cell.allocators
                   if (told := own.ratio(figure)) and own.verdict(figure) is Verdict.LESS)
    return sentences.listed([f"{name} {number(median)}" for median, name in found]) \
        if found else "–"


def medians_table(run: Run, cell: CellDigest, figures: Sequence[str]) -> Table:
    """Of figures that the program of a cell reports; those in nanoseconds end in _ns."""
    names = [name for name in run.allocators if cell.of(name)]
    rows = []
    for figure in figures:
        medians = {}
        for name in names:
            found = [row.figures[figure] for row in run.rows_of(cell)
                     if row.allocator == name and row.is_ok and figure in row.figures]
            medians[name] = statistics.median(found) if found else math.nan
        least = min((value for value in medians.values() if not math.isnan(value)), default=None)
        shown = duration if figure.endswith("_ns") else significant
        rows.append((Field(figure.removesuffix("_ns").replace("_", " ")),
                     *[Field(shown(medians[name]), medians[name] == least) for name in names]))
    return Table(("figure", *names), tuple(rows))


def _family_field(cell: CellDigest, name: str, figure: str) -> Field:
    own = cell.of(name)
    if own is None:
        return Field("–")
    if not own.told:
        return Field("failed", kind="mark")
    shown = ratio(own.ratio(figure), is_first(cell, name, figure), kind_of(own.verdict(figure)))
    if own.failures:
        return Field(shown.text, False, "failed once or more", "mark")
    if figure == "peak":
        over_time = own.ratio("area")
        return Field(shown.text, shown.strong,
                     number(over_time.median if over_time else None), shown.kind)
    return shown


def is_first(cell: CellDigest, name: str, figure: str = "time") -> bool:
    return figure in cell.standings and name == cell.standings[figure].first


def ordered(cell: CellDigest) -> list[AllocatorDigest]:
    """By the ratio, which is what is shown; what failed last."""
    return sorted(cell.allocators, key=lambda own: told.median if (told := own.ratio("time"))
                  else math.inf)


def time_table(cell: CellDigest) -> Table:
    """All that statistics say of each allocator's time in one cell."""
    return Table(("allocator", "rounds", f"{cell.basis.value}, ratio", "verdict", "p, adjusted",
                  "median", "least", "most", "variation", "wall time, median", "outlier rounds"),
                 tuple(_time_row(cell, each) for each in ordered(cell)))


def _time_row(cell: CellDigest, each: AllocatorDigest) -> tuple[Field, ...]:
    if "time" not in each.told:
        return (Field(each.name), Field("0"), Field("–"), Field("failed", kind="mark"),
                *[Field("–")] * 7)
    told, outliers = each.told["time"], ", ".join(map(str, each.outlier_rounds))
    series, kind = told.series, kind_of(told.verdict)
    return (Field(each.name), Field(str(series.n)),
            ratio(told.ratio, is_first(cell, each.name), kind), Field(said(told), kind=kind),
            Field("–" if math.isnan(told.adjusted_p) else f"{told.adjusted_p:.3f}"),
            *[Field(time(value, cell)) for value in (series.median, series.least, series.most)],
            Field(f"{100 * series.variation:.1f} %"), Field(duration(each.median("wall"))),
            Field(outliers or "–", kind="mark" if outliers else ""))


def resource_table(cell: CellDigest) -> Table:
    """Medians of the memory that it took, each with its ratio to the base's, and page faults."""
    def amount(each: AllocatorDigest, figure: str, shown: Callable[[float | None], str]) -> Field:
        told = each.ratio(figure)
        return Field(shown(each.median(figure)), is_first(cell, each.name, figure),
                     number(told.median) if told else "", kind_of(each.verdict(figure)))

    def row(each: AllocatorDigest) -> tuple[Field, ...]:
        return (Field(each.name), amount(each, "peak", size), amount(each, "mean", size),
                amount(each, "area", area), amount(each, "end", size),
                Field(size(each.most_lazy_free)), Field(significant(each.median("faults"))),
                Field(str(each.most_major_faults), kind="mark" if each.most_major_faults else ""))
    return Table(("allocator", "peak RSS", "mean RSS", "RSS × time", "RSS at the end",
                  "LazyFree, most", "minor faults", "major faults, most"),
                 tuple(row(each) for each in ordered(cell) if each.told))


def failure_table(cells: Sequence[CellDigest]) -> Table:
    rows = [(Field(cell.name), Field(each.name), Field(f"round {number}"),
             Field(reason, kind="mark"))
            for cell in cells for each in cell.allocators for number, reason in each.failures]
    return Table(("cell", "allocator", "round", "reason"), tuple(rows))


def environment_pairs(run: Run) -> list[tuple[str, str]]:
    """Name and value of all that the record tells."""
    dirty = any(row.dirty for row in run.rows) or run.environment.get("dirty", False)
    commits = ", ".join(sorted({row.commit for row in run.rows} - {""}))
    known = {name: value for name, value in run.environment.items()
             if name not in ("allocators", "dirty", "commit") and value != ""}
    return [("commit", f"{commits}, {'with uncommitted changes' if dirty else 'clean'}"),
            *[(name.replace("_", " "), ("no", "yes")[value] if isinstance(value, bool)
               else str(value)) for name, value in known.items()]]


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
