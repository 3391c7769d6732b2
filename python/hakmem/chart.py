"""A picture of points, time against memory: one page of SVG that needs nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from hakmem.foreign import markup

WIDTH, HEIGHT, EDGE = 900, 560, 70  # pixels
LEAST_SPAN = 0.1  # of an axis: noise is not drawn as if it were much


@dataclass(frozen=True)
class Point:
    """What a strategy takes of what the defaults take."""

    name: str
    time: float
    memory: float
    is_best: bool


def _axis(values: Sequence[float], length: float) -> tuple[float, float]:
    """(value at the start, pixels for 1)."""
    low, high = min(values), max(values)
    middle, span = (low + high) / 2, max(1.1 * (high - low), LEAST_SPAN)
    return middle - span / 2, length / span


def page(title: str, points: Sequence[Point]) -> str:
    """Left is faster and low holds less; the best point is filled."""
    x_low, x_scale = _axis([each.time for each in points], WIDTH - 2 * EDGE)
    y_low, y_scale = _axis([each.memory for each in points], HEIGHT - 2 * EDGE)

    def x(value: float) -> float:
        return EDGE + (value - x_low) * x_scale

    def y(value: float) -> float:
        return HEIGHT - EDGE - (value - y_low) * y_scale

    parts = [f'<rect x="{EDGE}" y="{EDGE}" width="{WIDTH - 2 * EDGE}" '
             f'height="{HEIGHT - 2 * EDGE}" fill="none" stroke="#999"/>',
             f'<text x="{WIDTH / 2}" y="{HEIGHT - 20}" text-anchor="middle">processor time, of '
             "what the defaults take</text>",
             f'<text transform="translate(18 {HEIGHT / 2}) rotate(-90)" text-anchor="middle">'
             "memory over time</text>"]
    for step in range(5):
        time = x_low + step / 4 * (WIDTH - 2 * EDGE) / x_scale
        memory = y_low + step / 4 * (HEIGHT - 2 * EDGE) / y_scale
        parts += [f'<text x="{x(time):.1f}" y="{HEIGHT - EDGE + 18}" text-anchor="middle">'
                  f"{time:.2f}</text>",
                  f'<text x="{EDGE - 8}" y="{y(memory) + 4:.1f}" text-anchor="end">'
                  f"{memory:.2f}</text>"]
    for each in points:
        parts.append(f'<g><title>{markup(each.name)}: time {each.time:.2f}, memory '
                     f'{each.memory:.2f}</title><circle cx="{x(each.time):.1f}" '
                     f'cy="{y(each.memory):.1f}" r="5" stroke="#1f5fa8" '
                     f'fill="{"#1f5fa8" if each.is_best else "#fff"}"/>'
                     f'<text x="{x(each.time) + 8:.1f}" y="{y(each.memory) + 4:.1f}">'
                     f"{markup(each.name)}</text></g>")
    return (f'<!doctype html><meta charset="utf-8"><title>{markup(title)}</title>'
            "<style>body,text{font:12px sans-serif}</style>"
            f'<h3>{markup(title)}</h3><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="100%">'
            f'{"".join(parts)}</svg>\n')
