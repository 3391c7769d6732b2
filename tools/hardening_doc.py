#!/usr/bin/env python3
"""Writes the tables of docs/hardening.md from tests/misuse/expected.txt: a test per row."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TABLE = "tests/misuse/expected.txt"
PAGE = "docs/hardening.md"
MODES = ["balanced", "checked", "debug", "glibc"]
BEGIN, END = "<!-- made from the misuse tests -->", "<!-- end -->"


def sentence(program: str) -> str:
    """What the program does wrong: the comment above it, on one line."""
    text = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests/misuse").glob("*.c"))
    comment = re.search(rf"/\* ((?:(?!\*/).)*?) ?\*/\nmisuse\({program}\)", text, re.DOTALL)
    if comment is None:
        raise ValueError(f"no comment stands above misuse({program}) in tests/misuse")
    return " ".join(comment.group(1).split()).removesuffix(".")


def tables(text: str) -> str:
    """One table per heading of the file, a row per program, in its order."""
    lines: list[str] = []
    when: dict[str, dict[str, str]] = {}
    for row in [*text.splitlines(), "# "]:
        if row.startswith("# ") and " | " not in row:
            for program, modes in when.items():
                lines.append(f"| {sentence(program)} | "
                             + " | ".join(modes[mode] for mode in MODES) + " |")
            when = {}
            heading = row.removeprefix("# ").strip()
            lines += ["", f"### {heading}", "", f"| what the program does | {' | '.join(MODES)} |",
                      "|---|" + "---|" * len(MODES)]
        elif row.count(" | ") >= 2:
            program, mode, rest = row.split(" | ", 2)
            when.setdefault(program, {})[mode] = rest.split("|")[0].strip()
    return "\n".join(lines[1:-5]).rstrip() + "\n"


def render(page: str, text: str) -> str:
    """The page with its tables made anew from the text of the expectations."""
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    head, _, body = text.partition("\n\n")
    return f"{before}{BEGIN}\n\n{tables(body)}\n{END}{after}"


if __name__ == "__main__":
    page = ROOT / PAGE
    page.write_text(render(page.read_text(encoding="utf-8"),
                           (ROOT / TABLE).read_text(encoding="utf-8")), encoding="utf-8")
