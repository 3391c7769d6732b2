"""What shells complete after `hakmem`: commands, options, settings, programs, processes."""

import argparse
import os
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NoReturn

from hakmem.errors import UsageError, UserError
from hakmem.place import said_by_library
from hakmem.statistics import picture_of

# Each shell asks the command, with the words up to the cursor. Where the answer is empty the shell
# completes names of files. Nothing follows a word that ends with =.
SHELLS = {
    "bash": """_hakmem() {
    mapfile -t COMPREPLY < <(hakmem --complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2> /dev/null)
    [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace
}
complete -o bashdefault -o default -F _hakmem hakmem
""",
    "fish": """complete -c hakmem -a '(hakmem --complete (commandline -opc)[2..-1] \
    (commandline -ct | string collect --allow-empty) 2> /dev/null)'
""",
    "zsh": """#compdef hakmem
_hakmem() {
    local -a found=("${(@f)$(hakmem --complete "${(@)words[2,CURRENT]}" 2> /dev/null)}")
    [[ -n $found ]] || { _files; return }
    compadd -S '' -- ${(M)found:#*=}
    compadd -- ${found:#*=}
}
if [ "$funcstack[1]" = _hakmem ]; then _hakmem; else compdef _hakmem hakmem; fi
""",
}
TEXTS = ("mode", "policy", "profile", "stats")  # settings that statistics do not list


def _values(name: str) -> list[str]:
    """The words that the library takes for an option, as its complaint about another one says."""
    said = said_by_library({f"HAKMEM_{name.upper().removeprefix('HAKMEM_')}": "?"})
    found = re.search(r" is ignored: expected (.+)", said)
    return [word for word in re.split(", | or ", found[1] if found else "") if " " not in word]


def _settings() -> dict[str, str]:
    """What can be set, and the value that counts without."""
    with TemporaryDirectory() as folder:
        said_by_library({"HAKMEM_STATS": f"{folder}/statistics"})
        told = picture_of(f"{folder}/statistics").told["options"]
    return {name: str(value) for name, value in told.items()} | dict.fromkeys(TEXTS, "")


def _programs(start: str) -> set[str]:
    return {name for folder in os.get_exec_path() if os.path.isdir(folder)
            for name in os.listdir(folder) if name.startswith(start)}


def _candidates(before: list[str], word: str) -> list[str]:
    settings = _settings()
    if before and word == "=" and before[-1].lower().removeprefix("hakmem_") in settings:
        return _values(before[-1])
    while before and (before[0] == "--" or "=" in "".join(before[:2])):
        if before[1:] == ["="]:
            return _values(before[0])
        del before[:3 if before[1:2] == ["="] else 1]
    if before:
        return []
    if "=" in word:
        name = word.partition("=")[0]
        return [f"{name}={value}" for value in _values(name)]
    found = [f"{name}=" for name in settings if name.startswith(word)]
    if len(found) == 1:  # with its values: a shell ends a word that is alone with a space
        name = found[0][:-1]
        found += [f"{name}={value}" for value in _values(name) or [settings[name]]]
    return found + sorted(_programs(word) if word else ())


def words(before: list[str], word: str) -> list[str]:
    """NAME=VALUE and a program. bash splits NAME=VALUE into three words, other shells do not."""
    try:
        return _candidates(before, word)
    except UserError:  # a library that does not run
        return []


def processes(before: list[str], word: str) -> list[str]:
    return [] if before else [each for each in os.listdir("/proc") if each.isdecimal()]


By = Callable[[list[str], str], list[str]]  # words of an argument that are complete, and the next


class Parser(argparse.ArgumentParser):
    """It is told in one line what is wrong, and its arguments can be asked for."""

    def __init__(self, **more: Any) -> None:
        self.actions: list[argparse.Action] = []
        self.complete_by: dict[str, By] = {}
        super().__init__(allow_abbrev=False, **more,
                         formatter_class=argparse.RawDescriptionHelpFormatter)

    def add_argument(self, *names: str, **more: Any) -> argparse.Action:
        self.actions.append(super().add_argument(*names, **more))
        return self.actions[-1]

    def add_commands(self) -> Any:
        self.actions.append(self.add_subparsers(metavar="COMMAND"))
        return self.actions[-1]

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}: {self.prog} --help tells more")


def candidates(parser: Parser, told: Sequence[str]) -> list[str]:
    """What the last word may become, after the others."""
    *before, word = told or ("",)
    options = {name: each for each in parser.actions for name in each.option_strings}
    takes = next((each for each in parser.actions if not each.option_strings), None)
    while before and before[0] in options:
        option = options[before.pop(0)]
        if option.nargs == 0:
            continue
        if not before:
            return _that_start(word, option.choices or ())
        before.pop(0)
    if takes and isinstance(takes.choices, dict):  # commands
        if before:
            return candidates(takes.choices[before[0]], [*before[1:], word]) \
                if before[0] in takes.choices else []
        return _that_start(word, [*takes.choices, *(options if word else ())])
    if not before and word.startswith("-"):
        return _that_start(word, options)
    by = parser.complete_by.get(takes.dest) if takes else None
    found = by(before, word) if by else []
    return _that_start("" if word == "=" else word, found)


def _that_start(word: str, names: Iterable[str]) -> list[str]:
    return [each for each in names if each.startswith(word)]
