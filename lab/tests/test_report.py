"""Reports, tables, pictures and embedded figures, from ledgers made up here."""

import dataclasses
import gzip
import math
import random
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hakmem_lab import LabError
from hakmem_lab.judge import digest, summary
from hakmem_lab.measure import ledger
from hakmem_lab.show import figures, markdown, plots, report, sentences, table
from hakmem_lab.judge.digest import Basis, Place
from hakmem_lab.judge.statistics import Verdict
from hakmem_lab.measure.ledger import Ledger, Row
from rich.console import Console

FACTORS = {"hakmem": 1.0, "system": 1.6, "mimalloc3": 1.01, "jemalloc": 0.7}
COMMIT = "0123456789"


def row(cell: str, allocator: str, number: int, cost: float, **more: object) -> Row:
    known = Row("2026-11-21T10:00:00", cell, "made up", f"program {cell}", allocator, number, "ok",
                cost_ns=cost, operations=1000, wall_s=cost / 10, cpu_s=cost / 12,
                peak_rss_bytes=int(cost * 2**20), mean_rss_bytes=2**20, rss_byte_seconds=2.0**20,
                minor_faults=7, version=f"{allocator} 1.0", commit=COMMIT)
    return dataclasses.replace(known, **more)  # type: ignore[arg-type]


def rows_of(cell: str, rounds: int, names: tuple[str, ...] = tuple(FACTORS),
            commit: str = COMMIT) -> list[Row]:
    """Seeded: 2 % of noise on each, 20 % on a round as a whole."""
    dice = random.Random(cell)
    rows = []
    for number in range(rounds):
        mood = 1 + 0.2 * dice.random()
        rows += [row(cell, name, number, 10 * mood * FACTORS[name] * (1 + 0.02 * dice.random()),
                     commit=commit) for name in names]
    return rows


def fallen(cell: str, allocator: str, reason: str = "died of SIGSEGV", number: int = 0) -> Row:
    return row(cell, allocator, number, 0, status=reason)


def folder_of(place: Path, rows: list[Row], told: dict[str, dict[str, str]] | None = None) -> Path:
    opened = Ledger(place)
    opened.append(rows)
    opened.write_object(ledger.ENVIRONMENT, {"cpu": "a processor", "kernel": "6.1",
                                             "thp": "madvise",
                              "dirty": False, "allocators": told or {}})
    opened.append_text(ledger.CURVES.removesuffix(".gz"), "cell,allocator,seconds,rss_bytes\n"
                      '"a, quoted",hakmem,0.0,1024\n"a, quoted",hakmem,0.1,4096\n')
    ledger.seal(place)
    return place


def only(rows: list[Row]) -> digest.CellDigest:
    (cell,) = digest.digest(rows)
    return cell


def verdicts(cell: digest.CellDigest, figure: str = "time") -> list[Verdict]:
    return [each.verdict(figure) for each in cell.allocators]


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_few_rounds_make_no_claim(rounds: int, tmp_path: Path) -> None:
    cell = only(rows_of("c", rounds))
    assert set(verdicts(cell)) == {Verdict.BASE, Verdict.TOO_FEW}
    assert cell.standings == {}
    assert all(math.isnan(each.told["time"].smallest_seen) for each in cell.allocators)
    assert "too few to say who needs the least time" in sentences.winner_sentence(cell)
    folder = folder_of(tmp_path / "few", rows_of("c", rounds))
    report.write_report([folder], folder)
    text = (folder / "report.html").read_text()
    assert f"Smoke test: {sentences.counted(rounds, 'round')}" in text
    assert "Nothing is ranked" in text
    assert [each.name for each in summary.summarise([cell])] == list(FACTORS)


def test_one_row_alone_is_a_report(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "one", [row("c", "system", 0, 5)])
    report.write_report([folder], tmp_path / "out.html")
    assert "Nothing to rank" in (tmp_path / "out.html").read_text()


def test_outliers_are_marked_by_their_round() -> None:
    rows = [row("c", "hakmem", number + 3, 90 if number == 5 else 10 + number / 10)
            for number in range(12)]
    (only_one,) = only(rows).allocators
    assert only_one.outlier_rounds == (8,) and len(only_one.rounds) == 12


class Outside(HTMLParser):
    """Collects whatever a page would load from elsewhere, and what it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.shown: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name in ("src", "href", "xlink:href", "data", "srcset", "action") \
                    and not (value or "").startswith("#"):
                self.loaded.append(f"{tag} {name}={value}")
        if tag in ("link", "script", "iframe", "img", "object", "boom"):
            self.loaded.append(tag)

    def handle_data(self, data: str) -> None:
        self.shown.append(data)


def test_the_page_needs_nothing_and_hides_nothing(tmp_path: Path) -> None:
    reason = "<boom>&amp; said <script>alert(1)</script>"
    rows = [*rows_of("a, quoted", 10), *rows_of("b|$x$", 10), fallen("b|$x$", "rpmalloc", reason)]
    folder = folder_of(tmp_path / "run", rows)
    report.write_report([folder], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    page = Outside()
    page.feed(text)
    assert not page.loaded
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    shown = "".join(page.shown)
    for word in (*FACTORS, "rpmalloc", reason, "a, quoted", "b|$x$", "6.1", "could be seen"):
        assert word in shown, word
    names = re.findall(r'id="([^"]+)"', text)
    assert len(names) == len(set(names)) and "prefers-color-scheme" in text


def test_markdown_reads_back_what_went_in() -> None:
    table = markdown.Table(("name", "fi|gure"), (
        (markdown.Field("a|b*"), markdown.Field("1.00", True, "0.9–1.1")),
        (markdown.Field("<i>"), markdown.Field("–"))))
    lines = markdown.to_markdown(table).split("\n")
    assert len(lines) == 4 and len({len(re.findall(r"(?<!\\)\|", line)) for line in lines}) == 1
    assert lines[2] == "| a\\|b\\* | **1.00** (0.9–1.1) |" and "<" not in lines[3]


def test_compressed_results_read_the_same(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", rows_of("c", 3))
    plain = digest.read_run(folder)
    file = folder / ledger.RESULTS
    file.with_name(file.name + ".gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    assert digest.read_run(folder) == plain


TEXT = """# A page

Pages of 4, 16 and 64 KiB pages, and one more.

<!-- figures: headline bench/results/2026-run -->
<!-- end of figures -->
<!-- figures: summary bench/results/2026-run -->
<!-- end of figures -->
<!-- figures: family bench/results/2026-run family="made up" -->
<!-- end of figures -->
<!-- figures: losses bench/results/2026-run figures=time,peak -->
<!-- end of figures -->
<!-- figures: environment bench/results/2026-run -->
<!-- end of figures -->
<!-- figures: regret bench/results/2026-run prices=70,700 group=families -->
<!-- end of figures -->
<!-- figures: plot bench/results/2026-run name=all group=families -->
<!-- end of figures -->

```
<!-- figures: no such thing, an example -->
```
"""


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), "-c", "user.name=n", "-c", "user.email=e@e",
                           *words], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A repository with results of its own commit and a page that shows them."""
    root = tmp_path / "tree"
    root.mkdir()
    git(root, "init", "-q")
    git(root, "commit", "-q", "--allow-empty", "-m", "one")
    commit = git(root, "rev-parse", "--short=10", "HEAD")
    folder_of(root / "bench/results/2026-run", rows_of("a cell", 10, commit=commit))
    (root / "README.md").write_text(TEXT)
    return root


def rewritten(tree: Path, **more: object) -> None:
    rows = ledger.read_folder(tree / "bench/results/2026-run")
    shutil.rmtree(tree / "bench")
    changed = [dataclasses.replace(each, **more) for each in rows]  # type: ignore[arg-type]
    folder_of(tree / "bench/results/2026-run", changed)


def test_fresh_figures_pass(tree: Path) -> None:
    assert figures.check(tree) != []
    assert figures.update(tree) == ["README.md", "docs/pictures/all.svg"]
    assert figures.check(tree) == [] and figures.notes(tree) == []
    assert figures.update(tree) == []
    text = (tree / "README.md").read_text()
    assert "![Families, little written (1 cell): time against memory](docs/pictures/all.svg)" \
        in text
    assert "| allocator | at 70 ms | at 700 ms |" in text and "| a cell | jemalloc 0.70 |" in text


def test_edited_figures_are_found(tree: Path) -> None:
    figures.update(tree)
    page, picture = tree / "README.md", tree / "docs/pictures/all.svg"
    fresh, drawn = page.read_text(), picture.read_text()
    for old, new, said in ((r"\| system \| 4", "| system | 2", "not what the results say"),
                           ("<!-- end of figures -->\n\n```", "\n```", "without its partner")):
        page.write_text(re.sub(old, new, fresh, count=1))
        (problem,) = figures.check(tree)[:1]
        assert said in problem and problem.startswith("README.md:")
    page.write_text(fresh)
    picture.write_text(drawn.replace("jemalloc", "hakmem"))
    assert "was not drawn from these results" in figures.check(tree)[0]
    assert figures.update(tree) == ["docs/pictures/all.svg"] and picture.read_text() == drawn


@pytest.mark.parametrize(("change", "said"), [
    ({"commit": "feedfacedeadbeef"}, "feedfacedeadbeef nor its sources are in"),
    ({"commit": "--help"}, "'--help' is no commit"), ({"dirty": True}, "uncommitted changes"),
])
def test_results_of_no_commit_of_ours_are_found(tree: Path, change: dict[str, object],
                                                said: str) -> None:
    rewritten(tree, **change)
    figures.update(tree)
    (problem,) = figures.check(tree)
    assert problem.startswith("bench/results/2026-run: ") and said in problem


def test_results_of_a_commit_that_was_rebased_are_known_by_its_sources(tree: Path) -> None:
    """Folders of src and include say what was measured where its commit has another name now."""
    for name in ("src", "include"):
        (tree / name).mkdir()
        (tree / name / "file").write_text(name)
    git(tree, "add", "src", "include")
    git(tree, "commit", "-q", "-m", "rebased")
    figures.update(tree)
    rows = rows_of("a cell", 2, commit="feedfacedeadbeef")
    trees = [git(tree, "rev-parse", f"HEAD:{name}") for name in ("src", "include")]
    for source, problems in ((" ".join(trees), 0), (" ".join(reversed(trees)), 1)):
        folder = tree / "bench/results/2026-aside"
        shutil.rmtree(folder, ignore_errors=True)
        folder_of(folder, rows, {"ours": {"commit": "feedfacedeadbeef", "source": source}})
        assert len(figures.check(tree)) == problems


def test_results_that_no_document_shows_are_checked(tree: Path) -> None:
    figures.update(tree)
    rows = rows_of("a cell", 2, commit="feedfacedeadbeef")
    folder = folder_of(tree / "bench/results/2026-aside", rows)
    assert "nor its sources are in the history" in "".join(figures.check(tree))
    edited = folder / ledger.RESULTS
    edited.write_text(edited.read_text().replace("made up", "made out"))
    assert "2026-aside: results.csv is not what was published" in "".join(figures.check(tree))


@pytest.mark.parametrize(("line", "said"), [
    ("See `aside` rows.", "`aside` rows: no such results"), ("See `run`\nrows.", ""),
    ("In bench/results/2026-none.", "bench/results/2026-none: no such results"),
    ("In `bench/results/2026-run`.", ""),
])
def test_what_a_document_rests_on_is_there(tree: Path, line: str, said: str) -> None:
    figures.update(tree)
    (tree / "docs/design.md").write_text(f"# Design\n\n{line}\n")
    assert "".join(figures.check(tree)) == (f"docs/design.md:3: {said} in bench/results"
                                            if said else "")


def test_a_shallow_clone_says_what_it_cannot_tell(tree: Path, tmp_path: Path) -> None:
    figures.update(tree)
    git(tree, "add", "-A")
    git(tree, "commit", "-q", "-m", "two")
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{tree}", "shallow")
    assert figures.check(tmp_path / "shallow") == []
    (note,) = figures.notes(tmp_path / "shallow")
    assert "shallow" in note


def test_a_missing_folder_is_found(tree: Path) -> None:
    shutil.rmtree(tree / "bench")
    assert all("no such" in each for each in figures.check(tree))
    with pytest.raises(LabError, match="README.md:5: bench/results/2026-run"):
        figures.update(tree)


@pytest.mark.parametrize("line", [
    "It does 97.5 M op/s.", "A hit takes 3 ns.", "4.1 ns/op", "It is 2.1× glibc.", "2x faster",
    "20 % faster", "Costs 0.79 of glibc.", "55 % of mimalloc", "| system | 0.78 |", "12.5 ms",
    "80.2 MiB", "first in 13 of 23 cells", "3 times as fast", "twice as fast as glibc",
    "4 MiB", "after 1000 ms", "at most 1.5 % at a time", "99 % of runs", "a 10x gain", "12 µs",
    "three times as fast", "half the memory", "needs 17MiB", "| system | 12 |", "−3 percent",
    "in 40 seconds", "`0.79`", "a 2-fold gain", "1.3 of it", "takes 3\nns", "x 1.5", "8 GB",
    "beats jemalloc by a third",
])
def test_typed_figures_are_found(line: str, tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text(f"# A page\n\nHere: {line}\n")
    (problem,) = figures.check(tmp_path)
    assert problem.startswith("README.md:3: ") and "was typed" in problem


@pytest.mark.parametrize("line", [
    "16 instructions for `malloc`", "C17, Debian 12", "version 3.3.2", "step 4 of the list",
    "4, 16 and 64\nKiB pages", "in under two minutes", "freed twice in a row", "C23, malloc(3)",
    "thousands of threads", "x86-64", "one hour", "2026-11-21", "eight other allocators",
])
def test_what_is_no_measurement_is_none(line: str, tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text(f"Here: {line}\n")
    assert figures.check(tmp_path) == []


def test_a_figure_after_a_block_keeps_its_line(tree: Path) -> None:
    figures.update(tree)
    page = tree / "README.md"
    page.write_text(f"{page.read_text()}97.5 M op/s\n")
    last = len(page.read_text().splitlines())
    (problem,) = figures.check(tree)
    assert problem.startswith(f"README.md:{last}: 97.5 M op/s was typed")


def test_where_the_rounds_cannot_suffice_nothing_is_called_equal_nor_in_our_favour() -> None:
    """Six pairs reach p = 0.031 at best; asked of three allocators that is no verdict, but an
    interval is enough against us."""
    assert verdicts(only(rows_of("c", 6))) \
        == [Verdict.BASE, Verdict.TOO_FEW, Verdict.LEVEL, Verdict.LESS]


def cell_of(factors: dict[str, float], name: str = "c", rounds: int = 10, spread: float = 0.002,
            ) -> digest.CellDigest:
    """A cell in which each allocator costs so much, with a spread that follows no other."""
    return only([row(name, allocator, number,
                     10 * factor * (1 + spread * ((number * (3 + 2 * place)) % 11 - 5)))
                 for number in range(rounds) for place, (allocator, factor)
                 in enumerate(factors.items())])


def test_a_group_tells_losses_beside_wins() -> None:
    cells = [cell_of({"hakmem": 1, "system": 2, "jemalloc": 3}, "won"),
             cell_of({"hakmem": 1, "system": 0.9, "jemalloc": 3}, "lost"),
             cell_of({"hakmem": 1, "system": 1.002, "jemalloc": 3}, "level"),
             cell_of({"hakmem": 1, "system": 1.05, "jemalloc": 3}, "unclear", spread=0.06)]
    assert [cell.positions["time"].place for cell in cells] \
        == [Place.FIRST, Place.BEHIND, Place.WITHIN, Place.UNCLEAR]
    told = sentences.standing_of(cells)
    for words in ("than every other in 1 of 4 cells, significantly more than another in 1; ",
                  "within 3 % of the best other in 1, ", "was found in 1.",
                  "A loss above 3 % to the best other can be excluded in 2 of 4.",
                  "smallest difference that could be seen is",
                  "significantly the lowest in 1 of 4; another holds significantly less in 1."):
        assert words in told, told
    assert sentences.losses(cells) == (
        "hakmem needs significantly more time in: lost (than system). "
        "hakmem needs significantly more peak memory in: lost (than system).")


def test_the_headline_is_about_programs(tmp_path: Path) -> None:
    rows = [row(f"{family} {place}", name, number, 10 * factor, family=family,
                version="glibc 2.36" if name == "system" else "")
            for family, peer in (("tiny hot", 9.0), ("programs", 0.8)) for place in range(3)
            for number in range(10)
            for name, factor in (("hakmem", 1), ("system", 1.25), ("jemalloc", peer))]
    told = sentences.headline(digest.read_run(folder_of(tmp_path, rows)))
    assert told == (
        "Over 3 programs HAKMEM's mean CPU time is 20 % less (−20 % to −20 %) than that of "
        "glibc 2.36. It is 25 % more (25 % to 25 %) than that of the best other, jemalloc. Its "
        "mean peak memory is 20 % less (−20 % to −20 %) than that of glibc 2.36. It is 25 % more "
        "(25 % to 25 %) than that of the best other, jemalloc.")


def test_the_headline_names_the_best_in_time_and_in_memory(tmp_path: Path) -> None:
    peers = {"hakmem": (1, 1.0), "system": (2, 0.9), "jemalloc": (2, 0.8), "snmalloc": (1.05, 2)}
    rows = [row(f"programs {place}", name, number, 10 * time, family="programs",
                peak_rss_bytes=int(10 * peak * 2**20))
            for place in range(3) for number in range(10) for name, (time, peak) in peers.items()]
    time, peak = sentences.headline(digest.read_run(folder_of(tmp_path, rows))).split(". Its ")
    assert "4.8 % less" in time and time.endswith("than that of the best other, snmalloc")
    assert "25 % more" in peak and peak.endswith("than that of the best other, jemalloc.")


def test_memory_over_time_needs_samples_of_both_sides(tmp_path: Path) -> None:
    rows = [row("short", name, number, 10, wall_s=seconds)
            for number in range(10) for name, seconds in (("hakmem", 0.001), ("system", 1.0))]
    cell, = digest.read_run(folder_of(tmp_path, rows)).cells
    assert cell.of("system").ratio("peak") and not cell.of("system").ratio("area")


def test_a_small_lead_is_level_for_us_and_a_loss_for_them_to_claim() -> None:
    cell = cell_of({"hakmem": 1, "system": 1.015, "jemalloc": 0.985, "snmalloc": 2}, spread=0.0005)
    assert verdicts(cell) == [Verdict.BASE, Verdict.LEVEL, Verdict.LESS, Verdict.MORE]
    ours = cell_of({"hakmem": 1, "system": 1.015}, spread=0.0005)
    position = ours.positions["time"]
    assert (position.place, position.ahead, position.rival) == (Place.WITHIN, (), "system")
    assert position.excludes_loss and ours.standings["time"].unclear == ("system",)
    assert not cell_of({"hakmem": 1, "system": 0.9}).positions["time"].excludes_loss


def test_one_that_failed_has_no_position() -> None:
    cell = only([*rows_of("c", 10), fallen("c", "hakmem", number=10)])
    assert cell.positions == {} and "failed in 1 cell " in sentences.standing_of([cell])


def test_time_and_memory_are_judged_alike() -> None:
    cell = cell_of({"hakmem": 1, "system": 2})
    assert sentences.winner_sentence(cell) == ("hakmem needs the least time, significantly; "
                                               "hakmem needs the least memory, significantly.")
    assert verdicts(cell, "peak") == [Verdict.BASE, Verdict.MORE]
    unclear = cell_of({"hakmem": 1, "system": 1.01}, spread=0.03)
    assert "needs the least memory, but no significant difference from" \
        in sentences.winner_sentence(unclear)
    (_, told) = (each.told["time"] for each in unclear.allocators)
    assert re.fullmatch(r"no difference found \(could have seen \d+(\.\d)? %\)",
                        markdown.said(told))


def test_no_two_allocators_of_a_picture_look_alike() -> None:
    names = [*plots.KNOWN, *(f"purge={value}" for value in range(10))]
    found = plots.styles(names)
    assert len({colour for colour, _ in found.values()}) == len(names)
    assert len({found[name][1] for name in plots.KNOWN}) == len(plots.KNOWN)
    assert plots.styles(["hakmem-linked"])["hakmem-linked"] == plots.KNOWN["hakmem"]


def test_a_run_too_short_to_be_sampled_has_no_mean_memory() -> None:
    cell = only([row("c", "hakmem", number, 5, wall_s=0.002) for number in range(6)])
    (hakmem,) = cell.allocators
    assert "mean" not in hakmem.told and "area" not in hakmem.told and "peak" in hakmem.told
    assert "| – | – |" in markdown.to_markdown(markdown.resource_table(cell))


def test_curves_may_have_names_of_several_lines(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, rows_of("c", 1))
    (folder / "curves.csv").write_text('cell,allocator,seconds,rss_bytes\n"a\nb",hakmem,0.5,7\n')
    assert digest.read_run(folder).curves == {"a\nb": {"hakmem": [(0.5, 7)]}}


ODD = "[bold]x[/] \x1b[31m"


@pytest.mark.parametrize("width", [40, 80, 110, 200])
def test_a_terminal_of_any_width_cuts_no_name_and_no_figure(width: int, tmp_path: Path) -> None:
    names = tuple(f"peer-{number}-of-many" for number in range(12))
    rows = [row(f"made up, setting {cell} {ODD}", name, number, 10 + number + place)
            for cell in range(2) for number in range(6)
            for place, name in enumerate(("hakmem", *names))]
    folder = folder_of(tmp_path, [*rows, fallen(rows[0].cell, "[/]", "said [red]no[/red]")])
    console = Console(width=width, highlight=False)
    with console.capture() as captured:
        table.show_matrix(folder, console)
        table.show_history(folder, {"hakmem": "[/a] title"}, console)
    said = captured.get()
    assert "…" not in said and "\x1b[31m" not in said and "[bold]x[/]" in said
    assert max(map(len, said.splitlines())) <= width
    heads = said.replace("- ", "-")
    assert all(part in heads for name in names for part in name.split("-"))
    assert "said [red]no[/red]" in " ".join(said.split()) and "1.00" in said
    cell = digest.read_run(folder).cells[0]
    for own in cell.allocators:
        assert not (ratio := own.ratio("time")) or f"{ratio.median:.2f}" in said


def test_pages_of_several_runs_share_no_name(tmp_path: Path) -> None:
    folder = folder_of(tmp_path / "run", rows_of("c", 6))
    other = folder_of(tmp_path / "further/run", rows_of("c", 6))
    report.write_report([folder, other], tmp_path / "x.html")
    assert {each.name for each in tmp_path.iterdir()} == {"run", "further", "x.html"}
    names = re.findall(r' id="([^"]+)"', (tmp_path / "x.html").read_text())
    assert len(names) == len(set(names))


def test_two_drawings_of_one_name_are_found(tree: Path) -> None:
    page = tree / "README.md"
    page.write_text(page.read_text() + "<!-- figures: plot bench/results/2026-run name=all "
                    'family="made up" -->\n<!-- end of figures -->\n')
    figures.update(tree)
    assert "all.svg was not drawn from these results" in "".join(figures.check(tree))


def test_memory_over_time_is_a_picture_too(tree: Path) -> None:
    page = tree / "README.md"
    page.write_text('<!-- figures: plot bench/results/2026-run name=over cell="a cell" -->\n'
                    "<!-- end of figures -->\n")
    with pytest.raises(LabError, match="no memory over time of a cell"):
        figures.update(tree)


def test_no_text_is_taken_for_markup() -> None:
    assert markdown.escaped("a~~b~~ &lt;\n") == "a\\~\\~b\\~\\~ &amp;lt;\N{REPLACEMENT CHARACTER}"
