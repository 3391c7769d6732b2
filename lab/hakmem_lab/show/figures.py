"""Figures in README.md, CHANGELOG.md and docs/: written by the laboratory from committed results,
and held so.

A block stands between two comments on lines of their own:

    <!-- figures: KIND FOLDER key=value … -->
    …
    <!-- end of figures -->

KIND is `headline`, `environment`, `summary` (of group=, else of every group), `family` (family=),
`losses` (figures= of time, peak and end; group= or family=, else of every cell), `regret`
(prices=, group=, and of= with how names begin), `medians` (cell=, and names= of figures that the
program itself reports) or `plot` (name=, and group= or family=; with cell= instead, resident
memory over time).
"""

import functools
import hashlib
import os
import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from hakmem_lab import LabError
from hakmem_lab.measure import ledger
from hakmem_lab.measure.environment import output_of, source_of
from hakmem_lab.measure.subject import OWN_GROUP
from hakmem_lab.show import markdown, plots, sentences
from hakmem_lab.judge.digest import CellDigest, Run, read_run
from hakmem_lab.show.typed import is_strict, typed

RESULTS = Path("bench/results")
PICTURES = Path("docs/pictures")
BLOCK = re.compile(r"^<!-- figures: (?P<words>.*?) -->\n(?P<text>.*?)^<!-- end of figures -->$",
                   re.MULTILINE | re.DOTALL)
FENCE = re.compile(r"^(```|~~~).*?^\1\s*?$", re.MULTILINE | re.DOTALL)
# What a tool makes from a table of counts; tests/tidy.py compares it with what the tool makes now.
MADE = re.compile(r"^<!-- made from bench/\S+\.csv -->\n.*?^<!-- end of \w+ -->$",
                  re.MULTILINE | re.DOTALL)
MARKER = re.compile(r"^<!-- figures: |^<!-- end of figures -->", re.MULTILINE)
SEAL = re.compile(r"\n<!-- seal (\w{64}) (\w{64}) -->\n\Z")
# How a document cites a folder of results: by its path, or by its name without the date.
CITED = re.compile(r"(?:bench/results/|`(?=\d{4}-\d\d-\d\d-))(?P<name>\d[\w.-]*\w)"
                   r"|`(?P<words>[\w-]+)`\s+rows\b")


@dataclass(frozen=True)
class Request:
    kind: str
    folder: str
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

    def run(self, folder: str) -> Run:
        place = (self.root / folder).resolve()
        if not place.is_relative_to(self.root.resolve()) or not place.is_dir():
            raise LabError(f"{folder}: no such folder of results in this tree")
        if folder not in self.runs:
            self.runs[folder] = read_run(place)
        return self.runs[folder]

    def documents(self) -> dict[str, Path]:
        """By what they are called from the root."""
        found = [self.root / "README.md", self.root / "CHANGELOG.md",
                 *sorted((self.root / "docs").rglob("*.md"))]
        return {each.relative_to(self.root).as_posix(): each for each in found if each.exists()}


def _request(words: str) -> Request:
    try:
        parts = shlex.split(words)
    except ValueError as error:
        raise LabError(f"{words}: {error}") from None
    plain = [part for part in parts if "=" not in part]
    if len(plain) != 2:
        raise LabError(f"{words}: expected KIND FOLDER key=value …")
    return Request(plain[0], plain[1], dict(part.split("=", 1) for part in parts if "=" in part))


def _chosen(run: Run, request: Request) -> list[CellDigest]:
    found = list(run.cells)
    for key, name in (("family", "family"), ("group", "group"), ("cell", "name")):
        if key in request.options:
            found = [cell for cell in found if getattr(cell, name) == request.options[key]]
            if not found:
                raise LabError(f"{run.name} has no {key} {request.options[key]}")
    return found


def _caption(run: Run, cells: list[CellDigest], words: str = "") -> str:
    label = sentences.smoke_label(min(cell.pairs for cell in cells))
    said = markdown.escaped(f"{sentences.source_line(run)} {words}".strip())
    return f"*{said}*" + (f" **{label}**" if label else "")


def _picture(request: Request) -> Path:
    name = request.option("name")
    if not re.fullmatch(r"[\w-]+", name):
        raise LabError(f"{name}: a picture's name has letters, digits, - and _")
    return PICTURES / f"{name}.svg"


def _title(run: Run, request: Request) -> str:
    if one := request.options.get("family") or request.options.get("cell"):
        return one[:1].upper() + one[1:]
    request.option("group")
    return sentences.title_of(_chosen(run, request))


def _plot(run: Run, request: Request, document: Path, root: Path) -> str:
    what = "resident memory over time" if "cell" in request.options else "time against memory"
    title = f"{_title(run, request)}: {what}"
    link = os.path.relpath(root / _picture(request), document.parent)
    return f"![{markdown.escaped(title)}]({link})\n\n{_caption(run, _chosen(run, request))}"


def _summary(run: Run, request: Request) -> str:
    parts = []
    for group in [request.options["group"]] if "group" in request.options else run.groups:
        cells = _chosen(run, Request("summary", "", {"group": group}))
        parts += [f"**{markdown.escaped(sentences.title_of(cells))}**",
                  markdown.to_markdown(markdown.summary_table(cells)),
                  markdown.escaped(sentences.standing_of(cells))]
    words = "Ratios are geometric means over the cells, with their 95 % interval."
    return "\n\n".join([*parts, _caption(run, list(run.cells), words)])


def _family(run: Run, request: Request) -> str:
    family, cells = request.option("family"), _chosen(run, request)
    tables = []
    at_end = [("end", "RSS at the end")] if cells[0].group in ("memory", OWN_GROUP) else []
    for figure, words in [("time", f"{sentences.basis_of(cells)} (95 % interval)"),
                          ("peak", "Peak RSS (RSS × time)"), *at_end]:
        table = markdown.family_table(run, family, figure)
        tables.append(markdown.to_markdown(
            markdown.Table((words[:1].upper() + words[1:], *table.heads[1:]), table.rows)))
    return "\n\n".join([*tables, _caption(run, cells, markdown.MARKS)])


def _losses(run: Run, request: Request) -> str:
    cells, named = _chosen(run, request), request.option("figures").split(",")
    if not set(named) <= {"time", "peak", "end"}:
        raise LabError("losses needs figures= of time, peak and end")
    table = markdown.losses_table(cells, named)
    if not table.rows:
        raise LabError(f"nobody needs significantly less than {run.base} of {', '.join(named)}")
    words = f"Who needs significantly less than {run.base}, with the ratio to it, by medians."
    return f"{markdown.to_markdown(table)}\n\n{_caption(run, cells, words)}"


def _regret(run: Run, request: Request) -> str:
    request.option("group")
    cells, prices = _chosen(run, request), request.option("prices").split(",")
    names = [name for name in run.allocators if name.startswith(request.options.get("of", ""))]
    if not names or not all(re.fullmatch("[1-9][0-9]*", price) for price in prices):
        raise LabError("regret needs prices=NUMBER,NUMBER and names that begin with of=")
    words = "Regret: what an allocator costs above the cheapest of these in the same cell, in " \
        "the mean and at most. A GiB held for a second costs so many ms of CPU time; by medians."
    table = markdown.regret_table(cells, names, [int(price) for price in prices])
    return f"{markdown.to_markdown(table)}\n\n{_caption(run, cells, words)}"


def _medians(run: Run, request: Request) -> str:
    cells = _chosen(run, Request("medians", "", {"cell": request.option("cell")}))
    table = markdown.medians_table(run, cells[0], request.option("names").split(","))
    return f"{markdown.to_markdown(table)}\n\n" \
        f"{_caption(run, cells, 'Medians over the rounds. Bold: the lowest of the row.')}"


def _block(run: Run, request: Request, document: Path, root: Path) -> str:
    """The text between the markers of a block."""
    if request.kind == "plot":
        return f"\n{_plot(run, request, document, root)}\n\n"
    kinds: dict[str, Callable[[Run, Request], str]] = {
        "summary": _summary, "family": _family, "losses": _losses,
        "regret": _regret, "medians": _medians,
        "environment": lambda run, _: markdown.environment_paragraph(run),
        "headline": lambda run, _: f"{markdown.escaped(sentences.headline(run))} "
                                   f"{_caption(run, list(run.cells))}"}
    if request.kind not in kinds:
        raise LabError(f"{request.kind} is no kind of figures")
    return f"\n{kinds[request.kind](run, request)}\n\n"


def _seal(run: Run, request: Request, picture: str) -> str:
    """Of what it was drawn from and of the picture itself, so that checking needs no drawing:
    another version of matplotlib draws the same figures with other bytes."""
    shown = [(cell.name, cell.group) for cell in _chosen(run, request)]
    made_from = repr((sorted(request.options.items()), run.name, shown, run.rows)).encode() \
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


def _places(text: str) -> list[Place]:
    """Blocks in their order; what stands in a fence is an example."""
    hidden = FENCE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return [Place(text.count("\n", 0, found.start()) + 1, *found.span("text"), found["words"],
                  text[slice(*found.span("text"))]) for found in BLOCK.finditer(hidden)]


def _wanted(book: Book, file: Path, place: Place) -> tuple[Request, Run, str]:
    request = _request(place.words)
    run = book.run(request.folder)
    return request, run, _block(run, request, file, book.root)


def update(root: Path) -> list[str]:
    """Writes every block and picture anew; the files that changed. LabError: file, line."""
    book, changed = Book(root), []
    for name, file in book.documents().items():
        text = file.read_text()
        pieces, position = [], 0
        for place in _places(text):
            try:
                request, run, wanted = _wanted(book, file, place)
                if request.kind == "plot" \
                        and not _is_sealed(run, request, root / _picture(request)):
                    changed.append(_write_picture(root, run, request))
            except LabError as error:
                raise LabError(f"{name}:{place.line}: {error}") from None
            pieces += [text[position:place.start], wanted]
            position = place.end
        renewed = "".join([*pieces, text[position:]])
        if renewed != text:
            file.write_text(renewed)
            changed.append(name)
    return sorted(set(changed))


def _write_picture(root: Path, run: Run, request: Request) -> str:
    cells = _chosen(run, request)
    picture = plots.memory_plot(run, cells[0]) if "cell" in request.options \
        else plots.trade_off_plot(run, cells, _title(run, request))
    if picture is None:
        raise LabError(f"{run.name} has no memory over time of {cells[0].name}")
    file = root / _picture(request)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(picture + _seal(run, request, picture))
    return _picture(request).as_posix()


def check(root: Path) -> list[str]:
    """One line for each figure that is not what committed results say, or that was typed."""
    book, problems = Book(root), []
    for name, file in book.documents().items():
        places = _places(text := file.read_text())
        problems += [f"{name}:{line}: a marker without its partner"
                     for line in _lone_markers(text, places)]
        for place in places:
            problems += [f"{name}:{place.line}: {each}" for each in _differences(book, file, place)]
        problems += [f"{name}:{line}: {said} was typed; a figure comes from a result file"
                     for line, said in typed(_written(text, places), is_strict(name))]
        problems += [f"{name}:{line}: {said}" for line, said in _uncited(root, text)]
    for folder in sorted(path for path in (root / RESULTS).glob("*") if path.is_dir()):
        problems += [f"{RESULTS}/{each}" for each in ledger.verify(folder)]
        problems += [f"{RESULTS}/{folder.name}: {each}" for each in _doubts(root, folder)]
    return problems


def _uncited(root: Path, text: str) -> Iterator[tuple[int, str]]:
    """What a document rests on and is not there."""
    for found in CITED.finditer(text):
        pattern = found["name"] or f"[0-9]*-{found['words']}"
        if not [*(root / RESULTS).glob(pattern), *(root / RESULTS).glob(f"{pattern}.csv")]:
            yield (text.count("\n", 0, found.start()) + 1,
                   f"{' '.join(found[0].split())}: no such results in {RESULTS}")


def _differences(book: Book, file: Path, place: Place) -> Iterator[str]:
    try:
        request, run, wanted = _wanted(book, file, place)
        if place.text != wanted:
            yield (f"the figures ({place.words}) are not what the results say; generate them anew")
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
        text = text[:place.start] + "\n" * place.text.count("\n") + text[place.end:]
    return MADE.sub(lambda made: "\n" * made[0].count("\n"), text)


@functools.cache
def _history(root: Path) -> str:
    """Why the history cannot be asked, in one line; empty if it can."""
    asked = output_of("git", "rev-parse", "--is-shallow-repository", folder=root)
    return {"false": "", "true": "this is a shallow clone"}.get(asked, "this is no git checkout")


@functools.cache
def _sources(root: Path) -> set[str]:
    """The trees of src and include at each commit, which outlast a rebase."""
    touched = output_of("git", "rev-list", "HEAD", "--", "src", "include", folder=root).split()
    return {source_of(each, root) for each in touched}


def notes(root: Path) -> list[str]:
    """What check could not look at: no problem, but to be said."""
    reason = _history(root)
    return [f"{reason}: whether results are of this history was not checked"] if reason else []


def _doubts(root: Path, folder: Path) -> Iterator[str]:
    """Of every folder of results, whether a document shows it or not."""
    try:
        rows = ledger.read_folder(folder)
        recorded = ledger.read_object(folder / ledger.ENVIRONMENT)["allocators"].values()
    except LabError:
        return  # ledger.verify has said why
    sources = {each.get("commit"): each.get("source") for each in recorded}
    if any(row.dirty for row in rows):
        yield "measured with uncommitted changes"
    for commit in sorted({row.commit for row in rows} - {""}):  # what is not ours has none
        if not re.fullmatch(r"[0-9a-f]{7,40}", commit):
            yield f"{commit!r} is no commit"
        elif not _history(root) and not output_of("git", "merge-base", commit, "HEAD",
                                                  folder=root).startswith(commit) and \
                sources.get(commit) not in _sources(root):
            yield f"neither commit {commit} nor its sources are in the history of HEAD"
