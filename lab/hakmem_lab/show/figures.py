"""Figures in README.md, CHANGELOG.md and docs/: written by the laboratory from committed results,
and held so.

A block stands between two comments on lines of their own, a single figure within a line:

    <!-- figures: KIND FOLDER key=value … -->      <!--v FOLDER FIGURE key=value …-->0.79<!--/v-->
    …
    <!-- end of figures -->

KIND is `summary`, `environment`, `headline`, `family` (family=), `cell` (cell=) or `plot` (name=,
drawing=summary|family|net|rounds|memory, family= or cell=). FIGURE is one of FIGURES, of the base
or of=NAME, over all cells or those of family= or cell=; inverse=yes turns a ratio round. A figure
of somebody else stands in a paragraph that begins with or holds `<!-- cited: SOURCE -->`.
"""

import functools
import hashlib
import math
import os
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hakmem_lab import LabError
from hakmem_lab.show import markdown, plots, sentences
from hakmem_lab.judge.digest import CellDigest, Run, read_run
from hakmem_lab.judge.summary import Summary, summarise
from hakmem_lab.show.typed import is_strict, typed

PICTURES = Path("docs/pictures")
BLOCK = re.compile(r"^<!-- figures: (?P<words>.*?) -->\n(?P<text>.*?)^<!-- end of figures -->$",
                   re.MULTILINE | re.DOTALL)
VALUE = re.compile(r"(?<!`)<!--v (?P<words>.*?)-->(?P<text>.*?)<!--/v-->", re.DOTALL)
FENCE = re.compile(r"^(```|~~~).*?^\1\s*?$", re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"^<!-- figures: |^<!-- end of figures -->|(?<!`)<!--v |(?<!`)<!--/v-->",
                    re.MULTILINE)
SEAL = re.compile(r"\n<!-- seal (\w{64}) (\w{64}) -->\n\Z")

RATIOS: dict[str, Callable[[Summary], float]] = {
    "relative_cost": lambda told: told.relative_cost,
    "relative_peak": lambda told: told.relative_peak,
    "best": lambda told: told.best[0],
    "worst": lambda told: told.worst[0],
}
COUNTS: dict[str, Callable[[Summary], int]] = {
    "lowest": lambda told: told.lowest, "first": lambda told: told.first,
    "less": lambda told: told.less, "level": lambda told: told.level,
    "same": lambda told: told.same,
    "more": lambda told: told.more, "cells": lambda told: told.cells,
    "failed": lambda told: told.failed,
}
OF_A_CELL = ("cost", "net_cost", "peak", "rounds")
FIGURES = (*RATIOS, *COUNTS, *OF_A_CELL)


@dataclass(frozen=True)
class Request:
    kind: str  # of a block; "value" for a figure within a line
    folder: str
    figure: str
    options: dict[str, str]

    def option(self, name: str) -> str:
        if name not in self.options:
            raise LabError(f"{self.kind} needs {name}=")
        return self.options[name]


@dataclass
class Book:
    """The documents of a tree and the results that they show, each read once."""

    root: Path
    runs: dict[str, Run] = field(default_factory=dict)
    pictures: dict[Path, Request] = field(default_factory=dict)

    def run(self, folder: str) -> Run:
        place = (self.root / folder).resolve()
        if not place.is_relative_to(self.root.resolve()) or not place.is_dir():
            raise LabError(f"{folder}: no such folder of results in this tree")
        if folder not in self.runs:
            self.runs[folder] = read_run(place)
        return self.runs[folder]

    def refuse_second(self, request: Request) -> None:
        """A picture's name belongs to one drawing, which may stand in several documents."""
        first = self.pictures.setdefault(_picture(request), request)
        if first != request:
            raise LabError(f"{_picture(request)} is another drawing already; give it a name of "
                           "its own")

    def documents(self) -> list[Path]:
        found = [self.root / "README.md", self.root / "CHANGELOG.md",
                 *sorted((self.root / "docs").rglob("*.md"))]
        return [each for each in found if each.exists()]

    def name_of(self, file: Path) -> str:
        return file.relative_to(self.root).as_posix()


def _request(words: str, is_value: bool) -> Request:
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise LabError(f"{words}: {error}") from None
    plain = [part for part in parts if "=" not in part]
    options = dict(part.split("=", 1) for part in parts if "=" in part)
    if len(plain) != 2:
        raise LabError(f"{words}: expected "
                       + ("FOLDER FIGURE key=value …" if is_value else "KIND FOLDER key=value …"))
    if is_value:
        return Request("value", plain[0], plain[1], options)
    return Request(plain[0], plain[1], "", options)


def _chosen(run: Run, request: Request) -> list[CellDigest]:
    if "cell" in request.options:
        return [run.cell(request.options["cell"])]
    if "family" in request.options:
        cells = run.of_family(request.options["family"])
        if not cells:
            raise LabError(f"{run.name} has no family {request.options['family']}")
        return cells
    return list(run.cells)


def _value(run: Run, request: Request) -> str:
    cells = _chosen(run, request)
    name = request.options.get("of", run.base)
    if request.figure in OF_A_CELL:
        return _value_of_cell(run.cell(request.option("cell")), request.figure, name)
    told = next((each for each in summarise(cells) if each.name == name), None)
    if told is None:
        raise LabError(f"{run.name} has nothing of {name} there")
    if request.figure in COUNTS:
        return str(COUNTS[request.figure](told))
    if request.figure not in RATIOS:
        raise LabError(f"{request.figure} is no figure; there are {', '.join(FIGURES)}")
    ratio = RATIOS[request.figure](told)
    if math.isnan(ratio):
        raise LabError(f"{run.name} has no {request.figure} of {name} there")
    return markdown.number(1 / ratio if request.options.get("inverse") == "yes" else ratio)


def _value_of_cell(cell: CellDigest, figure: str, name: str) -> str:
    own = cell.of(name)
    if own is None or own.cost is None or own.peak_rss is None:
        raise LabError(f"{cell.name} has no {figure} of {name}")
    if figure == "rounds":
        return str(len(own.rounds))
    if figure == "peak":
        return markdown.size(own.peak_rss.median)
    return markdown.cost(own.cost.median if figure == "cost" else own.net_cost_ns, cell)


def _caption(run: Run, cells: list[CellDigest]) -> str:
    label = sentences.smoke_label(min(cell.pairs for cell in cells))
    return f"*{markdown.escaped(sentences.source_line(run))}*" + (f" **{label}**" if label else "")


def _draw(run: Run, request: Request) -> str:
    drawing = request.options.get("drawing", "summary")
    if drawing == "summary":
        drawn: str | None = plots.summary_plot(run)
    elif drawing in ("family", "net"):
        family = request.option("family")
        _chosen(run, request)
        drawn = (plots.family_plot if drawing == "family" else plots.net_plot)(run, family)
    elif drawing in ("rounds", "memory"):
        cell = run.cell(request.option("cell"))
        drawn = plots.distribution_plot(run, cell) if drawing == "rounds" \
            else plots.memory_plot(run, cell)
    else:
        raise LabError(f"{drawing} is no drawing")
    if drawn is None:
        raise LabError(f"{run.name} has nothing for the drawing {drawing}")
    return drawn


def _picture(request: Request) -> Path:
    name = request.option("name")
    if not re.fullmatch(r"[\w-]+", name):
        raise LabError(f"{name}: a picture's name has letters, digits, - and _")
    return PICTURES / f"{name}.svg"


def _plot(run: Run, request: Request, document: Path, root: Path) -> str:
    drawing = request.options.get("drawing", "summary")
    what = request.options.get("family") or request.options.get("cell") or "all families"
    titles = {"net": "Net cost", "rounds": "Relative cost of each round", "memory": "Memory"}
    title = f"{titles.get(drawing, 'Relative cost')}, {what}"
    link = os.path.relpath(root / _picture(request), document.parent)
    return f"![{markdown.escaped(title)}]({link})\n\n{_caption(run, _chosen(run, request))}"


def _block(run: Run, request: Request, document: Path, root: Path) -> str:
    """The text between the markers of a block."""
    cells = _chosen(run, request)
    if request.kind == "summary":
        text = f"{markdown.to_markdown(markdown.summary_table(cells))}\n\n{_caption(run, cells)}"
    elif request.kind == "family":
        table = markdown.family_table(run, request.option("family"))
        text = f"{markdown.to_markdown(table)}\n\n{_caption(run, cells)}"
    elif request.kind == "cell":
        cell = run.cell(request.option("cell"))
        text = f"{markdown.cell_markdown(cell)}\n\n{_caption(run, cells)}"
    elif request.kind == "environment":
        text = markdown.environment_paragraph(run)
    elif request.kind == "headline":
        text = f"{markdown.escaped(sentences.headline(cells))} {_caption(run, cells)}"
    elif request.kind == "plot":
        text = _plot(run, request, document, root)
    else:
        raise LabError(f"{request.kind} is no kind of figures")
    return f"\n{text}\n\n"


def _seal(run: Run, request: Request, picture: str) -> str:
    """Of what it was drawn from and of the picture itself, so that checking needs no drawing:
    another version of matplotlib draws the same figures with other bytes."""
    curves = run.curves.get(request.options.get("cell", ""), {})
    made_from = repr((sorted(request.options.items()), run.name, run.rows, curves)).encode() \
        + Path(plots.__file__).read_bytes()
    hashes = (hashlib.sha256(each).hexdigest() for each in (made_from, picture.encode()))
    return f"\n<!-- seal {' '.join(hashes)} -->\n"


def _is_sealed(run: Run, request: Request, file: Path) -> bool:
    text = file.read_text() if file.exists() else ""
    found = SEAL.search(text)
    return found is not None and found[0] == _seal(run, request, text[:found.start()])


@dataclass(frozen=True)
class Place:
    """Generated text as it stands in a document."""

    line: int
    start: int
    end: int
    words: str
    text: str
    is_value: bool


def _places(text: str) -> list[Place]:
    """Blocks and values in their order; what stands in a fence is an example."""
    hidden = FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    taken: list[tuple[int, int]] = []
    places = []
    for pattern in (BLOCK, VALUE):
        for found in pattern.finditer(hidden):
            if not any(low <= found.start() < high for low, high in taken):
                taken.append(found.span())
                start, end = found.span("text")
                places.append(Place(text.count("\n", 0, found.start()) + 1, start, end,
                                    found["words"], text[start:end], pattern is VALUE))
    return sorted(places, key=lambda each: each.start)


def _wanted(book: Book, file: Path, place: Place) -> tuple[Request, Run, str]:
    request = _request(place.words, place.is_value)
    run = book.run(request.folder)
    if place.is_value:
        return request, run, _value(run, request)
    if request.kind == "plot":
        book.refuse_second(request)
    return request, run, _block(run, request, file, book.root)


def update(root: Path) -> list[str]:
    """Writes every block, value and picture anew; the files that changed. LabError: file, line."""
    book, changed = Book(root), []
    for file in book.documents():
        text = file.read_text()
        pieces, position = [], 0
        for place in _places(text):
            try:
                request, run, wanted = _wanted(book, file, place)
                if request.kind == "plot" \
                        and not _is_sealed(run, request, root / _picture(request)):
                    changed.append(_write_picture(root, run, request))
            except LabError as error:
                raise LabError(f"{book.name_of(file)}:{place.line}: {error}") from None
            pieces += [text[position:place.start], wanted]
            position = place.end
        renewed = "".join([*pieces, text[position:]])
        if renewed != text:
            file.write_text(renewed)
            changed.append(book.name_of(file))
    return sorted(set(changed))


def _write_picture(root: Path, run: Run, request: Request) -> str:
    picture = _draw(run, request)
    file = root / _picture(request)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(picture + _seal(run, request, picture))
    return _picture(request).as_posix()


def check(root: Path) -> list[str]:
    """One line for each figure that is not what committed results say, or that was typed."""
    book, problems = Book(root), []
    for file in book.documents():
        text, name = file.read_text(), book.name_of(file)
        places = _places(text)
        problems += [f"{name}:{line}: a marker without its partner"
                     for line in _lone_markers(text, places)]
        for place in places:
            problems += [f"{name}:{place.line}: {each}" for each in _differences(book, file, place)]
        problems += [f"{name}:{line}: {said} was typed; a figure comes from a result file"
                     for line, said in typed(_written(text, places), is_strict(name))]
    for folder, run in book.runs.items():
        problems += [f"{folder}: {each}" for each in _doubts(root, run)]
    return problems


def _differences(book: Book, file: Path, place: Place) -> Iterator[str]:
    try:
        request, run, wanted = _wanted(book, file, place)
        if place.text != wanted:
            said = f"{place.text!r} stands where the results say {wanted!r}" if place.is_value \
                else f"the figures ({place.words}) are not what the results say"
            yield f"{said}; generate them anew"
        if request.kind == "plot" and not _is_sealed(run, request, book.root / _picture(request)):
            yield f"{_picture(request)} was not drawn from these results; generate it anew"
    except LabError as error:
        yield str(error)


def _lone_markers(text: str, places: list[Place]) -> Iterator[int]:
    fences = [found.span() for found in FENCE.finditer(text)]
    known = {position for place in places for position in
             (text.rindex("<!--", 0, place.start), place.end)}
    for found in MARKER.finditer(text):
        if found.start() not in known \
                and not any(low <= found.start() < high for low, high in fences):
            yield text.count("\n", 0, found.start()) + 1


def _written(text: str, places: list[Place]) -> str:
    """The document without what was generated, with the same lines."""
    for place in reversed(places):
        blank = "\n" * place.text.count("\n")
        text = text[:place.start] + blank + text[place.end:]
    return text


def _git(root: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True,
                          check=False)


@functools.cache
def _history(root: Path) -> str:
    """Why the history cannot be asked, in one line; empty if it can."""
    try:
        asked = _git(root, "rev-parse", "--is-shallow-repository")
    except OSError:
        return "git is not installed"
    if asked.returncode != 0:
        return "this is no git checkout"
    return "this is a shallow clone" if asked.stdout.strip() == "true" else ""


def notes(root: Path) -> list[str]:
    """What check could not look at: no problem, but to be said."""
    reason = _history(root)
    return [f"{reason}: whether results are of this history was not checked"] if reason else []


def _doubts(root: Path, run: Run) -> Iterator[str]:
    if any(row.dirty for row in run.rows):
        yield "measured with uncommitted changes"
    for commit in sorted({row.commit for row in run.rows}):
        if not re.fullmatch(r"[0-9a-f]{7,40}", commit):
            yield f"{commit!r} is no commit"
        elif not _history(root) \
                and _git(root, "merge-base", "--is-ancestor", commit, "HEAD").returncode != 0:
            yield f"commit {commit} is not in the history of HEAD"
