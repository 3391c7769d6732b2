#!/usr/bin/env python3
"""Prints a page of src/options/tuning.h: every number that is a choice, and its origin."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "src/options/tuning.h"
TABLES = (TABLE, "src/options/tuning_huge_pages.h", "src/options/tuning_processors.h",
          "src/options/tuning_observe.h")

SECTION = r"/\* ---- (?P<section>[^*]+?) ---- \*/"
ROW = (r"/\* (?P<words>(?:(?!\*/).)+?) \*/\n#define (?P<name>\w+) (?P<value>[^\n]+)\n"
       r"TUNING_RANGE\((?P=name), (?P<least>[^,\n]+), (?P<most>[^\n]+)\);\n")
HEAD = """# Tuning

Made from `src/options/tuning.h` by `tools/tuning_doc.py`; do not edit. Here is every number that is
a choice: sizes in bytes (KIB, MIB, GIB), times in milliseconds, else counts. To try another, change
its line and commit; `./hakmem history HEAD~1..HEAD` says what that did. What users may set at run
time stands in `docs/options.md`.
"""


def plain(words: str) -> str:
    return " ".join(re.sub(r"\n \*", " ", words).split()).replace("|", "\\|")


def bare(value: str) -> str:
    return value.removeprefix("(").removesuffix(")") if value.startswith("(") else value


def render(source: str) -> str:
    """The page for the text of the headers."""
    lines = [HEAD]
    for found in re.finditer(f"{SECTION}|{ROW}", source, re.DOTALL):
        if found["section"]:
            lines += [f"## {found['section'].capitalize()}", "",
                      "| name | value | range | what it decides | where it comes from |",
                      "|---|---|---|---|---|"]
            continue
        what, _, origin = plain(found["words"]).partition(" Origin: ")
        lines.append(f"| `{found['name']}` | {bare(found['value'])} | {bare(found['least'])} – "
                     f"{bare(found['most'])} | {what} | {origin} |")
    text = "\n".join(lines) + "\n"
    return re.sub(r"\n(## )", r"\n\n\1", text).replace("\n\n\n", "\n\n")


def without_range(source: str) -> list[str]:
    """Names that are defined in the header but are no rows with an origin and a range."""
    rows = {found["name"] for found in re.finditer(ROW, source, re.DOTALL)
            if " Origin: " in plain(found["words"])}
    defined = re.findall(r"^#define (\w+)[ ]", source, re.MULTILINE)
    return [name for name in defined if name not in rows]


def source_of(root: Path) -> str:
    """All files of the table, one behind the other."""
    return "\n".join((root / path).read_text(encoding="utf-8") for path in TABLES
                     if (root / path).exists())


if __name__ == "__main__":
    print(render(source_of(ROOT)), end="")
