"""One-token mutants of the C sources, for tools/mutate.py: what they are, and a sample of them.

Operators that take the other side, constants one off, statements left out, conditions turned round,
arguments that change places. Comments, strings, attributes and static assertions stay as they are.
"""

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SWAPS = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "&&": "||",
         "||": "&&", "+": "-", "-": "+", "<<": ">>", ">>": "<<", "&": "|", "|": "&", "+=": "-=",
         "-=": "+=", "++": "--", "--": "++", "|=": "&=", "true": "false", "false": "true"}
BLANKED = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|'
                     r"^[ \t]*#[ \t]*(?:include|if|ifdef|ifndef|elif|else|endif|error)\b[^\n]*|"
                     r"_Static_assert\([^;]*;|__attribute__\(\([^\n]*\)\)", re.DOTALL | re.M)
# A binary operator stands between blanks here (clang-format), ++ and -- at a name.
OPERATOR = re.compile(r"(?<= )(?:<<|>>|<=|>=|==|!=|&&|\|\||\+=|-=|\|=|[<>+\-&|])(?= )|\+\+|--|"
                      r"\b(?:true|false)\b")
NUMBER = re.compile(r"(?<![\w.])(?:0[xX][0-9a-fA-F]+|\d+)(?![\w.])")
CONDITION = re.compile(r"\b(?:if|while) \((?=.*\))")
# A call or an assignment that fills its lines; no declaration, which could not go without its uses.
STATEMENT = re.compile(r"(?m)^ +(?!return|else|for|while|if|do|switch)"
                       r"(?:(?:\(void\))?\w+\([^;{}]*\)|[*\w][\w.>\[\]-]*"
                       r"(?: [-+|&]?= [^;{}]*|\+\+|--));[ ]*$")
CALL = re.compile(r"\b(?!if|while|for|sizeof|return)\w+\(([^(),;{}]+), ([^(),;{}]+)\)")
PARAMETER = re.compile(r"\b\w+ \**\w+\b")  # a declaration's, not a call's


@dataclass(frozen=True)
class Mutant:
    """One change: `old` at `offset` of the file becomes `new`."""

    path: str
    line: int
    offset: int
    kind: str
    old: str
    new: str
    before: str  # the line, stripped
    after: str

    def name(self) -> str:
        return f"{self.path}:{self.line} {self.kind}: {self.before}  =>  {self.after}"


def closing(code: str, start: int) -> int:
    """The index behind the parenthesis that closes the one before `start`."""
    depth = 1
    while depth and start < len(code):
        depth += {"(": 1, ")": -1}.get(code[start], 0)
        start += 1
    return start


def changes(code: str) -> Iterator[tuple[str, int, int, str]]:
    """Kind, start, end and new text of every change of a file whose comments are blanks."""
    for match in OPERATOR.finditer(code):
        yield "operator", match.start(), match.end(), SWAPS[match.group()]
    for match in NUMBER.finditer(code):
        text = match.group().rstrip("uUlL")
        value = int(text, 8 if re.fullmatch("0[0-7]+", text) else 0)
        for new in {value + 1, max(value - 1, 0)} - {value}:
            yield "constant", match.start(), match.end(), str(new)
    for match in CONDITION.finditer(code):
        end = closing(code, match.end())
        if (condition := code[match.end():end - 1]) not in ("true", "false"):
            yield "condition", match.end(), end - 1, f"!({condition})"
    for match in STATEMENT.finditer(code):
        start = match.start() + len(match.group()) - len(match.group().lstrip())
        yield "deleted", start, match.end(), "\n" * match.group().count("\n") + ";"
    for match in CALL.finditer(code):
        first, second = match.groups()
        if not PARAMETER.search(first + "," + second) and first.strip() and second.strip():
            yield "swapped", match.start(1), match.end(2), f"{second}, {first}"


def mutants_of(root: Path, path: Path) -> Iterator[Mutant]:
    text = path.read_text()
    code = BLANKED.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)
    for kind, start, end, new in changes(code):
        head = text.rfind("\n", 0, start) + 1
        tail = text.find("\n", end)
        before = " ".join(text[head:tail].split())
        after = " ".join((text[head:start] + new + text[end:tail]).split())
        yield Mutant(str(path.relative_to(root)), text.count("\n", 0, start) + 1, start, kind,
                     text[start:end], new, before, after)


def sample(root: Path, count: int, seed: int) -> list[Mutant]:
    """Any mutant of the sources is as likely as any other; code of the other processor has none."""
    paths = sorted(path for path in (root / "src").rglob("*.[ch]") if "aarch64" not in path.parts)
    everything = [mutant for path in paths for mutant in mutants_of(root, path)]
    return random.Random(seed).sample(everything, min(count, len(everything)))
