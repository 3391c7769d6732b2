"""The options of HAKMEM, as the table in its source declares them: names, ranges, modes."""

import json
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

from hakmem_lab import LabError, ROOT

SWITCH_WORDS = ("0", "off", "no", "false", "1", "on", "yes", "true")


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
    least, most, unit = option["least"], option["most"], option["unit"]
    if option["switch"]:
        if value.lower() not in SWITCH_WORDS:
            raise LabError(f"{plain} does not take '{value}'; it takes on or off")
    elif not re.fullmatch(r"[0-9]{1,18}", value) or not least <= int(value) <= most:
        raise LabError(f"{plain} does not take '{value}'; it takes {least} to {most} {unit}")
    return f"HAKMEM_{plain.upper()}", value


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
