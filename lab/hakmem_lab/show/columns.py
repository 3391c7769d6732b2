"""Tables for a terminal of any width: no name and no figure is ever cut.

What does not fit is left out column by column, in an order that the table says; what still does
not fit goes below, in a second band that begins with the same names.
"""

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hakmem_lab.measure.subject import printable

GAP = 2
NARROWEST_NAME = 20


@dataclass(frozen=True)
class Column:
    head: str
    is_left: bool = False
    spare: int = 0  # left out where room is short, the highest first; 0: never


def plain(text: str, style: str = "") -> Text:
    """Words of a user or a program: nothing in them is markup or commands the terminal."""
    return Text(printable(text), style)


def show(title: str, columns: Sequence[Column], rows: Sequence[Sequence[Text]],
         console: Console) -> None:
    """Rows have a cell for each column; the first column holds the names."""
    if title:
        console.print(plain(title, "bold"))
    widths = [max(1, *(cell_len(word) for word in column.head.replace("-", "- ").split()),
                  *(cell_len(row[place].plain) for row in rows))
              for place, column in enumerate(columns)]
    beside = console.width - GAP - max(widths[1:])
    widths[0] = min(widths[0], max(NARROWEST_NAME, console.width * 2 // 5), max(1, beside))
    kept = list(range(len(columns)))
    while _width(widths, kept) > console.width:
        spare = max(kept, key=lambda place: columns[place].spare)
        if columns[spare].spare == 0:
            break
        kept.remove(spare)
    for band in _in_bands(widths, kept, console.width):
        table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0),
                      border_style="dim", header_style="bold")
        for place in band:
            head = textwrap.wrap(printable(columns[place].head), widths[place])
            table.add_column(Text("\n".join(head)), width=widths[place], overflow="fold",
                             justify="left" if columns[place].is_left else "right",
                             vertical="bottom")
        for row in rows:
            table.add_row(*[row[place] for place in band])
        console.print(table)
    console.print()


def _width(widths: Sequence[int], places: Sequence[int]) -> int:
    return sum(widths[place] + GAP for place in places) - GAP


def _in_bands(widths: Sequence[int], places: Sequence[int], room: int) -> list[list[int]]:
    """The columns of each band: as many as fit, at least one beside the names."""
    bands = [list(places[:1])]
    for place in places[1:]:
        if len(bands[-1]) > 1 and _width(widths, [*bands[-1], place]) > room:
            bands.append([places[0], place])
        else:
            bands[-1].append(place)
    return bands
