"""What the kernel counts for a process, and for the part of its addresses that is our heap."""

import os
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROC = Path("/proc")
PAGE = os.sysconf("SC_PAGE_SIZE")
PROBES = 256  # pages of huge ones that are looked at: the share is known to some hundredths
FIELD = re.compile(r"(Rss|AnonHugePages): +([0-9]{1,15}) kB")
PRESENT = 1 << 63  # in an entry of pagemap


@dataclass(frozen=True)
class Kernel:
    """In bytes. Huge blocks have mappings of their own, which are not in the heap's part."""

    rss: int
    huge: int  # in huge pages
    heap_rss: int = 0
    heap_huge: int = 0
    zero: float = 0.0  # the share of the heap's huge pages that holds nothing but zeroes


@dataclass
class Mapping:
    """A line of smaps."""

    start: int
    end: int
    rss: int = 0
    huge: int = 0


def _mappings(process: int) -> Iterator[Mapping]:
    now = None
    text = (PROC / str(process) / "smaps").read_bytes().decode(errors="replace")
    for line in text.split("\n"):  # A name of a file may have other ends of lines.
        if head := re.match(r"([0-9a-f]{1,16})-([0-9a-f]{1,16}) ", line):
            if now is not None:
                yield now
            now = Mapping(int(head[1], 16), int(head[2], 16))
        elif now is not None and (field := FIELD.match(line)):
            setattr(now, {"Rss": "rss"}.get(field[1], "huge"), int(field[2]) * 1024)
    if now is not None:
        yield now


def _zero_share(process: int, mappings: list[Mapping]) -> float:
    """Of pages drawn at random that are there. A huge page is filled by the touch of one byte: who
    writes only parts of it leaves the others zero."""
    if not mappings:
        return 0.0
    draw = random.Random(process)
    zero = seen = 0
    with (PROC / str(process) / "pagemap").open("rb", 0) as pages, \
            (PROC / str(process) / "mem").open("rb", 0) as memory:
        for _ in range(PROBES):
            place, = draw.choices(mappings, [each.huge for each in mappings])
            page = draw.randrange(place.start // PAGE, place.end // PAGE)
            pages.seek(page * 8)
            if int.from_bytes(pages.read(8), "little") & PRESENT:
                memory.seek(page * PAGE)
                seen += 1
                zero += not any(memory.read(PAGE))
    return zero / seen if seen else 0.0


def kernel_of(process: int, window: tuple[int, int] = (0, 0)) -> Kernel | None:
    """None: the process has ended, or may not be looked at. `window`: the addresses of the heap."""
    try:
        mappings = list(_mappings(process))
    except OSError:
        return None
    ours = [each for each in mappings if each.start < window[1] and each.end > window[0]]
    try:
        zero = _zero_share(process, [each for each in ours if each.huge])
    except (OSError, OverflowError, ValueError):
        zero = 0.0
    return Kernel(
        rss=sum(each.rss for each in mappings), huge=sum(each.huge for each in mappings),
        heap_rss=sum(each.rss for each in ours), heap_huge=sum(each.huge for each in ours),
        zero=zero)
