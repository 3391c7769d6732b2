"""The options of HAKMEM, as the table in its source declares them: names, ranges, modes."""

import re
from collections.abc import Sequence
from functools import cache

from hakmem_lab import ROOT, LabError

PAGE = ROOT / "docs/options.md"


@cache
def names() -> tuple[str, ...]:
    """In lower case and without the prefix, as purge_delay_ms."""
    return tuple(word.lower() for word in re.findall(r"^\| `HAKMEM_(\w+)` ", PAGE.read_text(),
                                                     re.MULTILINE))


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


def environment_of(settings: Sequence[str]) -> dict[str, str]:
    """The environment for settings like purge_delay_ms=0."""
    environment = {}
    for word in settings:
        name, equals, value = word.partition("=")
        if not equals or not value:
            raise LabError(f"'{word}' is not OPTION=VALUE")
        environment[variable_of(name)] = value
    return environment
