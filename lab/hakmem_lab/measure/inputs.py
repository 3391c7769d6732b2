"""The inputs of the programs that are too large to keep: made once, in out/inputs/.

Each document is a pure function of its size and seed. Its file is named after them and VERSION,
so raise VERSION when a generator changes: rows made from different bytes are not one row.
"""

import os
import random
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from hakmem_lab import LabError, ROOT

VERSION = 1
FOLDER = ROOT / "out" / "inputs"
WORDS_OF_A_LANGUAGE = 30_000
SYLLABLES = ("ba be bi bo da de di do ka ke ki ko la le li lo ma me mi mo na ne ni no ra re ri ro "
             "sa se si so ta te ti to ster land heim ung ion ment able ful").split()


class Dice:
    """Draws that repeat on every Python: only random() is promised to stay what it is."""

    def __init__(self, seed: int) -> None:
        self._draw = random.Random(seed).random

    def below(self, limit: int) -> int:
        return int(self._draw() * limit)

    def rank(self, limit: int) -> int:
        """Like the rank of a word in a text: small numbers are common, large ones rare."""
        return int(limit ** self._draw()) - 1


@cache
def vocabulary() -> list[str]:
    """All documents are in one language."""
    dice = Dice(0)
    return ["".join(SYLLABLES[dice.below(len(SYLLABLES))] for _ in range(1 + dice.below(5)))
            for _ in range(WORDS_OF_A_LANGUAGE)]


def sentences(dice: Dice) -> Iterator[str]:
    """Endless text: common words often, rare ones rarely, as in a language."""
    words = vocabulary()
    while True:
        count = 4 + dice.below(14)
        text = " ".join(words[dice.rank(len(words))] for _ in range(count))
        yield text.capitalize() + "."


def text(size: int, seed: int) -> str:
    """So many lines of text."""
    said = sentences(Dice(seed))
    return "".join(f"{next(said)}\n" for _ in range(size))


def json_orders(size: int, seed: int) -> str:
    """An array of so many orders: nested objects, numbers, escapes and strings of all lengths."""
    dice = Dice(seed)
    said = sentences(dice)
    orders = []
    for number in range(size):
        lines = ",".join(f'{{"article":"A{dice.rank(5000):05d}","count":{1 + dice.below(9)},'
                         f'"price":{dice.below(100000) / 100},"gift":{str(line > 0).lower()}}}'
                         for line in range(1 + dice.below(6)))
        orders.append(f'{{"id":{number},"customer":{{"name":"{next(said)[:12 + dice.below(30)]}",'
                      f'"city":"city {dice.rank(400)}","mail":null}},"lines":[{lines}],'
                      f'"note":"{next(said)}\\n\\u00e9 {number:x}"}}')
    return "[" + ",\n".join(orders) + "]\n"


def xml_articles(size: int, seed: int) -> str:
    """So many articles: attributes, mixed content, entities, a namespace and a few comments."""
    dice = Dice(seed)
    said = sentences(dice)
    parts = ['<?xml version="1.0" encoding="UTF-8"?>\n'
             '<!DOCTYPE archive [<!ENTITY who "the author">]>\n'
             '<archive xmlns="urn:archive" xmlns:m="urn:marks">\n']
    for number in range(size):
        body = "".join(f'<p m:line="{line}">{next(said)} <b>{next(said)[:20]}</b> &amp; &who;</p>'
                       for line in range(1 + dice.below(4)))
        tags = "".join(f"<tag>{dice.rank(300)}</tag>" for _ in range(dice.below(5)))
        parts.append(f'<article id="a{number}" year="{1990 + dice.below(35)}" kind="k{number % 7}">'
                     f"<title>{next(said)}</title><tags>{tags}</tags>\n{body}</article>\n")
        if number % 50 == 0:
            parts.append(f"<!-- {number} articles so far -->\n")
    return "".join(parts) + "</archive>\n"


def smt_puzzles(size: int, seed: int) -> str:
    """So many small questions to a solver: on strings, on bits, on arrays and on integers."""
    dice = Dice(seed)
    parts = ["(set-option :random-seed 1)\n(declare-const s String)\n(declare-const t String)\n"
             "(declare-const x (_ BitVec 16))\n(declare-const y (_ BitVec 16))\n"
             "(declare-const a (Array Int Int))\n(declare-const i Int)\n(declare-const j Int)\n"]
    for number in range(size):
        letters = "".join("ab"[dice.below(2)] for _ in range(2 + number % 3))
        asked = (
            f'(= (str.++ s "{letters}" t) (str.++ t "{letters[::-1]}" s)) (> (str.len s) '
            f'{number % 7}) (str.in_re t (re.* (re.union (str.to_re "a") (str.to_re "bb"))))',
            f"(= (bvadd (bvmul x y) (bvudiv y (bvor x #x0003))) (_ bv{dice.below(65536)} 16)) "
            "(bvult x y) (bvult #x0010 x)",
            f"(distinct i j) (= (select (store a i {number}) j) (+ (select a i) {dice.below(99)})) "
            f"(< (+ (select a j) (* 3 i)) (* 5 j)) (> i {dice.below(1000)})",
        )[number % 3]
        parts.append(f"(push) (assert (and {asked})) (check-sat) (pop)\n")
    return "".join(parts)


KINDS = {"text": text, "json_orders": json_orders, "xml_articles": xml_articles,
         "smt_puzzles": smt_puzzles}


def ready(kind: str, size: int, seed: int = 1) -> str:
    """Makes the document unless it is there; its path as a word of a command."""
    if kind not in KINDS:
        raise LabError(f"no input is called '{kind}'; there are {', '.join(KINDS)}")
    target = FOLDER / f"{kind}-{size}-{seed}-v{VERSION}"
    if not target.exists():
        with unfinished(target) as place:
            place.write_text(KINDS[kind](size, seed), encoding="utf-8")
    return word(target)


def word(target: Path) -> str:
    """The path without the place of this checkout."""
    return f"{{root}}/{target.relative_to(ROOT).as_posix()}"


@contextmanager
def unfinished(target: Path) -> Iterator[Path]:
    """
    A place to make a file or folder that appears as `target` whole or not at all. Where another
    process made the same in the meantime, that one stays.
    """
    place = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield place
        place.replace(target)
    except OSError as error:
        if not target.is_dir():
            raise LabError(f"{target}: {error.strerror}") from None
    finally:
        if place.is_dir():
            shutil.rmtree(place)
        elif place.exists():
            place.unlink()
