#!/usr/bin/env python3
"""Writes python/completions: what bash, fish and zsh complete after the command hakmem. Made from
the command line of python/hakmem/command.py and the table of options. It needs click."""

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "python"), str(ROOT / "tools")]
import click  # noqa: E402
import options_doc  # noqa: E402
from hakmem.command import hakmem  # noqa: E402

FOLDER = "python/completions"
MADE = "# Made by tools/completions.py; do not edit. What {} completes after the command hakmem."
RUNS_PROGRAM = ("run", "profile", "leaks", "trace", "learn", "tune")
TAKES_PROCESS = ("stat", "top", "why")


@dataclass(frozen=True)
class Flag:
    """An option of a command."""

    name: str  # with its dashes
    takes_value: bool
    choices: tuple[str, ...]
    sentence: str


@dataclass(frozen=True)
class Command:
    """A command, with those below it."""

    name: str
    sentence: str
    flags: tuple[Flag, ...]
    below: tuple[str, ...]


def commands() -> list[Command]:
    found = []
    for name, each in hakmem.commands.items():
        flags = tuple(Flag(param.opts[-1], not param.is_flag,
                           tuple(getattr(param.type, "choices", ())), plain(param.help or ""))
                      for param in each.params if isinstance(param, click.Option))
        below = tuple(getattr(each, "commands", {}))
        sentence = plain((each.help or "").split("\n")[0]).split(": ")[0].rstrip(".")
        found.append(Command(name, sentence, flags + (Flag("--help", False, (), "tell more"),),
                             below))
    return found


def plain(text: str) -> str:
    """Without what is special between quotes and brackets of any of the shells."""
    return re.sub(r"[\[\]'\"`$\\]", "", " ".join(text.split()))


def settings() -> dict[str, tuple[str, ...]]:
    """The options of the library in small letters, and the words that each takes."""
    table, words, texts = [(ROOT / path).read_text(encoding="utf-8") for path in
                           (options_doc.TABLE, options_doc.WORDS, options_doc.TEXTS)]
    found = {"mode": tuple(options_doc.modes_of(table))}
    for option in options_doc.options_of(table, words):
        is_switch = option.unit == options_doc.UNITS["SWITCH"]
        first = {value: word for word, value in reversed(option.words.items())}
        found[option.name] = ("on", "off") if is_switch else tuple(
            word for word in option.words if word in first.values())
    return found | {name: () for name, _ in options_doc.TEXT.findall(texts)}


def cases(rows: dict[str, tuple[str, ...]], indent: str) -> Iterator[str]:
    """Branches of a shell's case, one for all rows with the same words."""
    same: dict[tuple[str, ...], list[str]] = {}
    for name, words in rows.items():
        if words:
            same.setdefault(words, []).append(name)
    for words, names in same.items():
        yield f"{indent}{' | '.join(names)}) words='{' '.join(words)}' ;;"


def bash() -> str:
    rows = commands()
    flags = {row.name: tuple(flag.name for flag in row.flags) + row.below for row in rows}
    choices = {flag.name: flag.choices for row in rows for flag in row.flags if flag.choices}
    valued = sorted({flag.name for row in rows for flag in row.flags if flag.takes_value})
    lines = [
        MADE.format("bash"), "_hakmem() {",
        "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]}",
        "    local words= name= at=2 command=${COMP_WORDS[1]}",
        "    COMPREPLY=()",
        "    if [ \"$COMP_CWORD\" = 1 ]; then",
        f"        words='{' '.join(row.name for row in rows)} --version --library --help'",
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))",
        "        return",
        "    fi",
        "    while [ $at -lt \"$COMP_CWORD\" ]; do # skips what stands before the program",
        "        case ${COMP_WORDS[at]} in",
        f"        {' | '.join(valued)}) at=$((at + 1)) ;;",
        "        --) at=$((at + 1)) && break ;;",
        "        -*) ;;",
        "        *)",
        "            [ \"${COMP_WORDS[at + 1]}\" = = ] || break",
        "            name=${COMP_WORDS[at]} at=$((at + 2))",
        "            ;;",
        "        esac",
        "        at=$((at + 1))",
        "    done",
        "    if [ \"$before\" = = ] || [ \"$current\" = = ]; then",
        "        [ \"$current\" = = ] && name=$before && current=",
        "        name=${name#HAKMEM_}",
        "        case ${name,,} in",
        *cases(settings(), "        "),
        "        esac",
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))",
        "        return",
        "    fi",
        "    case $before in",
        *cases(choices, "    "),
        f"    {' | '.join(valued)}) return ;;",
        "    esac",
        "    if [ -n \"$words\" ]; then",
        "        COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))",
        "        return",
        "    fi",
        "    [ $at -ge \"$COMP_CWORD\" ] || return # the program's own arguments",
        "    case $command in",
        *cases(flags, "    "),
        "    esac",
        "    COMPREPLY=($(compgen -W \"$words\" -- \"$current\"))",
        "    case $command in",
        f"    {' | '.join(RUNS_PROGRAM)})",
        f"        words='{' '.join(f'{name}=' for name in settings())}'",
        "        COMPREPLY+=($(compgen -W \"$words\" -- \"$current\"))",
        "        COMPREPLY+=($(compgen -c -- \"$current\"))",
        "        [[ ${COMPREPLY[0]-} != *= ]] || compopt -o nospace",
        "        ;;",
        f"    {' | '.join(TAKES_PROCESS)})",
        "        words=$(cd /proc && echo [0-9]*)",
        "        COMPREPLY+=($(compgen -W \"$words\" -- \"$current\"))",
        "        ;;",
        "    esac",
        "}",
        "complete -o bashdefault -o default -F _hakmem hakmem",
    ]
    return "\n".join(lines) + "\n"


def zsh() -> str:
    rows = commands()
    valued = sorted({flag.name for row in rows for flag in row.flags if flag.takes_value})
    flags = {row.name: tuple(flag.name for flag in row.flags) + row.below for row in rows}
    choices = {flag.name: flag.choices for row in rows for flag in row.flags if flag.choices}
    lines = [
        "#compdef hakmem", MADE.format("zsh"), "_hakmem() {",
        "    local words_of= at=3 name",
        "    local -a commands",
        "    if (( CURRENT == 2 )); then",
        "        commands=(",
        *(f"            '{row.name}:{row.sentence}'" for row in rows),
        "        )",
        "        _describe command commands",
        "        compadd -- --version --library --help",
        "        return",
        "    fi",
        "    while (( at < CURRENT )); do # skips what stands before the program",
        "        case $words[at] in",
        f"        ({' | '.join(valued)}) (( at++ )) ;;",
        "        (--) (( at++ )); break ;;",
        "        (-* | *=*) ;;",
        "        (*) break ;;",
        "        esac",
        "        (( at++ ))",
        "    done",
        "    if (( at < CURRENT )); then # the program's own arguments",
        f"        if [[ $words[2] == ({'|'.join(RUNS_PROGRAM)}) ]]; then",
        "            words=(\"${(@)words[at,-1]}\")",
        "            (( CURRENT -= at - 1 ))",
        "            _normal",
        "        else",
        "            _files",
        "        fi",
        "        return",
        "    fi",
        "    if [[ $words[CURRENT] == *=* ]]; then",
        "        name=${${words[CURRENT]%%=*}#HAKMEM_}",
        "        case ${(L)name} in",
        *(line.replace("words=", "words_of=").replace("        ", "        (", 1)
          for line in cases(settings(), "        ")),
        "        (*) compset -P 1 '*='; _files; return ;;",
        "        esac",
        "        compset -P 1 '*='",
        "        compadd -- ${=words_of}",
        "        return",
        "    fi",
        "    case $words[CURRENT-1] in",
        *(line.replace("words=", "words_of=").replace("    ", "    (", 1)
          for line in cases(choices, "    ")),
        f"    ({' | '.join(valued)}) _files; return ;;",
        "    esac",
        "    if [[ -n $words_of ]]; then",
        "        compadd -- ${=words_of}",
        "        return",
        "    fi",
        "    case $words[2] in",
        *(line.replace("words=", "words_of=").replace("    ", "    (", 1)
          for line in cases(flags, "    ")),
        "    esac",
        "    compadd -- ${=words_of}",
        "    case $words[2] in",
        f"    ({' | '.join(RUNS_PROGRAM)})",
        f"        compadd -S '' -- {' '.join(f'{name}=' for name in settings())}",
        "        _command_names -e",
        "        ;;",
        f"    ({' | '.join(TAKES_PROCESS)}) compadd -- /proc/[0-9]*(:t); _files ;;",
        "    (*) _files ;;",
        "    esac",
        "}",
        "_hakmem \"$@\"",
    ]
    return "\n".join(lines) + "\n"


def fish() -> str:
    rows = commands()
    lines = [MADE.format("fish"),
             "complete -c hakmem -n __fish_use_subcommand -f"]
    lines += [f"complete -c hakmem -n __fish_use_subcommand -a {row.name} -d '{row.sentence}'"
              for row in rows]
    lines += [f"complete -c hakmem -n __fish_use_subcommand -l {name}"
              for name in ("version", "library", "help")]
    for row in rows:
        seen = f"complete -c hakmem -n '__fish_seen_subcommand_from {row.name}'"
        for flag in row.flags:
            value = f" -x -a '{' '.join(flag.choices)}'" if flag.choices else \
                " -r" * flag.takes_value
            lines.append(f"{seen} -l {flag.name[2:]}{value} -d '{flag.sentence}'")
        lines += [f"{seen} -a {name}" for name in row.below]
    seen = f"complete -c hakmem -n '__fish_seen_subcommand_from {' '.join(RUNS_PROGRAM)}'"
    for name, words in settings().items():
        lines.append(f"{seen} -a '{' '.join(f'{name}={word}' for word in words or ('',))}'")
    lines.append(f"{seen} -a '(__fish_complete_subcommand)'")
    lines.append(f"complete -c hakmem -n '__fish_seen_subcommand_from {' '.join(TAKES_PROCESS)}'"
                 " -a '(__fish_complete_pids)'")
    return "\n".join(lines) + "\n"


def made() -> dict[str, str]:
    """The text of each file."""
    return {f"{FOLDER}/hakmem.bash": bash(), f"{FOLDER}/_hakmem": zsh(),
            f"{FOLDER}/hakmem.fish": fish()}


if __name__ == "__main__":
    (ROOT / FOLDER).mkdir(exist_ok=True)
    for path, text in made().items():
        (ROOT / path).write_text(text, encoding="utf-8")
