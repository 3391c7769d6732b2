"""The options of HAKMEM, as the table in its source declares them: names, ranges, modes."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from hakmem_lab import LabError, ROOT


@cache
def _export() -> dict[str, Any]:
    command = [sys.executable, "-EB", str(ROOT / "tools/options_doc.py"), "--json"]
    table: dict[str, Any] = json.loads(subprocess.check_output(command))
    return table


def names() -> tuple[str, ...]:
    return tuple(option["name"] for option in _export()["options"])


def setting(name: str, value: str) -> tuple[str, str]:
    """The environment variable of an option and its value; LabError if it does not take it."""
    plain = name.lower().removeprefix("hakmem_").replace("-", "_")
    if plain == "mode":
        if value.lower() not in _export()["modes"]:
            raise LabError(f"no mode '{value}'; there are {', '.join(_export()['modes'])}")
        return "HAKMEM_MODE", value.lower()
    if plain not in names():
        raise LabError(f"no option '{name}'; docs/options.md has {', '.join(names())}")
    option = _export()["options"][names().index(plain)]
    least, most, words = option["least"], option["most"], option["words"]
    is_number = option["numbers"] and re.fullmatch(r"[0-9]{1,18}", value)
    if value.lower() in words or (is_number and least <= int(value) <= most):
        return f"HAKMEM_{plain.upper()}", value
    first = {meant: word for word, meant in reversed(words.items())}  # of several for a value
    numbers = [f"{least} to {most} {option['unit']}"] if option["numbers"] else []
    taken = numbers + [first[meant] for meant in sorted(first)]
    raise LabError(f"{plain} does not take '{value}'; it takes {' or '.join(taken)}")


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
