"""What shells complete after `hakmem` beyond what click knows: settings, programs, processes."""

import os
import re
from pathlib import Path
from tempfile import TemporaryDirectory

from click import Context, Parameter
from click.shell_completion import CompletionItem

from hakmem.errors import UserError
from hakmem.place import said_by_library
from hakmem.statistics import picture_of

TEXTS = ("mode", "policy", "profile", "stats", "trace")  # settings that statistics do not list


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
    if before and not word and before[-1].lower().removeprefix("hakmem_") in settings:
        return _values(before[-1])  # in bash the word is the = that click has taken away
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


def words(context: Context, _: Parameter, word: str) -> list[CompletionItem]:
    """NAME=VALUE and a program. bash splits NAME=VALUE into three words, other shells do not."""
    try:
        found = _candidates(list(context.params.get("words") or ()), word)
    except UserError:  # a library that does not run
        found = []
    return [CompletionItem(each) for each in found if each.startswith(word)] or [
        CompletionItem(word, type="file")]


def processes(_: Context, parameter: Parameter, word: str) -> list[CompletionItem]:
    found = [each for each in os.listdir("/proc") if each.isdecimal() and each.startswith(word)]
    return [CompletionItem(each) for each in found] or [CompletionItem(word, type="file")]
