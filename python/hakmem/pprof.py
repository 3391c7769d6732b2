"""Reads and adds up heap profiles in the format of pprof (profile.proto): those that the library
writes, and what stores of profiles and `pprof -proto` make of them (packed, compressed, merged)."""

import functools
import re
from bisect import bisect_right, insort
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hakmem import foreign
from hakmem.elf import BUILD_ID
from hakmem.errors import UserError

SIZE_LABEL, UNNAMED_LABEL, SLOT_LABELS = "block_size", "unnamed", ("caller_2", "caller_3")
NEEDED = frozenset(("alloc_space", "inuse_space"))
ABSENT = dict.fromkeys(("alloc_objects", "inuse_objects", "moved_objects", "moved_space"), 0)
MOST_ROWS, MOST_MAPPINGS = 1 << 20, 1 << 14  # a process has 262,144 samples, 1,024 mappings
MOST_CALLERS = 1024
WENT_ON = "the program went on after milliseconds: "

# What is read of profile.proto (github.com/google/pprof): the numbers of the fields, and what a
# field is; "*": any number of them. A string need not be UTF-8, for a path need not be.
MESSAGES = {
    "ValueType": {"type": (1, "uint64")},
    "Label": {"key": (1, "uint64"), "num": (3, "int64")},
    "Sample": {"location_id": (1, "*uint64"), "value": (2, "*int64"), "label": (3, "*Label")},
    "Mapping": {"id": (1, "uint64"), "memory_start": (2, "uint64"), "memory_limit": (3, "uint64"),
                "file_offset": (4, "uint64"), "filename": (5, "uint64"), "build_id": (6, "uint64")},
    "Location": {"id": (1, "uint64"), "mapping_id": (2, "uint64"), "address": (3, "uint64")},
    "Profile": {"sample_type": (1, "*ValueType"), "sample": (2, "*Sample"),
                "mapping": (3, "*Mapping"), "location": (4, "*Location"),
                "string_table": (6, "*bytes"), "duration_nanos": (10, "int64"),
                "period": (12, "int64"), "comment": (13, "*uint64")},
}


@dataclass(frozen=True)
class Mapping:
    """A mapped piece of code."""

    start: int
    end: int
    offset: int
    path: str
    build_id: str  # "": it has none that is one


@dataclass
class Sample:
    """A call stack, and what it has allocated."""

    addresses: list[int]  # innermost first; 0 or below: in no mapping
    values: dict[str, int]
    block_size: int = 0
    is_unnamed: bool = False  # no rule of a policy can name the call
    slots: tuple[int, ...] = ()  # where return addresses behind the first stood; 0: unknown

    @property
    def kept(self) -> int:
        """Bytes of the blocks that are not freed, at the size that they had before realloc moved
        them; if the profile does not say it, of those that it has not moved."""
        return self.values.get("kept_space", self.values["inuse_space"])


@dataclass
class Profile:
    """All samples of a process."""

    samples: list[Sample] = field(default_factory=list)
    mappings: list[Mapping] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    period: int = 0
    duration_ns: int = 0  # 0: the file does not say it

    @property
    def is_unfinished(self) -> bool:
        """It was written while the program ran, which did not come to its end then."""
        return any(comment.startswith(WENT_ON) for comment in self.comments)

    @functools.cached_property
    def _in_order(self) -> tuple[list[int], list[Mapping]]:
        """The mappings, which do not overlap, by where they start."""
        mappings = sorted(self.mappings, key=lambda each: each.start)
        return [each.start for each in mappings], mappings

    def mapping_of(self, address: int) -> Mapping | None:
        starts, mappings = self._in_order
        place = bisect_right(starts, address) - 1
        return mappings[place] if place >= 0 and address < mappings[place].end else None

    def total(self, value: str) -> int:
        return sum(sample.values[value] for sample in self.samples)

    def of(self, value: str, *ranges: tuple[int, int]) -> int:
        """The sum over the samples whose stack passes through all the ranges of addresses."""
        return sum(sample.values[value] for sample in self.samples
                   if all(any(low <= address < high for address in sample.addresses)
                          for low, high in ranges))


@functools.cache
def library() -> tuple[Any, Any]:
    """(the class of a profile, the error of a damaged one), as protobuf makes them."""
    descriptors = foreign.needed("google.protobuf.descriptor_pb2", "protobuf")
    file = descriptors.FileDescriptorProto(name="hakmem_profile.proto", package="hakmem_profile",
                                           syntax="proto3")
    kinds = descriptors.FieldDescriptorProto
    for message, fields in MESSAGES.items():
        made = file.message_type.add(name=message)
        for name, (number, what) in fields.items():
            kind, is_message = what.lstrip("*"), what.lstrip("*") in MESSAGES
            made.field.add(
                name=name, number=number,
                label=kinds.LABEL_REPEATED if what[0] == "*" else kinds.LABEL_OPTIONAL,
                type=kinds.TYPE_MESSAGE if is_message else kinds.Type.Value(f"TYPE_{kind.upper()}"),
                type_name=f".hakmem_profile.{kind}" if is_message else None)
    classes = foreign.needed("google.protobuf.message_factory", "protobuf").GetMessages([file])
    return (classes["hakmem_profile.Profile"],
            foreign.needed("google.protobuf.message", "protobuf").DecodeError)


def read(path: Path) -> Profile:
    """The profile in a file, compressed or not."""
    try:
        return parsed(foreign.unpacked(foreign.read(path)))
    except ValueError:
        raise UserError(f"{path} is no heap profile of HAKMEM, or not all of one") from None


def parsed(data: bytes) -> Profile:
    """ValueError: that is none."""
    message, damaged = library()
    try:
        return _profile(message.FromString(data))
    except (damaged, IndexError, KeyError):
        raise ValueError from None


def total_of(data: bytes, value: str) -> int:
    """The sum of a value, without looking at more. ValueError: that is no profile."""
    message, damaged = library()
    try:
        told = message.FromString(data)
        place = [told.string_table[each.type] for each in told.sample_type].index(value.encode())
        return sum(each.value[place] for each in told.sample)
    except (damaged, IndexError):
        raise ValueError from None


def _shift_of(mapping: Mapping, taken: list[tuple[int, int]], count: int) -> int:
    """By what a mapping has to move to lie beside the others: in a profile merged of processes, two
    libraries may have had the same place. `taken` are the places of those that did not move."""
    place = bisect_right(taken, (mapping.start, mapping.end))
    if any(mapping.start < end and start < mapping.end
           for start, end in taken[max(place - 1, 0):place + 1]):
        return (count + 1) << 64
    insort(taken, (mapping.start, mapping.end))
    return 0


def _mappings_of(message: Any, texts: list[str]) -> tuple[list[Mapping], dict[int, int]]:
    """The mappings, and how far the one with a number was moved."""
    if len(message.mapping) > MOST_MAPPINGS:
        raise ValueError
    mappings, shifts = list[Mapping](), {0: 0}
    taken: list[tuple[int, int]] = []
    for each in message.mapping:
        build_id = texts[each.build_id]
        mapping = Mapping(each.memory_start, each.memory_limit, each.file_offset,
                          texts[each.filename], build_id if BUILD_ID.fullmatch(build_id) else "")
        if mapping.start >= mapping.end:
            raise ValueError
        shift = shifts[each.id] = _shift_of(mapping, taken, len(mappings))
        mappings.append(replace(mapping, start=mapping.start + shift, end=mapping.end + shift))
    return mappings, shifts


def _profile(message: Any) -> Profile:
    """Raises IndexError, KeyError or ValueError where the message says what no profile says."""
    if max(map(len, (message.sample, message.location, message.string_table))) > MOST_ROWS:
        raise ValueError
    texts = [text.decode(errors="surrogateescape") for text in message.string_table]
    kinds = [texts[each.type] for each in message.sample_type]
    if not NEEDED <= set(kinds) or message.period < 0:
        raise ValueError
    mappings, shifts = _mappings_of(message, texts)
    addresses = {each.id: each.address + shifts[each.mapping_id] if each.mapping_id else
                 -each.address for each in message.location}  # 0 or below: in no mapping
    samples = []
    for each in message.sample:
        values = ABSENT | dict(zip(kinds, each.value, strict=True))
        if min(values.values()) < 0 or len(each.location_id) > MOST_CALLERS:
            raise ValueError
        labels = {texts[label.key]: label.num for label in reversed(each.label)}
        samples.append(Sample([addresses[number] for number in each.location_id], values,
                              labels.get(SIZE_LABEL, 0), UNNAMED_LABEL in labels,
                              tuple(labels.get(name, 0) for name in SLOT_LABELS)))
    return Profile(samples, mappings, [texts[number] for number in message.comment], message.period,
                   max(message.duration_nanos, 0))
