"""Policies: settings and site rules of a program, as a text (src/options/policy_file.h)."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from hakmem import foreign
from hakmem.errors import UserError
from hakmem.foreign import plain
from hakmem.place import said_by_library

HEAD = "hakmem policy 1"
BUILD_ID = r"[0-9a-f]{8,40}"
STATEMENTS = {
    "program": re.compile(rf"program ({BUILD_ID})"),
    "option": re.compile(r"option ([a-z0-9_]+) (\S+)"),
    "site": re.compile(rf"site ({BUILD_ID}) ([0-9a-f]{{1,16}}) ([0-9]+) group ([0-9]+)"
                       rf"((?: caller [0-9]+ {BUILD_ID} [0-9a-f]{{1,16}}){{0,2}})"),
}
MOST_RULES = 128  # the bounds of src/options/tuning.h
MOST_SIZES = 32  # for which groups surely have size classes
MOST_BYTES, MOST_COMMENT = 128 << 10, 400  # comments of all rules fit into a file
LARGEST_SIZE, LAST_GROUP = 32768, 15
MOST_FRAMES, MOST_SLOT, WORD = 3, 1024, 8
# A text of the library's options has 255 bytes, and a file's name is a build ID and .policy.
LONGEST_FOLDER = 255 - len(f"/{'f' * 40}.policy")


@dataclass(frozen=True, order=True)
class Caller:
    """The place behind the call of a function that allocates, and where this return address stands:
    in bytes above the stack pointer at the call of malloc."""

    slot: int
    build_id: str
    place: int

    def __str__(self) -> str:
        return f" caller {self.slot} {self.build_id} {self.place:x}"


@dataclass(frozen=True, order=True)
class Site:
    """Code that asks for blocks of a size: the place behind its call of malloc, and where that is
    in a function that allocates for others, the callers that are meant, the next one first."""

    build_id: str
    place: int
    size: int
    callers: tuple[Caller, ...] = ()

    def text(self) -> str:
        """As people read it."""
        return (f"{self.build_id[:12]} {self.place:x}, {self.size} bytes" +
                "".join(f", called from {caller.build_id[:12]} {caller.place:x}"
                        for caller in self.callers))


Key = str | Site


@dataclass
class Policy:
    """What a file says, with the comments in front of each statement."""

    program: str = ""
    options: dict[str, str] = field(default_factory=dict)
    groups: dict[Site, int] = field(default_factory=dict)
    comments: dict[Key, list[str]] = field(default_factory=dict)  # "": of the whole

    def text(self) -> str:
        lines = [HEAD, *self._commented(""), *[""] * bool(self.comments.get(""))]
        if self.program:
            lines += [*self._commented("program"), f"program {self.program}"]
        for name, value in sorted(self.options.items()):
            lines += [*self._commented(name), f"option {name} {value}"]
        for site, group in sorted(self.groups.items(), key=lambda each: (each[1], each[0])):
            lines += [*self._commented(site),
                      f"site {site.build_id} {site.place:x} {site.size} group {group}" +
                      "".join(map(str, site.callers))]
        return "\n".join(lines) + "\n"

    def _commented(self, what: Key) -> Iterator[str]:
        for comment in self.comments.get(what, []):
            yield f"# {plain(comment, MOST_COMMENT)}"


def parse(text: str, name: str = "the policy") -> Policy:
    """Refuses what the library refuses, but for names and values of options, which it knows."""
    lines = text.split("\n")
    if lines[0] != HEAD:
        raise UserError(f"{name}: line 1: expected: {HEAD}")
    if lines.pop() != "":
        raise UserError(f"{name}: line {len(lines) + 1}: the last line has no end")
    policy, comments = Policy(), list[str]()
    for number, line in enumerate(lines[1:], 2):
        if line.startswith("#"):
            comments.append(line[1:].strip())
            continue
        if not line:
            policy.comments.setdefault("", []).extend(comments)
            comments = []
            continue
        try:
            what = _add(policy, line)
        except ValueError as error:
            raise UserError(f"{name}: line {number}: {error}") from None
        if comments:
            policy.comments[what] = comments
            comments = []
    policy.comments.setdefault("", []).extend(comments)
    return policy


def _add(policy: Policy, line: str) -> Key:
    if not (line.isascii() and line.isprintable()):
        raise ValueError("a character that is not printable")
    kind = line.split(" ")[0]
    if kind not in STATEMENTS:
        raise ValueError("expected program, option or site")
    found = STATEMENTS[kind].fullmatch(line)
    if found is None:
        raise ValueError(f"no {kind} is written so: {line}")
    if kind == "program":
        if policy.program:
            raise ValueError("there is a program already")
        policy.program = found[1]
        return "program"
    if kind == "option":
        if found[1] in policy.options:
            raise ValueError("the option stands here twice")
        policy.options[found[1]] = found[2]
        return found[1]
    if len(policy.groups) == MOST_RULES:
        raise ValueError("too many sites")
    _refuse_beyond("size", found[3], LARGEST_SIZE)
    _refuse_beyond("group", found[4], LAST_GROUP)
    site = Site(found[1], int(found[2], 16), int(found[3]), _callers(found[5].split()))
    for other in policy.groups:
        _compare(site, other)
    policy.groups[site] = int(found[4])
    return site


def _callers(words: list[str]) -> tuple[Caller, ...]:
    callers = tuple(Caller(int(words[at + 1]), words[at + 2], int(words[at + 3], 16))
                    for at in range(0, len(words), 4))
    slots = [0, *(caller.slot for caller in callers)]
    if any(slot <= last or slot % WORD or slot > MOST_SLOT for last, slot in pairwise(slots)):
        raise ValueError(f"the bytes of stack are no rising multiples of 8 up to {MOST_SLOT}")
    return callers


def _compare(site: Site, other: Site) -> None:
    """Refuses a site that a policy has, or that says otherwise where a return address stands."""
    if site == other:
        raise ValueError("the site stands here twice")
    if (site.build_id, site.place, site.size) != (other.build_id, other.place, other.size):
        return
    for caller, as_other in zip(site.callers, other.callers):
        if caller.slot != as_other.slot:
            raise ValueError("the bytes of stack differ from those of another line")
        if caller != as_other:
            return


def _refuse_beyond(what: str, text: str, most: int) -> None:
    if not 1 <= int(text) <= most:
        raise ValueError(f"the {what} is no number from 1 to {most}")


def read(path: Path) -> Policy:
    try:
        return parse(foreign.read(path, MOST_BYTES).decode(), str(path))
    except UnicodeDecodeError:
        raise UserError(f"{path}: line 1: a character that is not printable") from None


def write(path: Path, policy: Policy) -> None:
    """As a whole: a program that starts meanwhile reads the old policy or the new one."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        draft.write_text(policy.text(), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from None
    finally:
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def refusal(path: Path) -> str:
    """What the library says against a policy; "" if nothing."""
    read(path)
    for line in said_by_library({"HAKMEM_POLICY": str(path.resolve())}).split("\n"):
        if "HAKMEM_POLICY" in line:  # The library cuts a line that is too long.
            found = re.search(r" is ignored: (.*?)(?: [(\[]/.*)?$", line)
            return f"{path}: {found[1] if found else 'the library does not take it'}"
    return ""


def merge(first: Policy, second: Policy) -> Policy:
    """Both; where they differ the second counts. Groups of the second get numbers of their
    own."""
    if first.program and second.program and first.program != second.program:
        raise UserError(f"the policies are for two programs, {first.program[:12]} and "
                        f"{second.program[:12]}")
    merged = Policy(first.program or second.program, {**first.options, **second.options},
                    dict(first.groups), {**first.comments, **second.comments})
    last = max(first.groups.values(), default=0)
    for site, group in second.groups.items():
        for other in first.groups if site not in first.groups else ():
            try:
                _compare(site, other)
            except ValueError as error:
                raise UserError(f"the policies do not fit together: {error}") from None
        merged.groups[site] = first.groups.get(site, group + last)
    if len(merged.groups) > MOST_RULES:
        raise UserError(f"together the policies have more than {MOST_RULES} sites")
    if max(merged.groups.values(), default=0) > LAST_GROUP:
        raise UserError(f"together the policies have more than {LAST_GROUP} groups")
    return merged


def difference(first: Policy, second: Policy) -> list[str]:
    """What the second says differently, a line each; empty: nothing."""
    lines = []
    if first.program != second.program:
        lines.append(f"program: {first.program or 'any'} -> {second.program or 'any'}")
    for name in sorted(first.options.keys() | second.options.keys()):
        old, new = first.options.get(name, "-"), second.options.get(name, "-")
        if old != new:
            lines.append(f"option {name}: {old} -> {new}")
    for site in sorted(first.groups.keys() | second.groups.keys()):
        was, now = first.groups.get(site, 0), second.groups.get(site, 0)
        if was != now:
            lines.append(f"site {site.text()}: "
                         f"{f'group {was}' if was else '-'} -> {f'group {now}' if now else '-'}")
    return lines
