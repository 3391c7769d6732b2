"""The options of HAKMEM, as the table in its source declares them: names, ranges, modes."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from hakmem_lab import LabError, ROOT

PAGE = ROOT / "docs/options.md"
SWITCH_WORDS = ("0", "off", "no", "false", "1", "on", "yes", "true")


@dataclass(frozen=True)
class Option:
    """A row of the page."""

    name: str  # in lower case and without the prefix, as purge_delay_ms
    unit: str
    least: int | None  # None: it is on or off
    most: int | None

    def takes(self, value: str) -> bool:
        """As src/policy/options.c reads it."""
        if self.least is None or self.most is None:
            return value.lower() in SWITCH_WORDS
        digits = re.fullmatch(r"[0-9]{1,18}", value)
        return digits is not None and self.least <= int(value) <= self.most

    def expected(self) -> str:
        if self.least is None or self.most is None:
            return "on or off"
        return f"{self.least} to {self.most} {self.unit}"


@cache
def table() -> dict[str, Option]:
    """All options by name."""
    found = {}
    for line in re.findall(r"^\| `HAKMEM_\w+` .*$", PAGE.read_text(), re.MULTILINE):
        cells = [cell.strip() for cell in line.strip("| ").split("|")]
        name, unit, extent = cells[0].strip("`").removeprefix("HAKMEM_").lower(), *cells[2:4]
        ends = [int(word) for word in re.findall(r"\d+", extent)]
        found[name] = Option(name, unit, *(ends if len(ends) == 2 else (None, None)))
    return found


def names() -> tuple[str, ...]:
    return tuple(table())


@cache
def modes() -> tuple[str, ...]:
    head = re.search(r"picks the defaults: (.*)\.", PAGE.read_text())
    return tuple(re.findall(r"`(\w+)`", head[1])) if head else ()


def known_mode(mode: str) -> str:
    if mode not in modes():
        raise LabError(f"no mode '{mode}'; there are {', '.join(modes())}")
    return mode


def variable_of(name: str) -> str:
    """The environment variable of an option; LabError with the nearest names if there is none."""
    plain = name.lower().removeprefix("hakmem_").replace("-", "_")
    if plain == "mode":
        return "HAKMEM_MODE"
    if plain not in names():
        raise LabError(f"no option '{name}'; docs/options.md has {', '.join(names())}")
    return f"HAKMEM_{plain.upper()}"


def setting(name: str, value: str) -> tuple[str, str]:
    """The environment variable of an option and its value; LabError if it does not take it."""
    variable = variable_of(name)
    if variable == "HAKMEM_MODE":
        return variable, known_mode(value.lower())
    option = table()[variable.removeprefix("HAKMEM_").lower()]
    if not option.takes(value):
        raise LabError(f"{option.name} does not take '{value}'; it takes {option.expected()}")
    return variable, value


def environment_of(settings: Sequence[str]) -> dict[str, str]:
    """The environment for settings like purge_delay_ms=0."""
    environment = {}
    for word in settings:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise LabError(f"'{word}' is not OPTION=VALUE")
        variable, text = setting(name, value)
        environment[variable] = text
    return environment
