"""Digests in words and tables. A Table knows nothing of its medium; Markdown is one, HTML another.

Every figure that a document shows is formatted here, once.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hakmem_lab.digest import EFFECT, AllocatorDigest, CellDigest, Run, Summary, summarise
from hakmem_lab.statistics import PAIRS_FOR_A_CLAIM, Ratio, Series

CONVENTION = ("Relative cost is an allocator's cost divided by the base's cost of the same round; "
              "the base is 1.00 and below 1 is better than the base.")
VERDICTS = {"base": "base", "less": "costs less", "more": "costs more", "floor": "floor",
            "same": "no difference seen", "too few": "too few rounds", "failed": "failed",
            "unpaired": "no round in common"}
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


def escaped(text: str) -> str:
    """As a cell of a Markdown table, or in a line of text, with nothing taken for markup."""
    for sign in "\\`*_[]|":
        text = text.replace(sign, "\\" + sign)
    return text.replace("<", "&lt;").replace(">", "&gt;").replace("\n", " ")


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
    note = f"{compared.low:.2f}–{compared.high:.2f}"
    if math.isnan(compared.low):
        note = f"n = {compared.n}"
    elif compared.least == compared.most == 1:
        note = ""  # the base beside itself
    return Field(f"{compared.median:.2f}", strong, note, kind)


def _kind(each: AllocatorDigest) -> str:
    return {"less": "better", "more": "worse", "failed": "mark"}.get(each.verdict, "")


def summary_table(cells: Sequence[CellDigest]) -> Table:
    def row(each: Summary) -> tuple[Field, ...]:
        net = f"of {each.net_cells}" if each.net_cells else ""
        return (Field(each.name), Field(number(each.relative_cost), each is found[0]),
                Field(number(each.net_ratio), note=net), Field(number(each.relative_peak)),
                Field(str(each.first_alone)), Field(str(each.first_level)), Field(_verdicts(each)),
                Field(str(each.cells)),
                Field(str(each.failed), kind="mark" if each.failed else ""))

    found = summarise(cells)
    return Table(("allocator", "relative cost, geometric mean", "net cost ratio (of cells)",
                  "relative peak RSS", "first, alone", "first, within the noise",
                  "less/same/more than the base in", "cells compared", "cells failed"),
                 tuple(map(row, found)))


def extremes_table(cells: Sequence[CellDigest]) -> Table:
    """Where each allocator is at its best beside the base, and where at its worst."""
    rows = [(Field(each.name), Field(number(each.best[0])), Field(each.best[1]),
             Field(number(each.worst[0])), Field(each.worst[1]))
            for each in summarise(cells)
            if each.cells and not each.best[0] == each.worst[0] == 1]
    return Table(("allocator", "best relative cost", "in", "worst relative cost", "in"),
                 tuple(rows))


def _verdicts(each: Summary) -> str:
    counts = (each.less, each.same, each.more)
    return "/".join(map(str, counts)) if any(counts) else "–"


def family_table(run: Run, family: str) -> Table:
    """Rows are settings, columns allocators; who is first stands out, and who is level with it."""
    cells = run.of_family(family)
    present = {each.name for cell in cells for each in cell.allocators}
    names = [name for name in run.allocators if name in present]
    rows = []
    for cell in cells:
        standing = cell.standing
        first = (standing.first, *standing.level) if standing else ()
        fields = [Field(cell.name)]
        for name in names:
            own = cell.of(name)
            if own is None:
                fields.append(Field("–"))
            elif own.cost is None:
                fields.append(Field("failed", kind="mark"))
            elif own.failures:
                shown = ratio(own.relative_cost)
                fields.append(Field(shown.text, False, "failed once or more", "mark"))
            else:
                fields.append(ratio(own.relative_cost, name in first, _kind(own)))
        rows.append(tuple(fields))
    return Table(("setting", *names), tuple(rows))


def cost_table(cell: CellDigest) -> Table:
    """All that statistics say of each allocator's cost in one cell."""
    def row(each: AllocatorDigest) -> tuple[Field, ...]:
        if each.cost is None:
            return (Field(each.name), Field("0"), *[Field("–")] * 10,
                    Field("failed", kind="mark"), Field("–"), Field("–"))
        told: Series = each.cost
        outliers = ", ".join(map(str, each.outlier_rounds))
        p = "–" if math.isnan(each.adjusted_p) else f"{each.adjusted_p:.3f}"
        return (Field(each.name), Field(str(told.n)), Field(cost(told.median, cell)),
                Field(cost(told.mean, cell)), Field(cost(told.deviation, cell)),
                Field(f"{100 * told.variation:.1f} %"), Field(cost(told.least, cell)),
                Field(cost(told.most, cell)),
                Field(f"{significant(told.low)}–{significant(told.high)}"
                      if told.n > 1 and cell.counts_operations
                      else f"{cost(told.low, cell)}–{cost(told.high, cell)}"),
                Field(outliers or "–", kind="mark" if outliers else ""),
                Field(cost(each.net_cost_ns, cell)),
                ratio(each.relative_cost, _is_first(cell, each.name), _kind(each)),
                Field(VERDICTS[each.verdict], kind=_kind(each)), Field(p),
                Field(f"about {each.runs_to_see}" if each.runs_to_see else "–"))
    return Table(("allocator", "n", "median", "mean", "standard deviation", "variation", "min",
                  "max", "95 % of the mean", "outlier rounds", "net cost", "relative cost",
                  "verdict", "p, adjusted", f"rounds to see {100 * EFFECT:.0f} %"),
                 tuple(map(row, cell.allocators)))


def _is_first(cell: CellDigest, name: str) -> bool:
    return cell.standing is not None and name in (cell.standing.first, *cell.standing.level)


def resource_table(cell: CellDigest) -> Table:
    """Medians of what it took besides: memory, processor time, page faults."""
    def middle(series: Series | None) -> float | None:
        return series.median if series else None

    def row(each: AllocatorDigest) -> tuple[Field, ...]:
        area = middle(each.rss_byte_seconds)
        return (Field(each.name), Field(size(middle(each.peak_rss))),
                ratio(each.relative_peak), Field(size(middle(each.mean_rss))),
                Field(f"{size(area)}·s" if area else "–"),
                Field(f"{significant(middle(each.wall))} s"),
                Field(f"{significant(middle(each.cpu))} s"),
                Field(significant(middle(each.minor_faults))))
    return Table(("allocator", "peak RSS", "relative peak RSS", "mean RSS", "RSS over time",
                  "wall time", "CPU time", "minor faults"),
                 tuple(map(row, cell.allocators)))


def failure_table(cells: Sequence[CellDigest]) -> Table:
    rows = [(Field(cell.name), Field(each.name), Field(str(number)), Field(reason, kind="mark"))
            for cell in cells for each in cell.allocators for number, reason in each.failures]
    return Table(("cell", "allocator", "round", "reason"), tuple(rows))


def standing_sentence(cell: CellDigest) -> str:
    if cell.standing is None:
        return "Nothing to rank: fewer than two allocators have figures without a failure."
    if cell.standing.is_alone:
        return f"{cell.standing.first} costs least; its lead on every other is real."
    return (f"{cell.standing.first} costs least, within the noise of "
            f"{', '.join(cell.standing.level)}.")


def power_sentence(cell: CellDigest) -> str:
    """How far the cell is from showing a small difference."""
    needed = sorted((each.runs_to_see, each.name) for each in cell.allocators
                    if each.runs_to_see and not each.is_floor)
    if not needed:
        return f"Too few rounds ({cell.pairs}) to tell how many it needs."
    most, name = needed[-1]
    median = needed[len(needed) // 2][0]
    return (f"Needs about {median} runs to see {100 * EFFECT:.0f} % ({name}, the most unsteady, "
            f"about {most}); it has {cell.pairs}.")


def smoke_label(pairs: int) -> str:
    """Empty where the rounds suffice for a claim."""
    if pairs >= PAIRS_FOR_A_CLAIM:
        return ""
    return f"Smoke test: {rounds_text(pairs)}, a claim needs {PAIRS_FOR_A_CLAIM}."


def rounds_text(count: int) -> str:
    return f"{count} round" + ("" if count == 1 else "s")


def source_line(run: Run) -> str:
    """From where, how often, when, at which commit: the caption of every figure."""
    commits = sorted({row.commit + (" with changes" if row.dirty else "") for row in run.rows})
    days = sorted({row.time[:10] for row in run.rows})
    most = max((len(each.rounds) for cell in run.cells for each in cell.allocators), default=0)
    fewest = run.fewest_pairs
    rounds = rounds_text(most) if fewest == most else f"{fewest} to {most} rounds"
    return (f"{run.name}: {rounds}, {' to '.join(dict.fromkeys((days[0], days[-1])))}, "
            f"commit {', '.join(commits)}; base: {run.base}.")


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
    return f"{escaped(source_line(run))} {escaped(told)}. Allocators: {escaped(allocators)}."


def report_markdown(runs: Sequence[Run]) -> str:
    """The whole report as Markdown, one part per run."""
    lines = ["# Measured", "", CONVENTION, ""]
    for run in runs:
        label = smoke_label(run.fewest_pairs)
        lines += [f"## {escaped(run.name)}", "", *([f"**{label}**", ""] if label else []),
                  environment_paragraph(run), "", to_markdown(summary_table(run.cells)), "",
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
    label = smoke_label(cell.pairs)
    lines = [f"{heading} {escaped(cell.name)}", ""] if heading else []
    sentences = [f"`{cell.command}`.", escaped(standing_sentence(cell)),
                 escaped(power_sentence(cell)), *([f"**{label}**"] if label else [])]
    failures = failure_table([cell])
    return "\n".join([*lines, " ".join(sentences), "", to_markdown(cost_table(cell)), "",
                      to_markdown(resource_table(cell)),
                      *(["", to_markdown(failures)] if failures.rows else [])])
