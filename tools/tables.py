#!/usr/bin/env python3
"""Makes the tables of pages anew, each from the rows it rests on: tables.py [PAGE ...].

TABLES names them. A table stands in its page behind the comment `made from SOURCE`, and a comment
that begins with `end` follows it. tests/tidy.py compares each page with what is made here.
"""

import csv
import io
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, geometric_mean

ROOT = Path(__file__).resolve().parents[1]
NONE = "–"
MIB = 1 << 20

Row = dict[str, str]
Cell = str | Callable[[Row], str]  # a column of the rows, or what is made of a row


@dataclass(frozen=True)
class Table:
    source: str
    page: str
    make: Callable[[str], str]  # of the text of the source

    def render(self, page: str, source: str) -> str:
        """The page with this table made anew."""
        begin = f"<!-- made from {self.source} -->"
        before, _, rest = page.partition(begin)
        return f"{before}{begin}\n\n{self.make(source)}\n<!-- end{rest.partition('<!-- end')[2]}"


def read(text: str) -> list[Row]:
    return list(csv.DictReader(io.StringIO(text)))


def grid(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table. Below a heading that ends with a colon stand figures, at the right."""
    marks = "".join("---:|" if head.endswith(":") else "---|" for head in heads)
    parts = [[head.removesuffix(":") for head in heads], *lines]
    shown = [f"| {' | '.join(map(str, part))} |\n" for part in parts]
    return "".join([shown[0], f"|{marks}\n", *shown[1:]])


def named(cells: Mapping[str, Cell]) -> Callable[[str], str]:
    """A row of the page for each row of the source, with these columns."""
    def make(text: str) -> str:
        return grid(list(cells), ([row[cell] or NONE if isinstance(cell, str) else cell(row)
                                   for cell in cells.values()] for row in read(text)))

    return make


def shares(head: str, whole: str, form: str, cells: Mapping[str, str],
           peak: str = "") -> Callable[[str], str]:
    """A row for each program: columns of the source in per cent of the column `whole`, which is
    shown in MiB below `head`, and their means. The mean of a peak, itself a ratio, is geometric."""
    def make(text: str) -> str:
        rows = read(text)
        parts = {name: [100 * int(row[field]) / int(row[whole]) for row in rows]
                 for name, field in cells.items()}
        peaks = [100 * int(row[peak]) / int(row[whole]) for row in rows] if peak else []
        lines = [[row["program"], f"{int(row[whole]) / MIB:,.1f}",
                  *(f"{each:.1f}" for each in peaks[at:at + 1]),
                  *(format(part[at], form) for part in parts.values())]
                 for at, row in enumerate(rows)]
        means = [*([f"{geometric_mean(peaks):.1f}"] if peaks else []),
                 *(format(fmean(part), form) for part in parts.values())]
        lines.append([f"**mean of {len(rows)}**", "", *(f"**{mean}**" for mean in means)])
        return grid(["program", head, *(["HAKMEM:"] if peak else []), *cells], lines)

    return make


def crossed(text: str, down: Sequence[str], across: Sequence[str]
            ) -> dict[tuple[str, ...], dict[tuple[str, ...], Row]]:
    """The rows by the fields `down`, which a row of the page has in common, and by `across`."""
    found: dict[tuple[str, ...], dict[tuple[str, ...], Row]] = {}
    for row in read(text):
        by = found.setdefault(tuple(row[name] for name in down), {})
        by[tuple(row[name] for name in across)] = row
    return found


# ---- tables that are more than their rows ----

def verdicts(text: str) -> str:
    gone = sum(int(row["lines"]) for row in read(text) if row["verdict"] == "gone")
    return named({"mechanism": "mechanism", "lines of `src/`": "lines", "verdict": "verdict",
                  "measured": "measured"})(text) + f"\nIn all {gone:,} lines are gone.\n"


def suites(text: str) -> str:
    """The rows as they stand; an empty field was not run."""
    first, *others = next(csv.reader(io.StringIO(text)))
    return named({first: first} | {f"{head}:": head for head in others})(text)


PARTS = {"start": "every program", "heap": "a heap of some size", "threads": "several threads",
         "messages": "messages", "files": "output files", "background": "`background=1`",
         "seldom": "rarely, and not in the test"}


def system_calls(text: str) -> str:
    lines, before = [], ""
    for row in read(text):
        option = f"`{row['without']}`" if "=" in row["without"] else row["without"] or NONE
        lines.append([PARTS[row["part"]] if row["part"] != before else "", f"`{row['call']}`",
                      row["when"], row["plain"] or "no", option])
        before = row["part"]
    return grid(["for", "system call", "when", "with `plain_syscalls=1`", "option that ends it"],
                lines)


GROUPS = "unit", "api", "model", "misuse", "preload", "stress"


def mutants(text: str) -> str:
    """What became of the sample, and of the survivors of its first round in the second."""
    rows = read(text)
    verdicts = Counter(row["verdict"] for row in rows)
    judged = verdicts["killed"] + verdicts["survived"]
    killed = [row for row in rows if row["verdict"] == "killed"]
    rounds = {each: [row for row in killed if row["round"] == each] for each in ("first", "second")}

    def line(name: str, judged: int, killed: list[Row]) -> list[object]:
        groups = Counter(row["by"].split("/")[1] for row in killed)
        return [name, judged, *(groups[group] or NONE for group in GROUPS), len(killed),
                judged - len(killed), f"{100 * len(killed) / judged:.0f} %"]

    return (f"Of {len(rows)} mutants {verdicts['not compilable']} do not compile and "
            f"{verdicts['equal']} are equal. The others:\n\n" + grid(
                ["round", "judged:", *(f"by {group}:" for group in GROUPS), "killed:", "alive:",
                 "share:"],
                [line("first", judged, rounds["first"]),
                 line("second", judged - len(rounds["first"]), rounds["second"]),
                 line("together", judged, killed)]))


MODES = "balanced", "checked", "debug", "glibc"


def sentence(program: str) -> str:
    """What the program does wrong: the comment above it, on one line."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/misuse").glob("*.c"))
    comment = re.search(rf"/\* ((?:(?!\*/).)*?) ?\*/\nmisuse\({program}\)", text, re.DOTALL)
    if comment is None:
        raise ValueError(f"no comment stands above misuse({program}) in tests/misuse")
    return " ".join(comment.group(1).split()).removesuffix(".")


def misuse(text: str) -> str:
    """A table for each heading of the file, a row for each program, in its order."""
    found: dict[str, dict[str, dict[str, str]]] = {}
    for row in text.partition("\n\n")[2].splitlines():
        if row.startswith("# ") and " | " not in row:
            part = found.setdefault(row.removeprefix("# ").strip(), {})
        elif row.count(" | ") >= 2:
            program, mode, rest = row.split(" | ", 2)
            part.setdefault(program, {})[mode] = rest.split("|")[0].strip()
    return "\n".join(f"### {heading}\n\n" + grid(
        ["what the program does", *MODES],
        ([sentence(program), *(modes[mode] for mode in MODES)] for program, modes in part.items()))
        for heading, part in found.items())


CAUSES = {"leak": "a leak", "fragmentation": "one block in use on each page",
          "parked": "threads that wait", "same": "huge blocks for a moment, of one size",
          "more": "huge blocks for a moment, each larger", "array": "an array that grows"}
TOOLS = "why", "profile", "leaks"
BUILDS = [(language, symbols) for language in ("C", "C++", "Rust", "Python")
          for symbols in ("with symbols", "stripped")]
MOST = 70  # characters of what a tool says


def answers(text: str) -> str:
    """A row for each cause and tool, a column for each kind of program: whether the first screen of
    the tool names the cause and the next step."""
    found = crossed(text, ("cause", "tool"), ("language", "symbols"))
    builds = [each for each in BUILDS if any(each in by for by in found.values())]

    def cell(row: Row | None) -> str:
        if row is None:
            return NONE
        return ", ".join(row[each] for each in ("names", "next") if row[each] != "no") or "no"

    def line(cause: str, tool: str) -> list[str]:
        by = found.get((cause, tool), {})
        said = by.get(BUILDS[0], {"says": ""})["says"]
        return [CAUSES[cause], tool, *(cell(by.get(each)) for each in builds),
                said if len(said) <= MOST else f"{said[:MOST]}…"]

    heads = [language + ", stripped" * (symbols == "stripped") for language, symbols in builds]
    return grid(["program", "tool", *heads, "what it says in C"],
                (line(cause, tool) for cause in CAUSES for tool in TOOLS))


def targets(text: str) -> str:
    rows = read(text)

    def cost(row: Row) -> str:
        low, middle, high = (f"{float(row[name] or 0):.2f}"
                             for name in ("cost_least", "cost", "cost_most"))
        return f"{middle} ({low}–{high})" if row["cost"] else NONE

    def rounded(name: str) -> Cell:
        return lambda row: f"{float(row[name]):.2f}" if row[name] else NONE

    verdicts = Counter(row["target"] for row in rows if row["target"])
    counts = ", ".join(f"{count} {each}" for each, count in verdicts.most_common())
    rounds = sorted({int(row["rounds"]) for row in rows if row["rounds"]})
    return named({
        "program": "program", "policy": lambda row: "by hand" if row["policy"] == "hand" else
        "`hakmem learn`", "what it is": "said", "rules:": "rules", "seconds:": "seconds",
        "cost:": cost, "CPU:": rounded("cpu"), "memory over time:": rounded("memory_time"),
        "of the gain:": "gain", "target": "target"})(text) + (
            f"\n*{verdicts.total()} programs: {counts}. Medians of {rounds[0]} to {rounds[-1]} "
            f"rounds with their interval; commit {rows[0]['version']}.*\n")


def lines_moved(text: str) -> str:
    """Cache lines for each block: those that moved, and those that were claimed."""
    found = crossed(text, ("workload", "threads"), ("allocator",))
    others = sorted({name for by in found.values() for name in by} - {("hakmem",)})

    def cell(row: Row | None) -> str:
        return NONE if row is None else " + ".join(
            f"{int(row[each]) / int(row['blocks']):.2f}" for each in ("moved", "claimed"))

    return grid(["moved + claimed", "hakmem:", *(f"{name}:" for name, in others)], (
        [f"{workload}, {threads} threads", *(cell(by.get(each)) for each in (("hakmem",), *others))]
        for (workload, threads), by in found.items()))


GROUPINGS = {"stays 1": "stays, 1 frame:", "stays 2": "2:", "stays 3": "3:",
             "whole 1": "whole sites stay, 1 frame:", "whole 2": "2:", "whole 3": "3:",
             "sites 1": "sites, 1 frame:", "sites 2": "2:", "sites 3": "3:",
             "oracle stays": "oracle: stays:", "oracle lives": "oracle: lives:", "dense": "dense:"}


def groupings(text: str) -> str:
    """Pages of each grouping, and then what its slabs take, relative to one heap."""
    found = crossed(text, ("program",), ("grouping",))
    built = [each for each in GROUPINGS if each.startswith(("stays", "whole", "sites"))]

    def share(by: Mapping[tuple[str, ...], Row], grouping: str, field: str) -> str:
        return f"{int(by[grouping,][field]) / max(1, int(by['classes',][field])):.2f}"

    pages = grid(["program", "one heap, MiB:", *GROUPINGS.values()], (
        [program, " / ".join(f"{int(by['classes',][each]) / 1024:,.1f}"
                             for each in ("mean_kib", "end_kib")),
         *(f"{share(by, each, 'mean_kib')} / {share(by, each, 'end_kib')}" for each in GROUPINGS)]
        for (program,), by in found.items()))
    slabs = grid(["program", "blocks:", *(GROUPINGS[each] for each in built)], (
        [program, f"{int(by['classes',]['blocks']):,}",
         *(f"{by[each,]['groups']}: {share(by, each, 'end_slab_kib')}" for each in built)]
        for (program,), by in found.items()))
    return f"{pages}\nThe number of groups, and memory of all slabs at the end:\n\n{slabs}"


TABLES = (
    Table("bench/verdicts.csv", "docs/design.md", verdicts),
    Table("tests/suites.csv", "docs/reliability.md", suites),
    Table("tests/mutants.csv", "docs/reliability.md", mutants),
    Table("tests/misuse/expected.txt", "docs/hardening.md", misuse),
    Table("tests/system_calls.csv", "docs/architecture.md", system_calls),
    Table("tests/answers/answers.csv", "docs/profile.md", answers),
    Table("bench/learn_targets.csv", "bench/studies.md", targets),
    Table("bench/lifetimes.csv", "bench/studies.md", groupings),
    Table("bench/lines.csv", "bench/studies.md", lines_moved),
    Table("bench/attribution.csv", "bench/studies.md", shares(
        "C library, MiB:", "c_library_peak", "+.1f", {
            "rounding ≤ 32 KiB:": "rounding", "of larger blocks:": "rounding_large",
            "partly used slabs:": "slabs", "thread caches:": "thread_caches",
            "kept pages:": "kept_pages", "own structures:": "structures",
            "less the C library's:": "c_library", "the rest:": "rest"}, peak="hakmem_peak")),
    Table("bench/class_sets.csv", "bench/studies.md", shares(
        "requested, MiB:", "requested", ".2f", {
            "HAKMEM:": "hakmem_lost", "mimalloc, jemalloc:": "mimalloc_lost",
            "tcmalloc:": "tcmalloc_lost", "best:": "best_lost",
            "best, lawful:": "best_lawful_lost"})),
)


def main() -> None:
    for table in TABLES:
        if not sys.argv[1:] or table.page in sys.argv[1:]:
            page = ROOT / table.page
            page.write_text(table.render(page.read_text(encoding="utf-8"),
                                         (ROOT / table.source).read_text(encoding="utf-8")),
                            encoding="utf-8")


if __name__ == "__main__":
    main()
