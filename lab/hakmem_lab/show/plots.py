"""Digests as pictures: SVG as text, the same bytes for the same figures.

An allocator has one colour everywhere (Okabe and Ito's palette, which colour-blind readers can
tell apart), and its name stands beside its mark, so no picture rests on colour alone.
"""

import html
import io
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from hakmem_lab.show import markdown
from hakmem_lab.judge.digest import LINKED, CellDigest, Run, is_linked
from hakmem_lab.judge.summary import summarise

INK, FAINT, LINE, PAPER = "#1f2328", "#656d76", "#d1d9e0", "#ffffff"
WIDTH_INCHES = 8.6  # 826 pixels: the width of a page on GitHub
ROW_INCHES = 0.175
PANELS_IN_A_ROW = 3
COLOURS = {
    "hakmem": "#d55e00", "system": "#8c959f", "mimalloc3": "#0072b2", "mimalloc2": "#56b4e9",
    "mimalloc": "#0072b2", "jemalloc": "#009e73", "snmalloc": "#cc79a7", "tcmalloc": "#e69f00",
    "rpmalloc": "#b3a400", "floor": "#afb8c1", "debian-gperftools": "#882255",
    "debian-tbb": "#332288", "debian-mimalloc": "#88ccee", "debian-jemalloc": "#44aa99",
}
FURTHER = ("#332288", "#117733", "#882255", "#44aa99", "#999933", "#aa4499", "#661100", "#6699cc")
STYLE: dict[str, Any] = {
    "svg.fonttype": "none", "font.family": "sans-serif",
    # The first one comes with matplotlib, so the layout does not depend on the machine's fonts.
    "font.sans-serif": ["DejaVu Sans", "Verdana", "Helvetica", "Arial"],
    "font.size": 8, "text.color": INK, "axes.labelcolor": FAINT, "axes.edgecolor": LINE,
    "xtick.color": FAINT, "ytick.color": INK, "axes.titlesize": 8.5, "axes.titlecolor": INK,
    "axes.titlelocation": "left", "axes.spines.top": False, "axes.spines.right": False,
    "axes.spines.left": False, "grid.color": LINE, "grid.linewidth": 0.6,
    "figure.facecolor": PAPER, "axes.facecolor": PAPER, "axes.axisbelow": True,
    "xtick.major.size": 0, "ytick.major.size": 0, "figure.dpi": 72, "text.parse_math": False,
}


@dataclass(frozen=True)
class Bar:
    name: str
    value: float  # NaN: none, and `text` says why
    low: float
    high: float
    text: str


@dataclass(frozen=True)
class Panel:
    title: str
    bars: tuple[Bar, ...]


def colour(name: str) -> str:
    """Fixed for the allocators we know; another's follows from its name."""
    root = name.removesuffix(LINKED).partition(" ")[0]
    for known in (root, root.partition("-")[0]):
        if known in COLOURS:
            return COLOURS[known]
    return FURTHER[sum(map(ord, root)) % len(FURTHER)]


@contextmanager
def _figure(name: str, rows: int, columns: int, height: float,
            ) -> Iterator[tuple[Any, list[list[Any]], list[str]]]:
    """A figure to draw in, whose SVG is appended to the list that comes with it."""
    import matplotlib  # here: terminals need the colours alone, and it is loaded slowly
    from matplotlib.figure import Figure
    svg: list[str] = []
    style: Any = STYLE | {"svg.hashsalt": name}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(WIDTH_INCHES, height))
        axes = figure.subplots(rows, columns, squeeze=False)
        yield figure, [list(each) for each in axes], svg
        text = io.StringIO()
        figure.savefig(text, format="svg",
                       metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    opening = f'<svg role="img" aria-label="{html.escape(markdown.printable(name))}"'
    svg.append(_compact(text.getvalue()).replace("<svg", opening, 1))


def _compact(svg: str) -> str:
    """Without prologue, comments and names that nothing refers to, so that many can stand in one
    page; to a hundredth of a point."""
    svg = svg[svg.index("<svg"):]
    svg = re.sub(r"<!--.*?-->\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r" <metadata>.*?</metadata>\s*", "", svg, flags=re.DOTALL)
    svg = re.sub(r'<g id="[^"]*"', "<g", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d+\.\d{2})\d+", r"\1", tag[0]), svg)
    return re.sub(r"\n\s*", "\n", svg)


def _in_lines(words: str, length: int) -> str:
    return "\n".join(textwrap.wrap(markdown.printable(words), length, max_lines=2, placeholder=" …",
                                   break_on_hyphens=False))


def _log_ticks(axis: Any, low: float, high: float) -> None:
    from matplotlib import ticker
    steps = [1.0, 3.0] if high / low > 40 else [1.0, 2.0, 5.0] if high / low > 6 else \
        [1.0, 1.5, 2.0, 3.0, 4.0, 6.0]
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks = [step * 10.0 ** power for power in powers for step in steps]
    if high / low < 2.2:
        ticks = [0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.2]
    axis.xaxis.set_major_locator(ticker.FixedLocator([t for t in ticks if low <= t <= high]))
    axis.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.xaxis.set_minor_locator(ticker.NullLocator())


def _draw_panel(axis: Any, panel: Panel, origin: float, names: bool) -> None:
    for place, bar in enumerate(panel.bars):
        if math.isnan(bar.value):
            axis.annotate(bar.text, (origin, place), xytext=(6, 0), va="center", fontsize=7,
                          textcoords="offset points", color=FAINT)
            continue
        linked = is_linked(bar.name)
        axis.barh(place, bar.value - origin, left=origin, height=0.7, color=colour(bar.name),
                  alpha=0.55 if linked else 1.0, linewidth=0)
        end = max(bar.value, origin)
        if not math.isnan(bar.low):
            axis.plot([bar.low, bar.high], [place, place], color=INK, linewidth=1.0)
            end = max(end, bar.high)
        axis.annotate(bar.text, (end, place), xytext=(6 if bar.value == origin else 3, 0),
                      va="center", fontsize=7,
                      textcoords="offset points", color=INK if bar.value < origin else FAINT,
                      fontweight="bold" if bar.value < origin > 0 else "normal")
        if bar.value == origin:
            axis.plot(origin, place, "o", markersize=4.5, color=colour(bar.name))
    axis.axvline(origin, color=INK, linewidth=0.8)
    axis.set_yticks(range(len(panel.bars)),
                    [markdown.printable(bar.name) for bar in panel.bars] if names else [])
    axis.set_ylim(len(panel.bars) - 0.4, -0.6)
    axis.set_title(panel.title)
    axis.grid(axis="x")


def _bars(panels: Sequence[Panel], name: str, label: str, is_ratio: bool) -> str:
    """Small multiples. Ratios share one logarithmic axis, on which 0.5 and 2 are equally far."""
    columns = min(PANELS_IN_A_ROW, max(1, len(panels)))
    lines = math.ceil(len(panels) / columns)
    panels = [replace(panel, title=_in_lines(panel.title, 114 // columns)) for panel in panels]
    titles = 0.13 * max("\n" in panel.title for panel in panels)
    height = lines * (ROW_INCHES * max(len(panel.bars) for panel in panels) + 0.52 + titles) + 0.3
    ends = [value for panel in panels for bar in panel.bars for value in
            (bar.value, bar.low, bar.high) if not math.isnan(value)] or [1.0]
    namings = {tuple(bar.name for bar in panel.bars) for panel in panels}
    with _figure(name, lines, columns, height) as (figure, axes, svg):
        for place in range(lines * columns):
            axis = axes[place // columns][place % columns]
            if place >= len(panels):
                axis.set_visible(False)
                continue
            if is_ratio:
                low, high = min([*ends, 0.9]) / 1.04, max([*ends, 1.1])
                high *= (high / low) ** 0.30  # room for the figures beside the bars
                axis.set_xscale("log")
                axis.set_xlim(low, high)
                _log_ticks(axis, low, high)
            has_names = place % columns == 0 or len(namings) > 1
            _draw_panel(axis, panels[place], 1.0 if is_ratio else 0.0, has_names)
            if not is_ratio:
                axis.margins(x=0.22)
        figure.supxlabel(label, fontsize=8, color=FAINT)
        figure.tight_layout(pad=0.5, w_pad=1.2, h_pad=1.0)
    return svg[0]


def _cost_bar(cell: CellDigest, name: str) -> Bar:
    own = cell.of(name)
    nothing = math.nan
    if own is None or own.cost is None:
        return Bar(name, nothing, nothing, nothing, "not run" if own is None else "failed")
    if own.relative_cost is None:
        return Bar(name, nothing, nothing, nothing, "no round with the base")
    told = own.relative_cost
    is_base = name == cell.base
    return Bar(name, told.median, nothing if is_base else told.low,
               nothing if is_base else told.high,
               f"{told.median:.2f}" + (" base" if is_base else "")
               + (" *" if own.failures else ""))


def _names(run: Run, cells: Sequence[CellDigest]) -> list[str]:
    present = {each.name for cell in cells for each in cell.allocators if not each.is_floor}
    return [name for name in run.allocators if name in present]


def _cost_label(base: str) -> str:
    base = markdown.printable(base)
    return f"relative cost, {base} = 1 (logarithmic): to the left cheaper, to the right dearer"


def summary_plot(run: Run) -> str:
    """Geometric means of the relative cost, family by family, then over all."""
    panels = []
    groups = [(family, run.of_family(family)) for family in run.families]
    for title, cells in [*groups, *([("all families", run.cells)] if len(groups) > 1 else [])]:
        found = {each.name: each for each in summarise(cells)}
        bars = [Bar(name, found[name].relative_cost, math.nan, math.nan,
                    _number_or(found[name].relative_cost, "failed" if found[name].failed else "–"))
                for name in _names(run, run.cells) if name in found]
        count = f"{len(cells)} cell" + ("" if len(cells) == 1 else "s")
        panels.append(Panel(f"{title} ({count})", tuple(bars)))
    return _bars(panels, f"summary {run.name}", _cost_label(run.base), is_ratio=True)


def _number_or(value: float, otherwise: str) -> str:
    return otherwise if math.isnan(value) else f"{value:.2f}"


def family_plot(run: Run, family: str) -> str:
    """Relative cost with its interval, one panel per setting."""
    cells = run.of_family(family)
    names = _names(run, cells)
    panels = [Panel(cell.name, tuple(_cost_bar(cell, name) for name in names)) for cell in cells]
    return _bars(panels, f"family {run.name} {family}", _cost_label(run.base), is_ratio=True)


def net_plot(run: Run, family: str) -> str | None:
    """What is left of the cost without the floor's; None where the floor did not run."""
    panels = []
    for cell in run.of_family(family):
        nets = [(own.name, own.net_cost_ns) for own in cell.allocators
                if own.net_cost_ns is not None and not own.is_floor]
        if nets:
            bars = tuple(Bar(name, net, math.nan, math.nan, markdown.cost(net, cell))
                         for name, net in nets)
            title = cell.name if cell.floor_holds else f"{cell.name}: {markdown.NO_FLOOR}"
            panels.append(Panel(title, bars))
    if not panels:
        return None
    return _bars(panels, f"net {run.name} {family}", "net cost: the median less "
                 "the floor's", is_ratio=False)


def distribution_plot(run: Run, cell: CellDigest) -> str | None:
    """Every round's relative cost, first round on top; the median and its interval below them."""
    shown = [each for each in cell.allocators if each.round_ratios and each.name != cell.base]
    if not shown:
        return None
    values = [value for each in shown for _, value in each.round_ratios]
    low, high = min([*values, 0.95]) / 1.03, max([*values, 1.05]) * 1.03
    with _figure(f"rounds {run.name} {cell.name}", 1, 1, 0.3 * len(shown) + 0.55) as drawing:
        figure, axes, svg = drawing
        axis = axes[0][0]
        axis.set_xscale("log")
        for place, each in enumerate(shown):
            count = len(each.round_ratios)
            heights = [place - 0.3 + 0.5 * order / max(1, count - 1) for order in range(count)]
            axis.plot([value for _, value in each.round_ratios], heights, "o", markersize=3.2,
                      color=colour(each.name), markeredgewidth=0, alpha=0.75)
            told = each.relative_cost
            if told and not math.isnan(told.low):
                axis.plot([told.low, told.high], [place + 0.34] * 2, color=INK, linewidth=1.2)
            if told:
                axis.plot(told.median, place + 0.34, "|", color=INK, markersize=6)
        axis.axvline(1.0, color=INK, linewidth=0.8)
        axis.set_yticks(range(len(shown)), [markdown.printable(each.name) for each in shown])
        axis.set_ylim(len(shown) - 0.4, -0.6)
        axis.set_xlim(low, high)
        _log_ticks(axis, low, high)
        axis.grid(axis="x")
        axis.set_xlabel(f"relative cost of each round, {markdown.printable(cell.base)} = 1; "
                        "line: median and its 95 % interval")
        figure.tight_layout(pad=0.5)
    return svg[0]


def memory_plot(run: Run, cell: CellDigest) -> str | None:
    """Resident memory over time; None where no run was long enough for a curve."""
    curves = run.curves_of(cell)
    if not curves:
        return None
    with _figure(f"memory {run.name} {cell.name}", 1, 1, 2.6) as (figure, axes, svg):
        axis = axes[0][0]
        for name, curve in curves.items():
            thinned = curve[::max(1, len(curve) // 400)] + curve[-1:]
            axis.plot([seconds for seconds, _ in thinned], [size / 2**20 for _, size in thinned],
                      color=colour(name), linewidth=2.0 if name == run.base else 1.2,
                      linestyle="--" if is_linked(name) else "-", label=markdown.printable(name))
        axis.set_ylim(bottom=0)
        axis.set_xlim(left=0)
        axis.tick_params(pad=5)
        axis.grid(axis="y")
        axis.set_xlabel("seconds")
        axis.set_ylabel("RSS, MiB")
        axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8,
                    handlelength=1.4)
        figure.tight_layout(pad=0.5)
    return svg[0]


def for_page(svg: str, prefix: str) -> str:
    """The same picture in the colours of the page that it stands in, light or dark; the names
    within it begin with the prefix, which no other picture of the page may have."""
    for fixed, ours in ((INK, "currentColor"), (FAINT, "var(--faint)"), (LINE, "var(--line)"),
                        (PAPER, "var(--paper)")):
        svg = svg.replace(fixed, ours)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    for begin in (' id="', "url(#", 'href="#'):
        svg = svg.replace(begin, begin + prefix)
    return svg
