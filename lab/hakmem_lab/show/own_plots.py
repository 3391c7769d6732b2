"""Pictures of a user's own program: each run as a dot, time against memory, memory over time."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy

from hakmem_lab.judge import statistics
from hakmem_lab.judge.digest import CellDigest, Run, is_linked
from hakmem_lab.judge.statistics import Ratio
from hakmem_lab.measure.subject import printable
from hakmem_lab.show.plots import INK, LINE, PAPER, drawing, styles

POINTS = 400  # of a curve


def runs_plot(title: str, unit: str, values: Mapping[str, Sequence[float]],
              ratios: Mapping[str, Ratio], base: str, names: Sequence[str]) -> str:
    """A row for each allocator, in the order of `values`: its runs, their median, and the base's
    median times the interval of the ratio. What is beyond two deviations is hollow."""
    style, middle = styles(names), float(numpy.median(values[base]))
    with drawing(title, 0.75 + 0.3 * len(values)) as (axis, svg):
        for row, (name, figures) in enumerate(values.items()):
            colour, outliers = style[name][0], statistics.series(figures).outliers
            compared = ratios[name]
            if name != base and compared.low < compared.high:
                axis.plot((middle * compared.low, middle * compared.high), (row + 0.3,) * 2,
                          color=colour, linewidth=2.5, solid_capstyle="butt")
            for place, value in enumerate(figures):
                # Runs of one figure lie beside each other.
                axis.plot(value, row - 0.12 + 0.08 * (place % 4), "o", markersize=4, color=colour,
                          markerfacecolor=PAPER if place in outliers else colour)
            axis.plot((numpy.median(figures),) * 2, (row - 0.32, row + 0.38), color=INK,
                      linewidth=1.6)
        axis.axvline(middle, color=LINE, linewidth=1.2, zorder=0)
        ends = [middle * bound for each in ratios.values() for bound in (each.low, each.high)
                if not math.isnan(bound)]
        axis.set(ylim=(len(values) - 0.5, -0.5), xlim=_limits(*values.values(), ends), title=title,
                 xlabel=unit,
                 yticks=range(len(values)), yticklabels=[printable(name) for name in values])
        axis.grid(axis="x")
    return svg[0]


def trade_off_plot(title: str, nouns: tuple[str, str], time: Mapping[str, Sequence[float]],
                   memory: Mapping[str, Sequence[float]], names: Sequence[str]) -> str:
    """A large point for the medians of each allocator, a small one for each of its runs."""
    style = styles(names)
    with drawing(title, 3.6) as (axis, svg):
        for name, figures in time.items():
            colour, marker = style[name]
            axis.plot(figures, memory[name], "o", markersize=2.6, color=colour)
            axis.plot(numpy.median(figures), numpy.median(memory[name]), marker, color=colour,
                      linestyle="", markersize=12 if marker == "*" else 8, markeredgecolor=INK,
                      markeredgewidth=0.8, label=printable(name))
        axis.set(title=title, xlim=_limits(*time.values()), ylim=_limits(*memory.values()),
                 xlabel=f"{nouns[0]}, seconds; to the left is faster",
                 ylabel=f"{nouns[1]}, MiB; lower needs less")
        axis.grid()
        _legend_below(axis)
    return svg[0]


def memory_plot(run: Run, cell: CellDigest, order: Sequence[str]) -> str | None:
    """Resident memory over time in all rounds; None where no run was long enough for a curve."""
    if not (curves := run.curves_of(cell)):
        return None
    style, further = styles(run.allocators), run.further_curves.get(cell.name, {})
    count = 1 + max((len(further.get(name, ())) for name in curves), default=0)
    with drawing(f"memory {run.name} {cell.name}", 3.1) as (axis, svg):
        for name in [*order, *[each for each in curves if each not in order]]:
            if name not in curves:
                continue
            colour, marker = style[name]
            for curve in further.get(name, ()):
                _draw(axis, curve, color=colour, linewidth=0.5)
            _draw(axis, curves[name], color=colour, marker=marker, markevery=0.2, markersize=4.5,
                  linewidth=1.6, linestyle="--" if is_linked(name) else "-",
                  label=printable(name))
        rounds = f"the first of {count} rounds is bold" if count > 1 else "one round"
        axis.set(xlim=(0, None), ylim=(0, None), xlabel="seconds", ylabel="RSS, MiB",
                 title=f"Resident memory over time, {rounds}")
        axis.grid(axis="y")
        _legend_below(axis)
    return svg[0]


def _limits(*series: Sequence[float]) -> tuple[float, float]:
    """Of an axis for dots, which need not begin at 0: the bars of the page do."""
    values = [value for figures in series for value in figures]
    room = max(0.06 * (max(values) - min(values)), 0.01 * max(values))
    return max(0.0, min(values) - room), max(values) + room


def _draw(axis: Any, curve: Sequence[tuple[float, int]], **style: Any) -> None:
    thinned = [*curve[::max(1, len(curve) // POINTS)], *curve[-1:]]
    axis.plot([seconds for seconds, _ in thinned], [size / 2**20 for _, size in thinned], **style)


def _legend_below(axis: Any) -> None:
    """In the order of drawing, where a narrow screen shows it."""
    axis.legend(frameon=False, loc="upper left", bbox_to_anchor=(-0.02, -0.14), ncols=5,
                fontsize=8, handlelength=1.4, columnspacing=1.2, borderaxespad=0)
