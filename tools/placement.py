"""Where blocks of a recorded program lie, and which pages they hold, for any grouping of them.

A simulation of how the library places small blocks, for tools/lifetimes.py. Each pair of size
class and group has slabs of its own and a bin in front of them. What is simplified:

* One cache for all threads: a bin and a spare, together a last-in-first-out list of twice what a
  bin may hold. A full one sends its older half to the slabs. There is no depot between threads.
* A miss takes half a bin of blocks from the fullest slab that has any, lowest address first. The
  library knows only roughly which slab is the fullest.
* Bins begin as long as they may be. Blocks above 32 KiB are left out.
* A page counts while a block in use touches it. So the count is what could be resident if every
  other page went back to the kernel at once.
"""

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy

PAGE = 4096
UNIT = 4096
SMALL = 32768  # the longest block of a slab
BIN_BYTES, BIN_LEAST, BIN_MOST = 65536, 8, 124
SLAB_SHORTEST, SLAB_LONGEST, TINY_MAX = 65536, 131072, 1024

STACK, BLOCK, FREED, RESIZE, RESIZED, ZEROED = range(1, 7)  # kind_t of recorder/recorder.h
RECORD = numpy.dtype([("address", "u8"), ("size", "u8"), ("time_ns", "u8"), ("stack", "u4"),
                      ("thread", "u2"), ("kind", "u1"), ("shift", "u1")])
MAGIC = b"hakmem trace 2\n\0"

Frames = tuple[int, ...]
Grouping = Callable[[int], int]  # a block's number in Events -> its group


def size_class(size: int) -> int:
    """size_class_fixed_of; sizes from 1 on."""
    last = max(size, 1) - 1
    if last < 128:
        return last // 16 + 1
    power = last.bit_length() - 1
    return 9 + (power - 7) * 8 + ((last >> (power - 3)) & 7)


def class_bytes(number: int) -> int:
    """size_of_fixed_class."""
    if number <= 8:
        return 16 * number
    power = 7 + (number - 9) // 8
    return (1 << power) + (((number - 9) % 8 + 1) << (power - 3))


CLASSES = size_class(SMALL)


@dataclass(frozen=True)
class Shape:
    """What slabs and bins of a class are like."""
    size: int
    pages: int  # of a slab
    blocks: int
    bin: int
    spans: tuple[tuple[int, int], ...]  # of each block: its first page, and its last

    @classmethod
    def of(cls, number: int) -> "Shape":
        size = class_bytes(number)
        best, least = SLAB_SHORTEST // UNIT, SLAB_SHORTEST % size
        for units in range(best + 1, SLAB_LONGEST // UNIT + 1 if size > TINY_MAX else 0):
            waste = units * UNIT % size
            if waste * best <= least * units:
                best, least = units, waste
        blocks = best * UNIT // size
        spans = tuple((at * size // PAGE, (at * size + size - 1) // PAGE) for at in range(blocks))
        return cls(size, best, blocks, max(min(BIN_BYTES // size, BIN_MOST), BIN_LEAST), spans)


SHAPES = (None, *map(Shape.of, range(1, CLASSES + 1)))


class Slab:
    """Its free blocks are a heap: the lowest goes first."""

    def __init__(self, shape: Shape) -> None:
        self.free = list(range(shape.blocks))
        self.pages = [0] * shape.pages  # blocks in use that touch each


Place = tuple[Slab, int]


@dataclass
class Totals:
    """Of all shelves."""
    pages: int = 0  # that a block in use touches
    slab_pages: int = 0  # of slabs with a block in use or in a bin


class Shelf:
    """The slabs of one class and group, and the bin in front of them."""

    def __init__(self, shape: Shape, totals: "Totals") -> None:
        self.shape = shape
        self.totals = totals
        self.bin: list[Place] = []
        self.open: list[tuple[int, int, Slab]] = []  # by free blocks; an entry may be stale
        self.offers = 0

    def _offer(self, slab: Slab) -> None:
        self.offers += 1
        heapq.heappush(self.open, (len(slab.free), self.offers, slab))

    def _fullest(self) -> Slab:
        while self.open:
            count, _, slab = heapq.heappop(self.open)
            if count == len(slab.free) < self.shape.blocks:
                return slab
        self.totals.slab_pages += self.shape.pages
        return Slab(self.shape)

    def _refill(self) -> None:
        wanted: list[Place] = []
        count = (self.shape.bin + 1) // 2
        while len(wanted) < count:
            slab = self._fullest()
            while slab.free and len(wanted) < count:
                wanted.append((slab, heapq.heappop(slab.free)))
            if slab.free:
                self._offer(slab)
        self.bin = wanted[::-1]

    def _flush(self) -> None:
        count = self.shape.bin
        for slab, at in self.bin[:count]:
            heapq.heappush(slab.free, at)
            if len(slab.free) == self.shape.blocks:
                self.totals.slab_pages -= self.shape.pages  # it goes back: its offers are stale
            else:
                self._offer(slab)
        del self.bin[:count]

    def take(self) -> Place:
        if not self.bin:
            self._refill()
        place = slab, at = self.bin.pop()
        first, last = self.shape.spans[at]
        for page in range(first, last + 1):
            if not slab.pages[page]:
                self.totals.pages += 1
            slab.pages[page] += 1
        return place

    def give(self, place: Place) -> None:
        slab, at = place
        first, last = self.shape.spans[at]
        for page in range(first, last + 1):
            slab.pages[page] -= 1
            if not slab.pages[page]:
                self.totals.pages -= 1
        if len(self.bin) == 2 * self.shape.bin:
            self._flush()
        self.bin.append(place)


@dataclass
class Events:
    """What a program did with small blocks. A step is a block's number where it begins, and its
    complement (~number) where it ends. A realloc that stays in its class is no step."""
    steps: list[int]
    times: list[int]  # of each step, ns
    classes: list[int]  # of each block
    stacks: list[Frames]  # of each block: innermost first; of a moved one, those of the first
    ends: list[int]  # of each block: bytes allocated by then; -1: it stayed
    begins: list[int]


def frames_of(row: Sequence[int]) -> Frames:
    """The record behind a STACK is four addresses."""
    address, size, time, stack, thread, kind, shift = row
    words = (address, size, time, stack | thread << 32 | kind << 48 | shift << 56)
    return tuple(word for word in words if word)


def read(content: numpy.ndarray) -> Events:
    """The events of the records that the recorder has written."""
    stacks: dict[int, Frames] = {0: ()}
    events = Events([], [], [], [], [], [])
    live: dict[int, int] = {}
    moving: dict[int, int | None] = {}  # by thread: the block that it resizes, if that is known
    allocated = 0
    rows = iter(content.tolist())

    def begin(address: int, size: int, stack: Frames, time: int) -> None:
        nonlocal allocated
        if address in live:  # the recorder has not seen how it ended
            end(live[address], time)
        number = live[address] = len(events.classes)
        events.classes.append(size_class(size))
        events.stacks.append(stack)
        events.begins.append(allocated)
        events.ends.append(-1)
        events.steps.append(number)
        events.times.append(time)
        allocated += class_bytes(events.classes[-1])

    def end(number: int, time: int) -> None:
        events.ends[number] = allocated
        events.steps.append(~number)
        events.times.append(time)

    for address, size, time, stack, thread, kind, shift in rows:
        size = -(-size >> shift) << shift if shift else size
        if kind == STACK:
            stacks[stack] = frames_of(next(rows))
        elif kind in (BLOCK, ZEROED) and size <= SMALL:
            begin(address, size, stacks[stack], time)
        elif kind == FREED:
            if (number := live.pop(address, None)) is not None:
                end(number, time)
        elif kind == RESIZE:
            moving[thread] = live.pop(address, None)
        elif kind == RESIZED:
            number = moving.pop(thread, None)
            if number is not None and size <= SMALL and size_class(size) == events.classes[number]:
                live[address] = number
            else:
                if size <= SMALL:
                    begin(address, size, stacks[stack] if number is None
                          else events.stacks[number], time)
                if number is not None:
                    end(number, time)
    return events


def groups_by(events: Events, key: Callable[[int], object]) -> list[int]:
    """Of each block its group, numbered in the order of keys."""
    numbers: dict[object, int] = {}
    return [numbers.setdefault(key(block), len(numbers)) for block in range(len(events.classes))]


@dataclass
class Held:
    """Pages that are held: in the mean over time, at most, and at the end."""
    mean: float
    peak: int
    end: int


@dataclass
class Placed:
    """What a grouping needs: pages with a block in use, and pages of slabs that are not empty."""
    pages: Held
    slab_pages: Held
    groups: int


class Gauge:
    """Adds up a count over time."""

    def __init__(self) -> None:
        self.area, self.last_ns, self.peak, self.value = 0.0, 0, 0, 0

    def note(self, value: int, until_ns: int) -> None:
        """It was `value` until then."""
        self.area += value * (until_ns - self.last_ns)
        self.last_ns = until_ns
        self.peak = max(self.peak, value)
        self.value = value

    def held(self) -> Held:
        return Held(self.area / max(self.last_ns, 1), self.peak, self.value)


LOOK = 64  # steps from one reading to the next


def place(events: Events, groups: Sequence[int]) -> Placed:
    """Runs through the events, with the group of each block."""
    totals = Totals()
    shelves: dict[tuple[int, int], Shelf] = {}
    places: dict[int, tuple[Shelf, Place]] = {}
    pages, slab_pages = Gauge(), Gauge()
    last = len(events.steps) - 1
    for at, step in enumerate(events.steps):
        if step >= 0:
            key = events.classes[step], groups[step]
            shelf = shelves.get(key)
            if shelf is None:
                shelf = shelves[key] = Shelf(SHAPES[key[0]], totals)
            places[step] = shelf, shelf.take()
        else:
            shelf, block = places.pop(~step)
            shelf.give(block)
        if at % LOOK == LOOK - 1 or at == last:
            until_ns = events.times[min(at + 1, last)]
            pages.note(totals.pages, until_ns)
            slab_pages.note(totals.slab_pages, until_ns)
    return Placed(pages.held(), slab_pages.held(), len(set(groups)))


def dense(events: Events) -> Held:
    """What the blocks would need without a gap: their bytes, rounded up to classes, as pages."""
    gauge, used = Gauge(), 0
    for at, step in enumerate(events.steps):
        size = class_bytes(events.classes[step if step >= 0 else ~step])
        used += size if step >= 0 else -size
        gauge.note(-(-used // PAGE), events.times[min(at + 1, len(events.times) - 1)])
    return gauge.held()
