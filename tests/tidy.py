#!/usr/bin/env python3
"""The rules of how the code reads, executable: prints `file:line: rule: text` and exits 1.

Each rule is a function over one file or over the tree; its docstring is the rule.
"""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
import advice_doc  # noqa: E402
import options_doc  # noqa: E402
import tables  # noqa: E402
import tuning_doc  # noqa: E402

RANKS = {  # of the rooms of src/: includes and calls (shape/calls.py) go down
    "base": 0, "options": 1, "os": 2, "observe": 3, "keep": 4, "heap": 5, "large": 6, "slab": 7,
    "cache": 8, "check": 9, "upkeep": 10, "site": 11, "report": 12, "entry": 13, "malloc.c": 13,
}

# What older texts call things, and what we call them. Options keep their public names.
RETIRED_NAMES = {
    r"\w*super_?slab\w*": "slab or span",
    r"front_gate": "malloc.c",
    r"(tiny_)?unified_cache": "thread cache",
    r"tls_sll\w*": "bin",
    r"l2?_?5(_pool)?|l25\w*": "large",
    r"big_?cache": "span cache",
    r"free_policy": "decay or purge",
}

# Idioms of older texts, and the plain words for them.
RETIRED_PHRASES = {
    r"for real": "significant",
    r"(told|tells?) (\w+ ){0,3}apart": "distinguished",
    r"front doors?": "entry points",
    r"last words": "final message",
    r"the house": "the allocator",
    r"wrongdoers?|crimes?": "misuse",
    r"floors?(?!\()": "layer",
    r"births?|(new)?born": "initialisation",
    r"pretend(ed)?": "fake",
    r"in vain": "without success",
    r"at the price of": "what it costs",
    r"rides? on": "runs within",
    r"skipped with a line": "skipped, and the run says so",
    r"crates\.io": "the Rust registry",
    r"pypi\.org": "PyPI",
}
MOST_WORDS = 25
MOST_GUESSES = 30  # in the tuning table

CODE = (".c", ".h", ".cc")
SCRIPTS = (".py", ".sh")
FOLDERS = ("src", "include", "recorder", "bench", "tests", "lab", "tools", "docs", "python",
           "examples", "packaging")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")

Finding = tuple[int, str]


@dataclass
class File:
    """One file: its lines, and the same lines with comments and strings blanked."""

    root: Path
    path: str
    text: str
    code: list[str] = field(init=False)
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        self.lines = self.text.split("\n")[:-1]
        self.code = BLANKED.sub(blank, self.text).split("\n")[:-1]

    def is_in(self, *places: str) -> bool:
        return self.path.startswith(places)

    def identifiers(self) -> Iterator[tuple[int, str]]:
        for number, line in enumerate(self.code, 1):
            for word in re.findall(r"\b[A-Za-z_]\w*", line):
                yield number, word


BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)


def blank(match: re.Match[str]) -> str:
    return re.sub(r"[^\n]", " ", match.group())


def file_length(file: File) -> Iterator[Finding]:
    """A file has at most 500 lines, but for the one table of choices."""
    if len(file.lines) > 500 and not file.path.endswith("/tuning.h"):
        yield len(file.lines), "the file is longer than 500 lines"


def line_length(file: File) -> Iterator[Finding]:
    """A line has at most 100 columns."""
    for number, line in enumerate(file.lines, 1):
        if len(line) > 100:
            yield number, f"{len(line)} columns, at most 100"


def function_length(file: File) -> Iterator[Finding]:
    """A C function has at most 60 lines, from its name to its closing brace."""
    start = 0
    for number, line in enumerate(file.code, 1):
        if line.startswith("{"):
            start = number - 1
        elif re.match(r"\w.*\)\s*\{\s*$", line):
            start = number
        elif line.startswith("}") and start:
            if number - start + 1 > 60:
                yield start, f"{number - start + 1} lines, at most 60"
            start = 0


def head_comment(file: File) -> Iterator[Finding]:
    """A file opens with a comment: what it is, who owns it, who may call it."""
    lines = file.lines[1:] if file.text.startswith("#!") else file.lines
    if lines and not lines[0].startswith(("/*", "//", '"""', 'r"""', "# ")):
        yield 1, "the file does not open with a comment"


def conditional_code(file: File) -> Iterator[Finding]:
    """#if stands only in base/config.h, base/arch/, os/, and in include and C++ guards."""
    if file.is_in("src/base/config.h", "src/base/arch/", "src/os/"):
        return
    directives = [(number, line.split()) for number, line in
                  enumerate(re.sub(r"#[ \t]+", "#", "\n".join(file.code)).split("\n"), 1)
                  if line.lstrip().startswith("#")]
    for index, (number, words) in enumerate(directives):
        if words[0] not in ("#if", "#ifdef", "#ifndef", "#elif"):
            continue
        guard = index == 0 and file.path.endswith(".h") and words[0] == "#ifndef" \
            and directives[1][1][:2] == ["#define", words[1]]
        cplusplus = file.is_in("include/") and words == ["#ifdef", "__cplusplus"]
        if not guard and not cplusplus:
            yield number, f"{' '.join(words)}: make it a constant in base/config.h"


def only_the_os_folder_asks(file: File) -> Iterator[Finding]:
    """The environment is read, and the clock of the kernel asked, in src/os/ only."""
    if not file.is_in("src/os/"):
        for number, word in file.identifiers():
            if word in ("getenv", "secure_getenv", "environ", "__environ", "clock_gettime"):
                yield number, f"{word} belongs in src/os/"


def glossary(file: File) -> Iterator[Finding]:
    """Code uses the names of the glossary; options keep their public names."""
    table = file.root / options_doc.TABLE
    options = re.findall(r"^OPTION\((\w+)", table.read_text(), re.M) if table.exists() else []
    for number, word in file.identifiers():
        for retired, ours in RETIRED_NAMES.items():
            if word not in options and re.fullmatch(retired, word, re.IGNORECASE):
                yield number, f"{word} is called {ours} here"


def include_rank(file: File) -> Iterator[Finding]:
    """An include points to an equal or lower rank."""
    own = file.path.split("/")[1]
    if own not in RANKS:
        yield 1, f"{own} has no rank"
        return
    for number, line in enumerate(file.lines, 1):
        included = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        if not included or included.group(1) == "hakmem.h":
            continue
        other = included.group(1).split("/")[0]
        if other not in RANKS:
            yield number, f'"{included.group(1)}" has no rank: name the path from src/'
        elif RANKS[other] > RANKS[own]:
            yield number, f"{own} (rank {RANKS[own]}) may not include {other} ({RANKS[other]})"


DECLARES = [re.compile(pattern, re.MULTILINE) for pattern in (
    r"#\s*define\s+(\w+)", r"\bTUNE\((\w+)", r"\}[^;{}]*?\b(\w+)\s*;",
    r"\b(?:struct|enum|union)\s+(\w+)\s*\{", r"typedef[^;{]*?\b(\w+)\s*;", r"\(\*(\w+)\)",
    r"extern[^;(]*?\b(\w+)(?:\[[^\]]*\])*\s*;", r"^(?:[A-Za-z_][\w *]*?[\s*])?\s*(\w+)\(",
    r"^static[^;(=]*?\b(\w+)\s*=")]
CONSTANTS = re.compile(r"\benum\b[^{;]*\{([^}]*)\}")


@cache
def declared(header: Path) -> set[str]:
    """What a header declares, and maybe more; nothing where it only includes others."""
    code = BLANKED.sub(blank, header.read_text())
    found = {name for each in DECLARES for name in each.findall(code)}
    found |= {name for each in CONSTANTS.findall(code)
              for name in re.findall(r"(?:^|,)\s*(\w+)", each)}
    return found - set(re.findall(r"#ifndef (\w+)\n#define \1\n", code))


def unused_include(file: File) -> Iterator[Finding]:
    """A file uses something of each header of ours that it includes, but for its own header. One
    that includes and does nothing else chooses between headers."""
    words = {word for number, word in file.identifiers()
             if not re.match(r"\s*#\s*include", file.lines[number - 1])}
    if all(line.startswith("#") or not line.strip() for line in file.code):
        return
    for number, line in enumerate(file.lines, 1):
        found = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
        header = file.root / "src" / found[1] if found else None
        if header is None or found[1] == "base/types.h" or not header.exists() or \
                header == (file.root / file.path).with_suffix(".h"):
            continue
        if (names := declared(header)) and not names & words:
            yield number, f"nothing of {found[1]} is used"


def header_alone(file: File) -> Iterator[Finding]:
    """A header compiles alone, so it includes what it uses."""
    if not file.path.endswith(".h"):
        return
    command = ["cc", "-fsyntax-only", "-x", "c", "-std=c17", "-fasm", "-D_GNU_SOURCE",
               "-DOPTION(...)=", "-DWORD(...)=", "-DTEXT(...)=", "-Isrc", "-Iinclude", file.path]
    done = subprocess.run(command, cwd=file.root, capture_output=True, text=True)
    if done.returncode != 0:
        yield 1, next((line for line in done.stderr.splitlines() if "error:" in line), done.stderr)


NO_PROSE = re.compile(r"<!-- (?:figures:|made from).*?<!-- end.*?-->|<!--.*?-->"
                      r"|```.*?```|`[^`\n]*`", re.DOTALL)
NO_SENTENCE = re.compile(r"#|\||$| {4}")
ITEM = re.compile(r"\s*(?:[*-]|\d+\.) ")


def prose(file: File) -> list[str]:
    """The lines of a page; what is generated and what is code is `x`, line ends stay."""
    return NO_PROSE.sub(lambda match: "`x`" + "\n" * match.group().count("\n"),
                        file.text).split("\n")


def plain_words(file: File) -> Iterator[Finding]:
    """Pages and comments use plain technical English; RETIRED_PHRASES has what they do not."""
    is_page = file.path.endswith(".md")
    said = prose(file) if is_page else [comment_part(file, number)
                                        for number, _ in enumerate(file.lines, 1)]
    for number, line in enumerate(said, 1):
        for retired, plain in RETIRED_PHRASES.items():
            for found in re.finditer(rf"\b(?:{retired})\b", line, re.IGNORECASE):
                yield number, f'"{found.group()}": write "{plain}" or what it is'


def sentences(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    """Each sentence of a page's paragraphs and list items: its first line, its words."""
    first, words = 0, list[str]()
    for number, line in enumerate([*lines, ""], 1):
        item = ITEM.match(line)
        if words and (item or NO_SENTENCE.match(line.strip())):
            yield first, words
            words = []
        if NO_SENTENCE.match(line if not words and not item else line.strip()):
            continue
        for word in line[item.end() if item else 0:].split():
            first = first if words else number
            words.append(word)
            if re.search(r"[.!?][)*\"_]*$", word):
                yield first, words
                words = []


def short_sentences(file: File) -> Iterator[Finding]:
    """A sentence of a page has at most 25 words; tables, code and generated parts have none."""
    for number, words in sentences(prose(file)):
        count = sum(bool(re.search(r"\w", word)) for word in words)
        if count > MOST_WORDS:
            yield number, f"{count} words, at most {MOST_WORDS}: {' '.join(words[:6])} …"


def used_terms(file: File) -> Iterator[Finding]:
    """Each term that docs/glossary.md explains is used in the sources, the laboratory or docs."""
    if file.path != "docs/glossary.md":
        return
    users = [path for folder in ("src", "lab", "docs") for path in (file.root / folder).rglob("*")
             if path.suffix in CODE + SCRIPTS + (".md",) and path != file.root / file.path]
    used = " ".join(" ".join(path.read_text() for path in users).lower().replace("_", " ").split())
    for number, line in enumerate(file.lines, 1):
        for term in line.removeprefix("### ").split(", ") if line.startswith("### ") else ():
            if not re.search(rf"\b{re.escape(term.lower())}", used):
                yield number, f"nothing is called {term}"


PATH = re.compile(r"(?<![\w./*<{~:-])([A-Za-z_][\w.-]*(?:/[\w.-]+)+/?)(?![\w*<{…])")


def named_path(file: File) -> Iterator[Finding]:
    """A path of this repository that a comment or a page names exists."""
    tops = {folder for folder in FOLDERS if (file.root / folder).is_dir()}
    for number, line in enumerate(file.lines, 1):
        if line.lstrip().startswith("#include"):
            continue
        said = line if file.path.endswith(".md") else comment_part(file, number)
        for path in PATH.findall(said):
            path = path.rstrip(".-")
            first = path.split("/")[0]
            if first not in tops and not (first in RANKS and re.search(r"\.[ch]$", path)):
                continue
            places = (file.root, file.root / "src", file.root / "include", file.root / "docs")
            if not any(any(place.glob(path + ("" if "." in path else "*"))) for place in places):
                yield number, f"{path} does not exist"


def comment_part(file: File, number: int) -> str:
    """What BLANKED took out of a line: comments, and strings, which rarely look like a path."""
    code = file.code[number - 1]
    return "".join(now if then == " " else " " for now, then in zip(file.lines[number - 1], code))


def fresh_pages(root: Path) -> Iterator[tuple[str, int, str]]:
    """What is made of a table says what the table says."""
    def options(page: str, source: str) -> str:
        return options_doc.render(source, *(path.read_text() if path.exists() else "" for path in (
            root / options_doc.WORDS, root / options_doc.TEXTS)))

    makers = [(options_doc.TABLE, options_doc.PAGE, options, "options_doc"),
              (advice_doc.TABLE, advice_doc.PAGE, advice_doc.render, "advice_doc"),
              *((each.source, each.page, each.render, "tables") for each in tables.TABLES)]
    for source, page, render, tool in makers:
        if (root / source).exists() and (root / page).exists():
            text = (root / page).read_text(encoding="utf-8")
            if text != render(text, (root / source).read_text(encoding="utf-8")):
                yield page, 1, f"stale: run tools/{tool}.py"


def tuning(file: File) -> Iterator[Finding]:
    """Each number of the tuning table has an origin and a range. At most 30 are guesses."""
    if file.path != tuning_doc.TABLE:
        return
    rows = tuning_doc.rows(file.text)
    for number, line in enumerate(file.lines, 1):
        defined = re.match(r"(?:#define|TUNE\()\s*(\w+)[, ]", line)
        if defined and not rows.get(defined[1]):
            yield number, "no row: a comment with an origin, then TUNE with the range"
    guesses = sum(origin.startswith("guess") for origin in rows.values())
    if guesses > MOST_GUESSES:
        yield 1, f"{guesses} numbers are guesses, at most {MOST_GUESSES}"


def named_subjects(file: File) -> Iterator[Finding]:
    """No sentence of a comment begins with a word that points back at another sentence."""
    for comment in re.finditer(r"/\*.*?\*/", file.text, re.DOTALL):
        for begin in re.finditer(r"(?:/\*+|[.?!])[\s*]+(It|So|That|Those)\b", comment[0]):
            number = file.text.count("\n", 0, comment.start() + begin.start(1)) + 1
            yield number, f"'{begin[1]}' points at another sentence; name the subject"


def tools_show_by_one_function(file: File) -> Iterator[Finding]:
    """The commands write texts and tables by hakmem/foreign.py, which shows no escape codes."""
    if file.path == "python/hakmem/foreign.py":
        return
    for node in ast.walk(ast.parse(file.text)):
        if isinstance(node, ast.Name | ast.Attribute):
            name = ast.unparse(node)
            if re.search(r"^(pprint|sys\.std(out|err)\.\w*write\w*)$|\b(print|s?echo)$", name):
                yield node.lineno, f"{name}: use tell of hakmem/foreign.py"


def encodings(file: File) -> Iterator[Finding]:
    """The commands name the encoding of each text: that of the locale may lack characters."""
    for node in ast.walk(ast.parse(file.text)):
        if not isinstance(node, ast.Call) or any(word.arg == "encoding" for word in node.keywords):
            continue
        name = ast.unparse(node.func).split(".")[-1]
        given = [ast.unparse(each) for each in node.args]
        named = {word.arg: ast.unparse(word.value) for word in node.keywords}
        modes = [*given[:2], named.get("mode", "")]
        is_binary = any(re.fullmatch(r"'[rwxa+]*b[rwxa+]*'", mode) for mode in modes)
        is_text = name in ("read_text", "write_text") or name == "open" and not is_binary or \
            name.endswith("TemporaryFile") and any(re.fullmatch(r"'[rwxa+]+'", mode)
                                                   for mode in modes) or \
            {"text", "universal_newlines"} & named.keys()
        if is_text and ast.unparse(node.func) != "os.open":
            yield node.lineno, f"{name} without encoding="


RULES = (  # rule, where it holds, for which files
    (file_length, FOLDERS, CODE + SCRIPTS),
    (line_length, FOLDERS, CODE + SCRIPTS),
    (function_length, ("src", "include", "bench", "tests"), (".c", ".h")),
    (head_comment, FOLDERS, CODE + SCRIPTS),
    (conditional_code, ("src", "include"), CODE),
    (only_the_os_folder_asks, ("src",), CODE),
    (glossary, ("src",), CODE),
    (include_rank, ("src",), CODE),
    (header_alone, ("src", "include"), CODE),
    (unused_include, ("src",), CODE),
    (tuning, ("src",), (".h",)),
    (named_path, ("src", "include", "docs", "README.md", "CONTRIBUTING.md"), CODE + (".md",)),
    (plain_words, (*FOLDERS, *PAGES), (".md",)),
    (plain_words, ("src", "include", "tests"), CODE),
    (short_sentences, (*FOLDERS, *PAGES), (".md",)),
    (named_subjects, ("src", "include"), CODE),
    (used_terms, ("docs",), (".md",)),
    (tools_show_by_one_function, ("python",), (".py",)),
    (encodings, ("python",), (".py",)),
)


def files_of(root: Path) -> Iterator[File]:
    inside = [path for folder in FOLDERS for path in (root / folder).rglob("*")]
    for path in sorted([*root.glob("*.md"), *inside]):
        name = path.relative_to(root).as_posix()
        if path.suffix in CODE + SCRIPTS + (".md",) and path.is_file() and "/." not in name:
            yield File(root, name, path.read_text())


def check(root: Path) -> list[str]:
    """All violations in the tree, one line each."""
    found = []
    for file in files_of(root):
        for rule, places, suffixes in RULES:
            if file.path.split("/")[0] in places and file.path.endswith(suffixes):
                found += [f"{file.path}:{number}: {rule.__name__.replace('_', ' ')}: {text}"
                          for number, text in rule(file)]
    found += [f"{path}:{number}: fresh pages: {text}" for path, number, text in fresh_pages(root)]
    return found


if __name__ == "__main__":
    violations = check(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    print("\n".join(violations) or "tidy")
    sys.exit(1 if violations else 0)
