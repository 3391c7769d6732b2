"""Traces, as recorder/recorder.h describes them."""
import struct
from typing import NamedTuple

HEAD = b"hakmem trace 2\n\0"
STACK, BLOCK, FREED, RESIZE, RESIZED, ZEROED = range(1, 7)
RECORD = struct.Struct("<QQQIHBB")  # address, size, ns, stack, thread, kind, shift


# A block is there from then on, or no longer.
NEW, GONE = (BLOCK, ZEROED, RESIZED), (FREED, RESIZE)


class Record(NamedTuple):
    """As recorder/records.c has it, without those of stacks."""
    kind: int
    size: int
    address: int
    thread: int
    shift: int
    frames: tuple[int, ...]


def records(path):
    """All that are in the file."""
    with path.open("rb") as file:
        head = file.read(32)
        assert head[:16] == HEAD
        data = file.read(RECORD.size * int.from_bytes(head[16:24], "little"))
    rows, stacks, last_ns = RECORD.iter_unpack(data), {0: ()}, 0
    for address, size, now_ns, stack, thread, kind, shift in rows:
        if kind == STACK:
            words = struct.unpack("<4Q", RECORD.pack(*next(rows)))
            stacks[stack] = tuple(word for word in words if word)
            continue
        assert last_ns <= now_ns < 600e9
        last_ns = now_ns
        yield Record(kind, size, address, thread, shift, stacks[stack])
