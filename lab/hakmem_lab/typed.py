"""Finds figures that somebody typed: in README.md and docs/measured.md every number with a unit,
every ratio and every count out of a total has to come from a result file, or to be cited.

`text` is a document without its generated parts, whose lines are left empty.
"""

import re
from collections.abc import Iterator

CITED = re.compile(r"<!-- cited: \S.*-->")

# What has a unit and was not measured: each as it stands in a document, with its reason.
ALLOWED = (
    "4, 16 and 64 KiB pages",  # the page sizes of the processors
    "under two minutes",  # what `hakmem bench --quick` is made to stay below
)
_NUMBER = r"(?<![\w.])[+−-]?\d+(?:[.,]\d+)*"
_WORD = (r"(?<!\w)(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|"
         r"thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million)")
_UNIT = (r"(?:(?:[kMG] ?|million )?(?:op/s|ops?\b|operations\b)|[num]s\b|µs\b|s\b|sec\b|seconds?\b|"
         r"minutes?\b|hours?\b|(?:nano|micro|milli)seconds?\b|[kKMGT]i?B\b|B\b|[kMG](?=\W|$)|"
         r"(?:kilo|mega|giga|kibi|mebi|gibi)?bytes?\b|[kMG]?Hz\b|cycles\b|"
         r"%|‰|percent\b|per cent\b|x\b|×|times\b|-?fold\b)")
_TOTAL = r"(?: out)? of (?:the |all )?"
TYPED = re.compile("|".join((
    rf"(?:{_NUMBER}[ \u00a0-]?|{_WORD}[ \u00a0-]){_UNIT}",
    rf"[x×] ?{_NUMBER}",
    r"(?<![\w.])[+−-]?\d+\.\d+(?![\w.]*\.?\d)",
    rf"{_NUMBER}{_TOTAL}\d+",
    r"\b(?:twice|thrice|half|double|treble) (?:as|of|the|that|what)\b",
    r"\b(?:two|three|four|five|ten|hundred)fold\b",
    r"\| *\**\d[\d,.]*\** *(?:\([^|]*\) *)?\|",
)), re.IGNORECASE)


def typed(text: str) -> Iterator[tuple[int, str]]:
    """Line and words of each figure, but for those of paragraphs that cite their source. A figure
    may begin on one line and end on the next."""
    first = 1
    for paragraph in re.split(r"(?<=\n)(?=[ \t]*\n)", text):
        if not CITED.search(paragraph):
            shown = re.sub(r"<!--.*?-->", _blank, paragraph, flags=re.DOTALL)
            for allowed in ALLOWED:
                shown = re.sub(r"\s".join(map(re.escape, allowed.split(" "))), _blank, shown)
            for found in TYPED.finditer(_unbroken(shown)):
                line = first + shown.count("\n", 0, found.start())
                yield line, " ".join(found[0].strip("| ").split())
        first += paragraph.count("\n")


def _blank(found: "re.Match[str]") -> str:
    return re.sub(r"[^\n]", " ", found[0])


def _unbroken(text: str) -> str:
    """With spaces for the ends of lines, at the same places."""
    return text.replace("\n", " ")
