#!/usr/bin/env python3
"""Prints a page of src/options/tuning.h: every number that is a choice, and its origin."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "src/options/tuning.h"

SECTION = r"/\* ---- (?P<section>[^*]+?) ---- \*/"
ROW = (r"/\* (?P<words>(?:(?!\*/).)+?) \*/\n"
       r"TUNE\((?P<name>\w+), (?P<value>[^\n]+), (?P<least>[^,\n]+), (?P<most>[^,\n]+)\);\n")
HEAD = """# Tuning

Made from `src/options/tuning.h` by `tools/tuning_doc.py`; do not edit. Here is every number that is
a choice: sizes in bytes (KIB, MIB, GIB), times in milliseconds, else counts. To try another, change
its line and commit; `./hakmem history HEAD~1..HEAD` says what that did. What users may set at run
time stands in `docs/options.md`.
"""


def plain(words: str) -> str:
    return " ".join(re.sub(r"\n \*", " ", words).split()).replace("|", "\\|")


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
        lines.append(f"| `{found['name']}` | {found['value']} | {found['least']} – "
                     f"{found['most']} | {what} | {origin} |")
    text = "\n".join(lines) + "\n"
    return re.sub(r"\n(## )", r"\n\n\1", text).replace("\n\n\n", "\n\n")


def rows(source: str) -> dict[str, str]:
    """The origin of each row, by its name."""
    found = re.finditer(ROW, source, re.DOTALL)
    return {row["name"]: plain(row["words"]).partition(" Origin: ")[2] for row in found}


if __name__ == "__main__":
    print(render((ROOT / TABLE).read_text(encoding="utf-8")), end="")
