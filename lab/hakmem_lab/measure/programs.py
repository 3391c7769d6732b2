"""Programs as data: a TOML file says what is run, on which input, and what it needs.

lab/programs.toml has the real programs of the matrix. docs/laboratory.md explains the format, in
which users describe suites of their own. Inputs and executables are made once, in out/inputs/.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hakmem_lab import LabError, ROOT
from hakmem_lab.measure import inputs
from hakmem_lab.measure.subject import OWN_GROUP, Cell, Subject

OURS = ROOT / "lab/programs.toml"
OF_SUITE = "hakmem-suite.toml"
MIMALLOC_BENCH = ROOT / "lab/suites/mimalloc-bench.toml"

# The keys of a program, with what holds where a file does not name them.
KEYS: dict[str, Any] = {"name": "", "title": "", "command": "", "needs": [], "settings": {},
                        "load": "", "until": "", "build": "", "quick": "", "limit_s": 120}
INPUT = re.compile(r"\{input:(\w+),(\d+)\}")
THREADS = re.compile(r"\{threads(?::(\d+))?\}")
FRESH = "{folder}"  # instead of a folder that is there

Found = tuple[list[Cell], list[tuple[str, str]]]  # cells; names and reasons of those left out


def cells(quick: bool = False) -> Found:
    """The real programs of the matrix; `quick` is a much smaller selection with less input. Those
    that were written for the laboratory, and are built from its inputs, are a group of their
    own."""
    found, left_out = read(OURS, ROOT, "programs", "programs", quick)
    return [replace(cell, group="made") if cell.subject.command[0].startswith("{built}") else cell
            for cell in found], left_out


def suite(path: Path) -> Found:
    """The programs of a user's own checkout and build, or of one TOML file."""
    path = path.absolute()
    file, base = (path, path.parent) if path.is_file() else (path / OF_SUITE, path)
    if not file.is_file() and (path / "bench").is_dir() and (path / "out/bench").is_dir():
        file = MIMALLOC_BENCH
    if not file.is_file():
        raise LabError(f"{path} has no {OF_SUITE} and is no build of mimalloc-bench; "
                       "docs/laboratory.md says how to describe a suite")
    name = base.name if file.name == OF_SUITE else file.stem
    found, left_out = read(file, base, name, OWN_GROUP)
    if not found:
        reasons = "; ".join(": ".join(each) for each in left_out[:3]) or "it names none"
        raise LabError(f"{path}: no program of the suite can be run ({reasons})")
    return found, left_out


def read(file: Path, base: Path, family: str, group: str, quick: bool = False) -> Found:
    """The cells of a file whose programs are there. Its `folder` is relative to `base`."""
    try:
        content = tomllib.loads(file.read_text(encoding="utf-8"))
        folder, programs = content.pop("folder", "."), content.pop("program", [])
        if content or type(folder) is not str or {type(each) for each in programs} - {dict}:
            raise ValueError("at the top there are only 'folder' and [[program]]")
        programs = [_complete(number, each) for number, each in enumerate(programs, 1)]
        names = [each["name"] for each in programs]
        if len(set(names)) < len(names):
            raise ValueError("two programs have the same name")
        place = folder if folder == FRESH else str(base / folder)
        cells = [Cell(each["name"], family, _subject(each, place, quick), title=each["title"],
                      group=group) for each in programs if each["quick"] or not quick]
    except OSError as error:
        raise LabError(f"{file}: {error.strerror}") from None
    except (ValueError, TypeError) as error:  # also of tomllib and shlex
        raise LabError(f"{file}: {error}") from None
    needs = {each["name"]: each["needs"] for each in programs}
    lacks = {cell.name: _lacking(cell.subject, needs[cell.name]) for cell in cells}
    return ([cell for cell in cells if not lacks[cell.name]],
            [(name, f"{' and '.join(words)} not found") for name, words in lacks.items() if words])


def _complete(number: int, program: dict[str, Any]) -> dict[str, Any]:
    """All keys of a program. ValueError if one is unknown, of the wrong type, or missing."""
    for key, value in program.items():
        if key not in KEYS:
            raise ValueError(f"program {number}: no key '{key}'; there are {', '.join(KEYS)}")
        inner = value.values() if isinstance(value, dict) else value
        if type(value) is not type(KEYS[key]) or (
                not isinstance(value, int) and not all(isinstance(each, str) for each in inner)):
            raise ValueError(f"program {number}: {key} = {value!r} is of the wrong type")
    if not program.get("name", "").strip() or not program.get("command", "").strip():
        raise ValueError(f"program {number} needs a name and a command")
    return KEYS | program


def _subject(program: dict[str, Any], place: str, quick: bool) -> Subject:
    """`{threads}` is the number of processors, `{threads:2}` twice as many."""
    def words(text: str) -> tuple[str, ...]:
        return tuple(shlex.split(THREADS.sub(
            lambda found: str((os.cpu_count() or 1) * int(found[1] or 1)), text)))

    return Subject(words(program["quick" if quick else "command"]), folder=place,
                   settings={"LC_ALL": "C", **program["settings"]}, build=program["build"],
                   limit_s=program["limit_s"], load=words(program["load"]), until=program["until"])


def _lacking(subject: Subject, needs: Sequence[str]) -> list[str]:
    """Programs by name and files by path that are not there; `{built}` will be made."""
    def is_there(word: str) -> bool:
        return Path(subject.folder, word).exists() if "/" in word else bool(shutil.which(word))

    wanted = dict.fromkeys((subject.command[0], *subject.load[:1], *needs))
    return [word for word in wanted if "{" not in word and not is_there(word)]


def ready(found: Sequence[Cell]) -> Found:
    """The cells with their inputs and executables made, less those whose build fails."""
    made, left_out = [], []
    for cell in found:
        try:
            made.append(replace(cell, subject=_ready(cell.subject)))
        except subprocess.CalledProcessError as error:
            said = (error.stderr.strip().splitlines() or [f"status {error.returncode}"])[-1]
            left_out.append((cell.name, f"its build failed: {said[:200]}"))
    return made, left_out


def _ready(subject: Subject) -> Subject:
    def with_inputs(text: str) -> str:
        return INPUT.sub(lambda found: inputs.ready(found[1], int(found[2])), text)

    built = _built(with_inputs(subject.build), subject.folder) if subject.build else "{built}"
    return replace(subject, build="", command=tuple(
        with_inputs(word).replace("{built}", built) for word in subject.command))


def _built(recipe: str, folder: str) -> str:
    """What a recipe makes, as a word of a command: made once for the recipe and its sources."""
    digest = hashlib.sha256(recipe.encode())
    for source in re.findall(r"\{root\}/([\w./-]+)", recipe):
        digest.update((ROOT / source).read_bytes())
    target = inputs.FOLDER / f"built-{digest.hexdigest()[:12]}"
    if not target.exists():
        with inputs.unfinished(target) as place:
            script = recipe.replace("{root}", shlex.quote(str(ROOT)))
            subprocess.run(["sh", "-ec", script.replace("{built}", shlex.quote(str(place)))],
                           cwd=target.parent if folder == FRESH else folder, text=True, check=True,
                           capture_output=True, errors="replace", stdin=subprocess.DEVNULL)
    return inputs.word(target)
