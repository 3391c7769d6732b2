"""Digests as pictures: SVG as text, the same bytes for the same figures.

Each allocator of a picture has a colour and a marker of its own, the known ones the same
everywhere, and its name stands beside them, so no picture rests on colour alone.
"""

import html
import io
import math
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from hakmem_lab.show import colours, sentences
from hakmem_lab.judge.digest import LINKED, Basis, CellDigest, Run, is_linked
from hakmem_lab.judge.summary import Summary, summarise
from hakmem_lab.measure.allocators import SETTINGS
from hakmem_lab.measure.subject import printable

INK, FAINT, LINE, PAPER = "#1f2328", "#656d76", "#d1d9e0", "#ffffff"
WIDTH_INCHES = 8.6  # 826 pixels: the width of a page on GitHub
KNOWN = {
    "hakmem": ("#d55e00", "*"), "system": ("#57606a", "s"), "mimalloc3": ("#0057b8", "o"),
    "mimalloc2": ("#56b4e9", "v"), "jemalloc": ("#007a4d", "D"), "snmalloc": ("#cc5fa5", "^"),
    "tcmalloc": ("#e6b800", "P"), "tcmalloc-percpu": ("#8c6d00", "X"),
    "rpmalloc": ("#7a28a8", "<"), "debian-gperftools": ("#8b0f2e", ">"),
    "debian-tbb": ("#00a5a5", "p"), "debian-mimalloc": ("#1b2a78", "h"),
    "debian-jemalloc": ("#7fbf3f", "d"),
}
FURTHER = tuple(zip(("#3c3c8c", "#ff7f7f", "#2e5f2e", "#b08fd8", "#a0522d", "#008ecc", "#99004d",
                     "#5c8a00", "#b8860b", "#b35900"), "8HoDs^vPX<"))
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


def styles(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of each: fixed for those we know, else of those that none of them has. A
    linked one has those of the preloaded."""
    roots = list(dict.fromkeys(name.removesuffix(LINKED) for name in names))
    others = [root for root in roots if root not in KNOWN]
    free = [*FURTHER, *[style for root, style in KNOWN.items() if root not in roots]]
    found = KNOWN | {root: free[place % len(free)] for place, root in enumerate(others)}
    return {name: found[name.removesuffix(LINKED)] for name in names}


@contextmanager
def drawing(name: str, height: float) -> Iterator[tuple[Any, list[str]]]:
    """Axes to draw in, and a list to which the SVG is appended."""
    import matplotlib  # here: terminals need the colours alone, and it is loaded slowly
    from matplotlib.figure import Figure
    svg: list[str] = []
    style: Any = STYLE | {"svg.hashsalt": name}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(WIDTH_INCHES, height))
        yield figure.subplots(), svg
        figure.tight_layout(pad=0.5)
        text = io.StringIO()
        figure.savefig(text, format="svg",
                       metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    opening = f'<svg role="img" aria-label="{html.escape(printable(name))}"'
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
    return "\n".join(textwrap.wrap(printable(words), length, max_lines=2, placeholder=" …",
                                   break_on_hyphens=False))


def _logarithmic(axis: Any, values: Sequence[float]) -> None:
    """An axis of ratios, on which 0.5 and 2 are equally far from 1."""
    from matplotlib import ticker
    known = [value for value in values if not math.isnan(value)]
    low, high = min([*known, 0.95]) / 1.03, max([*known, 1.05]) * 1.03
    axis.set_major_locator(ticker.MaxNLocator(6, steps=[1, 2, 5, 10]) if high / low < 8 else
                           ticker.LogLocator(subs=(1.0, 3.0)))
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(ticker.NullLocator())
    axis.axes.set(**{f"{axis.axis_name}lim": (low, high)})


def _legend(axis: Any) -> None:
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8,
                handlelength=1.4)


def trade_off_plot(run: Run, cells: Sequence[CellDigest], title: str) -> str:
    """Time against memory: a point for each allocator, with the intervals of both means. Other
    settings of an allocator have its colour; a line leads from one to the next."""
    memory = "area" if all(cell.group == "memory" for cell in cells) else "peak"
    found = [each for each in summarise(cells) if not math.isnan(each.means["time"].value)]
    style = styles(list(dict.fromkeys(_base(each.name) for each in found)))
    with drawing(f"{title} {run.name}", 4.0) as (axis, svg):
        axis.set(xscale="log", yscale="log")
        for each in sorted(found, key=lambda each: each.name in SETTINGS):
            _point(axis, each, memory, style[_base(each.name)])
        for name, (colour, _) in style.items():
            points = sorted((each.means["time"].value, each.means[memory].value)
                            for each in found if _base(each.name) == name)
            if len(points) > 1:
                axis.plot(*zip(*points), color=colour, linewidth=1.2, linestyle=":")
        for own, figure in ((axis.xaxis, "time"), (axis.yaxis, memory)):
            _logarithmic(own, [value for each in found for value in
                               (each.means[figure].low, each.means[figure].value,
                                each.means[figure].high)])
        axis.axvline(1.0, color=LINE, linewidth=1.2, zorder=0)
        axis.axhline(1.0, color=LINE, linewidth=1.2, zorder=0)
        axis.grid()
        base = printable(cells[0].base)
        what = {"area": "RSS × time", "peak": "peak RSS"}[memory]
        axis.set_xlabel(f"{sentences.basis_of(cells)}, {base} = 1; to the left is faster")
        axis.set_ylabel(f"{what}, {base} = 1; lower needs less")
        axis.set_title(_in_lines(f"{title}: time against memory, geometric means with "
                                 "95 % intervals", 110))
        _legend(axis)
    return svg[0]


def _base(name: str) -> str:
    """Of one with other settings that whose settings they are; else the allocator itself."""
    return SETTINGS[name]["base"] if name in SETTINGS else name


def _point(axis: Any, each: Summary, memory: str, style: tuple[str, str]) -> None:
    time, held = each.means["time"], each.means[memory]
    is_base = each.name not in SETTINGS
    for x, y in (((time.low, time.high), (held.value,) * 2),
                 ((time.value,) * 2, (held.low, held.high))):
        axis.plot(x, y, color=style[0], linewidth=0.9, alpha=0.45)
    axis.plot(time.value, held.value, style[1], color=style[0], linestyle="",
              markersize=(11 if style[1] == "*" else 7) - (0 if is_base else 3),
              markeredgecolor=PAPER, markeredgewidth=0.6,
              label=printable(each.name) if is_base else None)
    if not is_base:
        axis.annotate(printable(each.name), (time.value, held.value), (3, 3), color=style[0],
                      textcoords="offset points", fontsize=6.5)


def memory_plot(run: Run, cell: CellDigest) -> str | None:
    """Resident memory over time; None where no run was long enough for a curve."""
    if not (curves := run.curves_of(cell)):
        return None
    style = styles(run.allocators)
    with drawing(f"memory {run.name} {cell.name}", 2.8) as (axis, svg):
        for name, curve in curves.items():
            thinned = curve[::max(1, len(curve) // 400)] + curve[-1:]
            axis.plot([seconds for seconds, _ in thinned], [size / 2**20 for _, size in thinned],
                      color=style[name][0], marker=style[name][1], markevery=0.2, markersize=4,
                      linewidth=2.0 if name == run.base else 1.2,
                      linestyle="--" if is_linked(name) else "-", label=printable(name))
        axis.set(xlim=(0, None), ylim=(0, None), xlabel="seconds", ylabel="RSS, MiB",
                 title="Resident memory over time, first round")
        axis.grid(axis="y")
        _legend(axis)
    return svg[0]


def for_page(svg: str, prefix: str) -> str:
    """The same picture in the colours of the page that it stands in, light or dark; the names
    within it begin with the prefix, which no other picture of the page may have."""
    own = [colour for colour, _ in (*KNOWN.values(), *FURTHER)]

    def in_ink(tag: re.Match[str]) -> str:
        return re.sub("|".join(own), INK, tag[0])

    svg = re.sub(r"<text[^>]*>", in_ink, svg)
    for fixed, ours in ((INK, "currentColor"), (FAINT, "var(--faint)"), (LINE, "var(--line)"),
                        (PAPER, "var(--paper)"),
                        *[(colour, f"var({colours.variable(colour)})") for colour in own]):
        svg = svg.replace(fixed, ours)
    svg = re.sub(r' xmlns(:\w+)?="[^"]*"', "", svg)
    for begin in (' id="', "url(#", 'href="#'):
        svg = svg.replace(begin, begin + prefix)
    return svg


def page_colours() -> dict[str, str]:
    """By the mode of the page: the variables for the allocators' colours."""
    return {mode: " ".join(
        f"{colours.variable(colour)}: {colours.readable(colour, paper)};"
        for colour in dict.fromkeys(colour for colour, _ in (*KNOWN.values(), *FURTHER)))
        for mode, paper in colours.PAPERS.items()}
