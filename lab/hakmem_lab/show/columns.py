"""Tables for a terminal of any width: no name and no figure is ever cut.

What does not fit is left out column by column, in an order that the table says; what still does
not fit goes below, in a second band that begins with the same names.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from hakmem_lab.show.markdown import printable

GAP = 2
NARROWEST_NAME = 20


@dataclass(frozen=True)
class Column:
    head: str
    is_left: bool = False
    spare: int = 0  # left out where room is short, the highest first; 0: never


@dataclass(frozen=True)
class _Band:
    """Columns as they are drawn: each cell in lines of its own."""

    columns: tuple[Column, ...]
    widths: tuple[int, ...]
    rows: tuple[tuple[tuple[Text, ...], ...], ...]  # by row, by column, by line; heads at first

    @property
    def width(self) -> int:
        return sum(self.widths) + GAP * (len(self.widths) - 1)


def plain(text: str, style: str = "") -> Text:
    """Words of a user or a program: nothing in them is markup or commands the terminal."""
    return Text(printable(text), style)


def show(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Text]],
         console: Console) -> None:
    """Rows have a cell for each column; the first column holds the names."""
    if title:
        console.print(plain(title, "bold"))
    kept = list(range(len(columns)))
    while _band(columns, rows, kept, console.width).width > console.width:
        spare = max(kept, key=lambda place: columns[place].spare)
        if columns[spare].spare == 0:
            break
        kept.remove(spare)
    for chosen in _in_bands(columns, rows, kept, console.width):
        _draw(_band(columns, rows, chosen, console.width), console)
    console.print()


def _wrapped(text: str, width: int, breaks: bool) -> list[str]:
    return textwrap.wrap(printable(text), width, break_long_words=breaks, break_on_hyphens=True)


def _head(head: str, width: int) -> tuple[Text, ...]:
    """In as many lines as it takes to be no wider than the figures below, or its longest word."""
    words = head.replace("-", "- ").split()
    lines = _wrapped(head, max(width, *map(cell_len, words)) if words else 1, breaks=False)
    return tuple(Text(line, "bold") for line in lines or [""])


def _name(text: Text, width: int) -> tuple[Text, ...]:
    if cell_len(text.plain) <= width:
        return (text,)
    return tuple(Text(line, text.style) for line in _wrapped(text.plain, width, breaks=True))


def _band(columns: Sequence[Column], rows: Sequence[Sequence[Text]], places: Sequence[int],
          room: int) -> _Band:
    longest = max(NARROWEST_NAME, room * 2 // 5)
    drawn = []
    for place in places:
        body = [_name(row[place], longest) if place == 0 else (row[place],) for row in rows]
        widest = max((cell_len(line.plain) for cell in body for line in cell), default=0)
        drawn.append([_head(columns[place].head, widest), *body])
    widths = tuple(max(cell_len(line.plain) for cell in column for line in cell)
                   for column in drawn)
    return _Band(tuple(columns[place] for place in places), widths, tuple(zip(*drawn)))


def _in_bands(columns: Sequence[Column], rows: Sequence[Sequence[Text]], places: Sequence[int],
              room: int) -> list[list[int]]:
    """The columns of each band: as many as fit, at least one beside the names."""
    bands = [list(places[:1])]
    for place in places[1:]:
        tried = [*bands[-1], place]
        if len(tried) > 2 and _band(columns, rows, tried, room).width > room:
            bands.append([places[0], place])
        else:
            bands[-1] = tried
    return bands


def _draw(band: _Band, console: Console) -> None:
    for number, row in enumerate(band.rows):
        height = max(map(len, row))
        for line in range(height):
            pieces = []
            for column, width, cell in zip(band.columns, band.widths, row):
                place = line - (height - len(cell)) if number == 0 else line
                text = cell[place].copy() if 0 <= place < len(cell) else Text()
                room = " " * (width - cell_len(text.plain))
                pieces.append(text + room if column.is_left else Text(room) + text)
            shown = Text(" " * GAP).join(pieces)
            shown.rstrip()
            console.print(shown, soft_wrap=True)
        if number == 0:
            console.print(Text("─" * min(band.width, console.width), "dim"))
