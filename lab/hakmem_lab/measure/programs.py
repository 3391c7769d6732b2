"""The programs of the matrix: real ones, as a distribution ships them, at work on fixed input.

A cell takes 0.5 to 1 s on the system's malloc, and repeats: fixed seeds, one answer. What it reads
lies in lab/inputs/ or is made by inputs.py. `{root}` in a word is the folder of this repository.
"""

import shutil
from collections.abc import Callable
from dataclasses import dataclass

from hakmem_lab.measure import inputs
from hakmem_lab.measure.subject import Cell, Subject

FAMILY = "programs"
HERE = "{root}/lab/inputs"
LIMIT_S = 120.0


@dataclass(frozen=True)
class Plan:
    """A cell that exists if its programs do. `subject` makes its input, so it is called late."""

    name: str
    needs: tuple[str, ...]
    title: str
    subject: Callable[[bool], Subject]  # the argument: is it the quick selection
    is_quick: bool = False


def command(*words: str, **settings: str) -> Subject:
    return Subject(words, settings={"LC_ALL": "C", **settings}, limit_s=LIMIT_S)


def redis(quick: bool) -> Subject:
    # Debian links redis with jemalloc: only a preloaded C library makes it run on the system's.
    # The benchmark draws its keys anew each time: the figures repeat, the single keys do not.
    return Subject(
        ("redis-server", "--port", "{port}", "--bind", "127.0.0.1", "--save", "",
         "--appendonly", "no", "--dir", "{folder}"),
        settings={"LC_ALL": "C"}, limit_s=LIMIT_S, until="port:{port}", has_own_folder=True,
        load=("redis-benchmark", "-p", "{port}", "-q", "-c", "8", "-P", "16",
              "-n", "30000", "-r", "20000", "-d", "200",
              "-t", "set,get,incr,lpush,lpop,sadd,hset,zadd,lrange_100"))


def sqlite(quick: bool) -> Subject:
    return command("sqlite3", "-batch", ":memory:", f".read {HERE}/shop.sql")


def python(quick: bool) -> Subject:
    text = inputs.ready(inputs.text, 12000, "txt")
    return command("/usr/bin/python3", f"{HERE}/objects.py", text, "80",
                   PYTHONHASHSEED="0", PYTHONNOUSERSITE="1", PYTHONDONTWRITEBYTECODE="1")


def python_on_malloc(quick: bool) -> Subject:
    pooled = python(quick)
    return command(*pooled.command, **pooled.settings, PYTHONMALLOC="malloc")


def gcc(quick: bool) -> Subject:
    return command("g++", "-std=c++17", "-O1", "-c", f"{HERE}/templates.cpp",
                   "-o", "{folder}/templates.o")


def clang(quick: bool) -> Subject:
    return command("clang++", "-std=c++17", "-O0", "-c", f"{HERE}/templates.cpp",
                   "-o", "{folder}/templates.o")


def lua(quick: bool) -> Subject:
    lines, rounds = (4000, "10") if quick else (12000, "45")
    return command("lua5.4", f"{HERE}/churn.lua", inputs.ready(inputs.text, lines, "txt"), rounds)


def jq(quick: bool) -> Subject:
    orders = inputs.ready(inputs.json_orders, 8000 if quick else 20000, "json")
    return command("jq", "-c", "-f", f"{HERE}/cities.jq", orders)


def xmllint(quick: bool) -> Subject:
    document = inputs.ready(inputs.xml_articles, 12000, "xml")
    return command("xmllint", "--noout", *[document] * 8)


def z3(quick: bool) -> Subject:
    return command("z3", inputs.ready(inputs.smt_puzzles, 180, "smt2"))


def ghostscript(quick: bool) -> Subject:
    return command("gs", "-q", "-dSAFER", "-dBATCH", "-dNOPAUSE", "-sDEVICE=pdfwrite",
                   "-o", "/dev/null", f"{HERE}/pages.ps")


def perl(quick: bool) -> Subject:
    chapters = (inputs.ready(inputs.text, 4000, "txt", seed)
                for seed in range(1, 6 if quick else 17))
    return command("perl", f"{HERE}/word_index.pl", *chapters,
                   PERL_HASH_SEED="0", PERL_PERTURB_KEYS="0")


PLANS = (
    Plan("redis", ("redis-server", "redis-benchmark"),
         "A redis server answers its own benchmark: strings, lists, sets, hashes, sorted sets.",
         redis),
    Plan("sqlite", ("sqlite3",),
         "sqlite loads a database in memory, indexes, joins, groups, updates and checks it.",
         sqlite),
    Plan("python", ("/usr/bin/python3",),
         "Python indexes a text, builds trees and runs a simulation, on its own pools.", python),
    Plan("python on malloc", ("/usr/bin/python3",),
         "The same Python program with PYTHONMALLOC=malloc: every object is a malloc.",
         python_on_malloc),
    Plan("c++ compile (gcc)", ("g++",),
         "g++ compiles templates, variants and shared pointers at -O1.", gcc),
    Plan("c++ compile (clang)", ("clang++",), "clang compiles the same file at -O0.", clang),
    Plan("lua", ("lua5.4",),
         "Lua indexes a text, builds trees and replaces strings of all lengths.", lua, True),
    Plan("jq (json)", ("jq",), "jq parses a large JSON document and groups its orders.", jq, True),
    Plan("xmllint (xml)", ("xmllint",),
         "xmllint parses a large XML document into a tree and frees it, eight times.", xmllint),
    Plan("z3", ("z3",),
         "z3 answers 180 small questions on strings, bits, arrays and integers.", z3),
    Plan("ghostscript", ("gs",),
         "Ghostscript turns eighty PostScript pages into PDF.", ghostscript),
    Plan("perl", ("perl",), "Perl builds an index of all words in sixteen texts.", perl, True),
)


def cells(quick: bool = False) -> tuple[list[Cell], list[tuple[str, str]]]:
    """All cells whose programs are installed, and (name, reason in one line) of those that are not.

    `quick` is a much smaller selection with less input. Inputs that are missing are made here."""
    found, left_out = [], []
    for plan in PLANS:
        if quick and not plan.is_quick:
            continue
        missing = [name for name in plan.needs if shutil.which(name) is None]
        if missing:
            left_out.append((plan.name, f"{' and '.join(missing)} not installed"))
        else:
            found.append(Cell(plan.name, FAMILY, plan.subject(quick), title=plan.title,
                              group="programs"))
    return found, left_out
