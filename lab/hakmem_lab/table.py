"""What was measured, as a table for the terminal."""

from collections.abc import Callable
from statistics import median

from rich.console import Console
from rich.table import Table
from rich.text import Text

from hakmem_lab.compare import HAKMEM, SYSTEM, Comparison
from hakmem_lab.runner import Measurement

PAIRS_FOR_A_CLAIM = 10


def seconds(value: float) -> str:
    return f"{value:.3f} s" if value >= 0.1 else f"{value * 1000:.2f} ms"


def mebibytes(value: float) -> str:
    return f"{value / 2**20:.1f} MiB" if value else "–"


ROWS: list[tuple[str, Callable[[Measurement], float], Callable[[float], str]]] = [
    ("time", lambda run: run.wall_s, seconds),
    ("CPU", lambda run: run.cpu_s, seconds),
    ("peak RSS", lambda run: run.peak_rss_bytes, mebibytes),
    ("page faults", lambda run: run.page_faults, lambda value: f"{value:,.0f}"),
]


def ratio_text(ratios: list[float]) -> tuple[str, str]:
    """Median and spread, green where HAKMEM needs clearly less, red where clearly more."""
    middle = median(ratios)
    colour = "green" if middle < 0.98 else "red" if middle > 1.02 else "default"
    return f"[{colour}]{middle:.2f}[/]", f"{min(ratios):.2f} – {max(ratios):.2f}"


def show(comparison: Comparison, console: Console) -> None:
    pairs = comparison.pairs
    table = Table(title=Text(comparison.title), title_justify="left", title_style="bold")
    table.add_column("median of each")
    for heading in (SYSTEM, HAKMEM, "ratio", "spread"):
        table.add_column(heading, justify="right")
    for name, value_of, text_of in ROWS:
        both = [(value_of(system), value_of(hakmem)) for system, hakmem in pairs]
        ratios = [hakmem / system for system, hakmem in both if system > 0]
        table.add_row(name, *(text_of(median(column)) for column in zip(*both)),
                      *(ratio_text(ratios) if ratios else ("–", "–")))
    console.print(table)
    note = f"{len(pairs)} pairs, run in turn; ratio: {HAKMEM} / {SYSTEM}, the median of the pairs'."
    if len(pairs) < PAIRS_FOR_A_CLAIM:
        note += f" Fewer than {PAIRS_FOR_A_CLAIM} pairs are a smoke test."
    console.print(note, style="dim")
