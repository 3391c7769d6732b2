"""Finds figures that somebody typed. In README.md and docs/measured*.md every number with a unit,
every ratio and every count out of a total has to come from a result file; in the other documents,
which have sizes and limits of their own, only what compares speed or memory.

`text` is a document without its generated parts, whose lines are left empty.
"""

import re
from collections.abc import Iterator

STRICT = re.compile(r"README\.md|docs/measured[^/]*\.md")

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
_FRACTION = (r"(?<!\w)(?:(?:a|one|two|three)[ -](?:half|third|quarter|fifth|tenth)s?|half|twice|"
             r"thrice|double|treble)\b")
_AMOUNT = (rf"(?:(?:{_NUMBER}|{_WORD})[ \u00a0-]?(?:%|per ?cent\b|x\b|×|times\b|-?fold\b)|"
           rf"{_FRACTION})")
_MORE = r"\b(?:faster|slower|quicker|cheaper|dearer|less|more|fewer|leaner|fatter|ahead|behind)\b"
_MOVED = (r"\b(?:faster|slower|cheaper|beat(?:s|en)?|outruns?|outperforms?|leads?|trails?|"
          r"gain(?:s|ed)?|los(?:es|t)|sav(?:es|ed)|won|wins|costs|ahead|behind)\b")
_WORTH = r"(?:fast|slow|cheap|dear|memory|RSS|throughput|speed|time|cost|peak)\b"
_ALLOCATOR = (r"(?<![\w/.-])(?:glibc|(?:mi|je|tc|sn|rp)malloc\w*|gperftools|tbb|hoard|scudo)"
              r"(?:'s)?(?![\w/-])")
_NEAR = r"[^.;:|]{0,60}?"  # within a clause
_TOTAL = r"(?: out)? of (?:the |all )?"
_WENT = (r"\b(?:went|goes|fell|falls?|drop(?:s|ped)?|rose|rises?|grew|grows?|shrank|sank|cut|peak|"
         r"RSS|memory|faults|throughput|speed|times?|costs?)\b")
TYPED = re.compile("|".join((
    rf"(?:{_NUMBER}[ \u00a0-]?|{_WORD}[ \u00a0-]){_UNIT}",
    rf"[x×] ?{_NUMBER}",
    r"(?<![\w.])[+−-]?\d+\.\d+(?![\w.]*\.?\d)",
    rf"{_NUMBER}{_TOTAL}\d+",
    r"\b(?:twice|thrice|half|double|treble) (?:as|of|the|that|what)\b",
    r"\b(?:two|three|four|five|ten|hundred)fold\b",
    r"\| *\**\d[\d,.]*\** *(?:\([^|]*\) *)?\|",
)), re.IGNORECASE)
COMPARED = re.compile("|".join((
    rf"{_AMOUNT} (?:as )?(?:much |many |of )?(?:(?:the|its|their) )?(?:{_MORE}|{_WORTH})",
    rf"{_MOVED}{_NEAR}{_AMOUNT}",
    rf"{_ALLOCATOR}{_NEAR}{_AMOUNT}",
    rf"{_AMOUNT}{_NEAR}{_ALLOCATOR}",
    rf"{_NUMBER}[ \u00a0-]?(?:ns\b|nanoseconds?\b|(?:[kMG] ?|million )?(?:op/s|ops/s))",
    r"\b(?:halved|doubled|trebled|tripled)\b",
    rf"{_WENT}{_NEAR}\b(?:by {_AMOUNT}|from {_NUMBER}{_NEAR}\bto {_NUMBER})",
    rf"\b(?:wins?|won|leads?|first|fastest|lowest|best)\b{_NEAR}{_NUMBER}{_TOTAL}\d+",
)), re.IGNORECASE)


def is_strict(name: str) -> bool:
    """Whether all figures of a document are looked for, by its path from the root."""
    return STRICT.fullmatch(name) is not None


def typed(text: str, strictly: bool = True) -> Iterator[tuple[int, str]]:
    """Line and words of each figure, which may begin on one line and end on the next. Strictly:
    also what compares nothing."""
    patterns = (COMPARED, TYPED) if strictly else (COMPARED,)
    first = 1
    for paragraph in re.split(r"(?<=\n)(?=[ \t]*\n)", text):
        shown = re.sub(r"<!--.*?-->", _blank, paragraph, flags=re.DOTALL)
        for allowed in ALLOWED:
            shown = re.sub(r"\s".join(map(re.escape, allowed.split(" "))), _blank, shown)
        shown = re.sub(r"^[ \t]+", "", shown, flags=re.MULTILINE)
        flat = shown.replace("\n", " ")
        for pattern in patterns:
            for found in pattern.finditer(flat):
                line = first + shown.count("\n", 0, found.start())
                yield line, " ".join(found[0].strip("| ").split())
            flat = pattern.sub(_blank, flat)
        first += paragraph.count("\n")


def _blank(found: "re.Match[str]") -> str:
    return re.sub(r"[^\n]", " ", found[0])
