"""Reads and adds up heap profiles in the format of pprof (profile.proto): those that the library
writes, and what stores of profiles and `pprof -proto` make of them (packed, compressed, merged)."""

import gzip
import zlib
from collections.abc import Iterator, Mapping as Table, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hakmem.errors import UserError

SIZE_LABEL = "block_size"


@dataclass(frozen=True)
class Mapping:
    """A mapped piece of code."""

    start: int
    end: int
    offset: int
    path: str
    build_id: str


@dataclass
class Sample:
    """A call stack, and what it has allocated."""

    addresses: list[int]  # innermost first; 0 or below: in no mapping
    values: dict[str, int]
    block_size: int = 0


@dataclass
class Profile:
    """All samples of a process."""

    samples: list[Sample] = field(default_factory=list)
    mappings: list[Mapping] = field(default_factory=list)
    comments: list[str] = field(default_factory=list)
    period: int = 0

    def mapping_of(self, address: int) -> Mapping | None:
        return next((each for each in self.mappings if each.start <= address < each.end), None)

    def total(self, value: str) -> int:
        return sum(sample.values[value] for sample in self.samples)

    def of(self, value: str, *ranges: tuple[int, int]) -> int:
        """The sum over the samples whose stack passes through all the ranges of addresses."""
        return sum(sample.values[value] for sample in self.samples
                   if all(any(low <= address < high for address in sample.addresses)
                          for low, high in ranges))


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """A number, and where the next begins."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """(number, value) of each field: an int, or bytes."""
    at = 0
    while at < len(message):
        tag, at = _varint(message, at)
        value, at = _varint(message, at)
        if tag & 7 == 2:
            if at + value > len(message):
                raise IndexError
            yield tag >> 3, message[at:at + value]
            at += value
        elif tag & 7 == 0:
            yield tag >> 3, value
        else:
            raise IndexError


def _messages(message: bytes, wanted: int) -> list[bytes]:
    return [value for number, value in _fields(message)
            if number == wanted and isinstance(value, bytes)]


def _numbers(message: bytes, wanted: int) -> list[int]:
    """Of a field that is a number or, packed, several."""
    found = []
    for number, value in _fields(message):
        if number == wanted and isinstance(value, int):
            found.append(value)
        elif number == wanted and isinstance(value, bytes):
            at = 0
            while at < len(value):
                each, at = _varint(value, at)
                found.append(each)
    return found


def _number(message: bytes, wanted: int) -> int:
    return (_numbers(message, wanted) or [0])[0]


def read(path: Path) -> Profile:
    """The profile in a file, compressed or not."""
    try:
        message = path.read_bytes()
        return _parse(gzip.decompress(message) if message[:2] == b"\x1f\x8b" else message)
    except (IndexError, ValueError, KeyError, EOFError, zlib.error, gzip.BadGzipFile):
        raise UserError(f"{path} is no heap profile of HAKMEM, or not all of one") from None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None


def _shift_of(mapping: Mapping, others: Sequence[Mapping]) -> int:
    """By what a mapping has to move to lie beside the others: in a profile merged of processes, two
    libraries may have had the same place."""
    overlaps = any(mapping.start < each.end and each.start < mapping.end for each in others)
    return (len(others) + 1) << 64 if overlaps else 0


def _address_of(location: bytes, shifts: Table[int, int]) -> int:
    """0 or below for code that lies in no mapping."""
    address, mapping = _number(location, 3), _number(location, 2)
    return address + shifts[mapping] if mapping else -address


def _parse(message: bytes) -> Profile:
    texts = [text.decode(errors="replace") for text in _messages(message, 6)]
    kinds = [texts[_number(kind, 1)] for kind in _messages(message, 1)]
    if not kinds:
        raise ValueError
    profile = Profile(period=_number(message, 12),
                      comments=[texts[number] for number in _numbers(message, 13)])
    shifts = {0: 0}  # by number of the mapping
    for each in _messages(message, 3):
        mapping = Mapping(_number(each, 2), _number(each, 3), _number(each, 4),
                          texts[_number(each, 5)], texts[_number(each, 6)])
        shift = _shift_of(mapping, profile.mappings)
        shifts[_number(each, 1)] = shift
        profile.mappings.append(replace(mapping, start=mapping.start + shift,
                                        end=mapping.end + shift))
    addresses = {_number(each, 1): _address_of(each, shifts) for each in _messages(message, 4)}
    for each in _messages(message, 2):
        values = dict(zip(kinds, _numbers(each, 2), strict=True))
        sizes = [_number(label, 3) for label in _messages(each, 3)
                 if texts[_number(label, 1)] == SIZE_LABEL]
        profile.samples.append(Sample([addresses[number] for number in _numbers(each, 1)], values,
                                      (sizes or [0])[0]))
    return profile
