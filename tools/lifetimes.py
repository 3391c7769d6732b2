#!/usr/bin/env python3
"""Computes how many pages programs would hold if blocks were grouped by where they come from.

    lifetimes.py [PROGRAM ... | all]

Without any program the page of the rows that are there is printed (make docs). Each program runs
once under the recorder (recorder/), then placement.py places its blocks under each grouping. The
rows go to bench/lifetimes.csv. A program that is not installed is left out.
"""

import csv
import io
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
TABLE = "bench/lifetimes.csv"
FIELDS = ("program", "grouping", "groups", "blocks", "mean_kib", "peak_kib", "end_kib",
          "mean_slab_kib", "peak_slab_kib", "end_slab_kib")
WHEN = ("mean", "peak", "end")
WORTH = 0.10  # fewer pages: a grouping that brings less is not built
FRAMES = (1, 2, 3)
PAGE_KIB = 4

# Groupings, and what they are called at the head of a column.
COLUMNS = {"stays 1": "stays, 1 frame", "stays 2": "2", "stays 3": "3",
           "whole 1": "whole sites stay, 1 frame", "whole 2": "2", "whole 3": "3",
           "sites 1": "sites, 1 frame", "sites 2": "2", "sites 3": "3",
           "oracle stays": "oracle: stays", "oracle lives": "oracle: lives", "dense": "dense"}

HEAD = """# Lifetimes: which grouping of blocks is worth building

A page goes back to the kernel only if no block in use touches it. Blocks that live long, strewn
among others of their size, hold many pages. These tables say how many pages of 4 KiB each program
would hold if blocks were put in groups, each with slabs of its own. They are computed and not
measured. A program ran once and was recorded with its call stacks (`recorder/`). Then
`tools/placement.py` placed its blocks as the library would.

* **One heap**: what size classes alone need, in MiB. The other columns are relative to it.
* **Stays**: two groups, as `hakmem learn` chooses. A site is in the second if at least half of its
  bytes are in use at the end, and if it is worth it. A site is the innermost 1, 2 or 3 return
  addresses and a size class. It is learnt from the same run: another input gains less.
* **Whole sites stay**: the same rule without the size class. All blocks of a site are judged
  together, so sizes of which little stays go to the second group with the others.
* **Sites**: each site has a group of its own, however many there are. No rule of two groups by
  sites of so many frames separates more, but partly filled slabs cost pages.
* **Oracles** know the future. "Stays" puts blocks that are in use at the end in a second group.
  "Lives" groups blocks by their lifetime, a group for each factor of four. **Dense**: no gaps.
* **When**: in the mean over the time of the run, at the highest, and at the end. Servers end right
  after the delete. A recorded program takes longer while it allocates, which the mean contains.
* **Not counted**: blocks above 32 KiB, which have no slab, and pages that are free but not yet
  given back. What `tools/placement.py` simplifies stands at its head.

`tools/lifetimes.py all` runs the programs, keeps the rows in `bench/lifetimes.csv` and prints this
page.

"""

Row = dict[str, str]


class Site(NamedTuple):
    """What hakmem.uses.chosen wants of a site."""
    frames: tuple[int, ...]
    size: int


def records(file: Path):
    """What the recorder has written; numpy rows."""
    import numpy
    import placement
    with file.open("rb") as content:
        head = content.read(32)
        if head[:16] != placement.MAGIC:
            raise ValueError(f"{file} was not written by the recorder")
        return numpy.fromfile(content, placement.RECORD, int.from_bytes(head[16:24], "little"))


def staying(events, frames: int, by_size: bool) -> list[int]:
    """Group 1 for the blocks of sites that hakmem learn would choose. Not by size: it would judge
    all blocks of a site together."""
    sys.path.insert(0, str(ROOT / "python"))
    import placement
    from hakmem.uses import Use, chosen
    uses: dict[Site, Use] = defaultdict(Use)
    sizes = [placement.class_bytes(number) for number in events.classes]
    sites = [Site(stack[:frames], size if by_size else 0)
             for stack, size in zip(events.stacks, sizes, strict=True)]
    for site, size, end in zip(sites, sizes, events.ends, strict=True):
        uses[site].allocated += size
        uses[site].kept += size * (end < 0)
    stay = chosen(uses, 0)  # all blocks are known
    return [int(site in stay) for site in sites]


def life(begin: int, end: int) -> int:
    """Of a block: how often four divides the bytes that were allocated meanwhile."""
    return 99 if end < 0 else (end - begin).bit_length() // 2


def groupings(events) -> dict[str, list[int]]:
    """Of each grouping the group of each block."""
    import placement
    count = range(len(events.classes))
    found = {"classes": [0] * len(count)}
    for frames in FRAMES:
        found[f"stays {frames}"] = staying(events, frames, True)
        found[f"whole {frames}"] = staying(events, frames, False)
    for frames in FRAMES:
        found[f"sites {frames}"] = placement.groups_by(
            events, lambda block, frames=frames: events.stacks[block][:frames])
    found["oracle stays"] = [int(end < 0) for end in events.ends]
    found["oracle lives"] = placement.groups_by(
        events, lambda block: life(events.begins[block], events.ends[block]))
    return found


def row_of(program: str, grouping: str, groups: int, blocks: int, pages, slab_pages) -> Row:
    figures = [round(PAGE_KIB * getattr(held, when)) for held in (pages, slab_pages)
               for when in WHEN]
    return dict(zip(FIELDS, map(str, (program, grouping, groups, blocks, *figures)), strict=True))


def computed(program: str, file: Path) -> list[Row]:
    """The rows of a trace."""
    import placement
    events = placement.read(records(file))
    rows = []
    for grouping, groups in groupings(events).items():
        placed = placement.place(events, groups)
        rows.append(row_of(program, grouping, placed.groups, len(events.classes), placed.pages,
                           placed.slab_pages))
    least = placement.dense(events)
    return [*rows, row_of(program, "dense", 0, len(events.classes), least, least)]


# ---- the page ----

def rows_of(text: str) -> dict[str, dict[str, Row]]:
    """By program and grouping."""
    found: dict[str, dict[str, Row]] = {}
    for row in csv.DictReader(io.StringIO(text)):
        found.setdefault(row["program"], {})[row["grouping"]] = row
    return found


def share(by: dict[str, Row], grouping: str, other: str, when: str) -> float:
    """The pages of one grouping, divided by those of another."""
    return int(by[grouping][f"{when}_kib"]) / max(1, int(by[other][f"{when}_kib"]))


def pages_table(found: dict[str, dict[str, Row]]) -> str:
    lines = ["| program | when | one heap, MiB | " + " | ".join(COLUMNS.values()) + " |",
             "|---|---|---:|" + "---:|" * len(COLUMNS)]
    for program, by in found.items():
        for when in WHEN:
            mib = int(by["classes"][f"{when}_kib"]) / 1024
            shares = [f"{share(by, each, 'classes', when):.2f}" if each in by else "–"
                      for each in COLUMNS]
            lines.append(f"| {program if when == WHEN[0] else ''} | {when} | {mib:,.1f} | "
                         + " | ".join(shares) + " |")
    return "\n".join(lines) + "\n"


def groups_table(found: dict[str, dict[str, Row]]) -> str:
    """How many groups there are, and what their slabs take, for those that could be built."""
    built = [each for each in COLUMNS if each.startswith(("stays", "whole", "sites"))]
    lines = ["| program | blocks | " + " | ".join(COLUMNS[each] for each in built) + " |",
             "|---|---:|" + "---:|" * len(built)]
    for program, by in found.items():
        cells = [f"{by[each]['groups']}: "
                 f"{int(by[each]['end_slab_kib']) / max(1, int(by['classes']['end_slab_kib'])):.2f}"
                 if each in by else "–" for each in built]
        lines.append(f"| {program} | {int(by['classes']['blocks']):,} | " + " | ".join(cells)
                     + " |")
    return "\n".join(lines) + "\n"


def gains(found: dict[str, dict[str, Row]], grouping: str, other: str) -> list[str]:
    """The programs in which it needs a tenth fewer pages than the other, and when."""
    texts = []
    for program, by in found.items():
        if grouping not in by or other not in by:
            continue
        when = [f"{each} {100 * (1 - share(by, grouping, other, each)):.0f} %" for each in
                ("mean", "end") if share(by, grouping, other, each) <= 1 - WORTH]
        if when:
            texts.append(f"{program} ({', '.join(when)})")
    return texts


COMPARED = (("stays 1", "classes", "what stays, by one frame, against one heap"),
            ("stays 2", "stays 1", "what stays, by two frames, against one"),
            ("stays 3", "stays 1", "what stays, by three frames, against one"),
            ("stays 3", "stays 2", "what stays, by three frames, against two"),
            ("whole 1", "stays 1", "whole sites of one frame that stay, against site and size"),
            ("whole 2", "stays 2", "whole sites of two frames that stay, against site and size"),
            ("whole 3", "stays 3", "whole sites of three frames that stay, against site and size"),
            ("whole 2", "whole 1", "whole sites of two frames, against one"),
            ("whole 3", "whole 2", "whole sites of three frames, against two"),
            ("sites 1", "whole 1", "each site of one frame apart, against whole sites"),
            ("sites 2", "whole 2", "each site of two frames apart, against whole sites"),
            ("sites 3", "whole 3", "each site of three frames apart, against whole sites"),
            ("oracle lives", "oracle stays", "an oracle of lifetimes, against one of what stays"))


def verdicts(found: dict[str, dict[str, Row]]) -> str:
    lines = ["| grouping | a tenth fewer pages, in the mean or at the end | worth building |",
             "|---|---|---|"]
    for grouping, other, meaning in COMPARED:
        texts = gains(found, grouping, other)
        asked = sum(grouping in by and other in by for by in found.values())
        if 2 * asked < len(found):  # too few programs have been computed with it
            continue
        lines.append(f"| {meaning} | {'; '.join(texts) or 'no program'} | "
                     f"{len(texts)} of {asked} |")
    return "\n".join(lines) + "\n"


def table(text: str) -> str:
    found = rows_of(text)
    return ("## What is gained\n\n" + verdicts(found)
            + "\n## Pages with a block in use\n\n" + pages_table(found)
            + "\n## Groups, and memory of their slabs at the end\n\nThe number of groups, and what "
            "all slabs that are not empty take, relative to one heap.\n\n" + groups_table(found))


def save(rows: list[Row]) -> None:
    """Puts the rows in the place of those of the same programs."""
    from recorded import PROGRAMS
    file = ROOT / TABLE
    found = rows_of(file.read_text(encoding="utf-8")) if file.exists() else {}
    for row in rows:
        found.setdefault(row["program"], {})[row["grouping"]] = row
    order = {name: at for at, name in enumerate(PROGRAMS)}
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
        writer.writeheader()
        for program in sorted(found, key=lambda name: (order.get(name, 99), name)):
            writer.writerows(found[program].values())


def main() -> int:
    wanted = sys.argv[1:]
    if not wanted:
        print(HEAD + table((ROOT / TABLE).read_text(encoding="utf-8")), end="")
        return 0
    from recorded import PROGRAMS, NotHere, record
    for program in PROGRAMS if wanted == ["all"] else wanted:
        with tempfile.TemporaryDirectory(prefix="hakmem-lifetimes-") as name:
            try:
                rows = computed(program, record(program, Path(name)))
            except NotHere as error:
                print(f"{program} is left out: {error}", flush=True)
                continue
        save(rows)
        print(program, *(f"{row['grouping']}: {row['mean_kib']}/{row['end_kib']} KiB"
                         for row in rows), sep="  ", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
