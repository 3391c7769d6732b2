"""Each rule of tests/tidy.py catches what it must, and is silent about a tidy tree."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import tidy
from tidy import options_doc, tables

ROOT = Path(__file__).resolve().parents[1]

OPTIONS = """/* Rows:
 *   OPTION(name, unit, min, max, minimal, debug, sentence)
 */
OPTION(front_gate, SWITCH, 0, 1, 1, 0,
       "one; "
       "two")
"""

WORDS = """/* Words. */
WORD(SWITCH, "off", 0)
WORD(SWITCH, "on", 1)
WORD(SWITCH, "no", 0)
"""

TUNING = """/* A. Rows. */
#ifndef T_H
#define T_H
#define TUNE(name, value, least, most) enum { name = (value) }
/* Blocks of a bin.
 * Origin: guess. */
TUNE(BIN_BLOCKS, 8, 1, 124);
#endif
"""

TIDY = {
    "README.md": "Start at `src/malloc.c`; see docs/ and `src/*.c`.\n",
    "docs/options.md": options_doc.render(OPTIONS, WORDS),
    "src/options/option_table.h": OPTIONS,
    "src/options/option_words.h": WORDS,
    "src/base/config.h": "/* A. */\n#ifndef C_H\n#define C_H\n#if X\n#endif\n#endif\n",
    "src/os/os_linux.c": "/* A. */\n#ifdef X\nint a = clock_gettime(getenv);\n#endif\n",
    "src/malloc.c": '/* See base/config.h. */\n#include "base/config.h"\n#include "hakmem.h"\n',
    "src/entry/init.c": '/* No getenv. */\n#include "site/advisor.h"\nint a = "environ";\n',
    "src/cache/bin.c": "/* A. */\nint front_gate = 1; // An option of that name.\n",
    "include/hakmem.h": "/* A. */\n#ifndef H\n#define H\n#ifdef __cplusplus\n#endif\n#endif\n",
    "python/hakmem/a.py": '"""A."""\nfile = open(a, "rb"), path.read_text(encoding="utf-8")\n'
                          'other = path.open("rb", 0), TemporaryFile(), os.open(a, 0)\n',
    "python/hakmem/foreign.py": '"""A."""\nprint(1)\n',
    "src/heap/a.h": "/* A. */\n#ifndef A_H\n#define A_H\nint a(void);\n#endif\n",
    "src/site/advisor.h": "/* A. */\n#ifndef L\n#define L\n#endif\n",
}

SIXTY_LINES = "/* A. */\nint f(void)\n{\n" + "\n" * 57 + "}\n\n"
LONG_FUNCTION = SIXTY_LINES + "int g(void) {\n" + "\n" * 59 + "}\n"

UNTIDY = [
    ("src/heap/span.c", "/* A. */\n" * 501, 501, "file length"),
    ("bench/a.c", "/* A. */\n// " + "x" * 98 + "\n", 2, "line length"),
    ("tests/a.c", LONG_FUNCTION, 63, "function length"),
    ("lab/a.sh", "#!/bin/sh\nls\n", 1, "head comment"),
    ("src/heap/span.h", "int a;\n", 1, "head comment"),
    ("src/heap/span.c", "/* A. */\n#if CHECKED\n#endif\n", 2, "conditional code"),
    ("src/heap/span.c", "/* A. */\n#  ifdef CHECKED\n#endif\n", 2, "conditional code"),
    ("src/heap/span.c", '/* A. */\nint a = getenv("A");\n', 2, "only the os folder asks"),
    ("src/heap/span.c", "/* A. */\nextern char **environ;\n", 2, "only the os folder asks"),
    ("src/heap/span.c", "/* A. */\nint a = clock_gettime(0);\n", 2, "only the os folder asks"),
    ("src/heap/span.c", "/* A. */\ntypedef int SuperSlab;\n", 2, "glossary"),
    ("src/heap/span.c", "/* A. */\nint tls_sll_head;\n", 2, "glossary"),
    ("src/heap/span.c", '/* A. */\n#include "slab/slab.h"\n', 2, "include rank"),
    ("src/slab/a.c", '/* A. */\n#include "site/advisor.h"\n', 2, "include rank"),
    ("src/heap/span.c", '/* A. */\n#include "span.h"\n', 2, "include rank"),
    ("src/attic/a.c", "/* A. */\n", 1, "include rank"),
    ("src/slab/a.c", '/* A. */\n#include "heap/a.h"\nint b = A;\n', 2, "unused include"),
    ("src/heap/span.h", "/* A. */\nsize_t a;\n", 1, "header alone"),
    ("src/heap/span.c", "/* See docs/missing.md. */\n", 1, "named path"),
    ("src/heap/span.c", "/* See slab/missing.h. */\n", 1, "named path"),
    ("docs/a.md", "# A\n\nLook into `src/attic/`.\n", 3, "named path"),
    ("docs/a.md", "# A\n\nIt is faster\nfor real.\n", 4, "plain words"),
    ("docs/a.md", "Two are not told\nmuch apart, `for real`: not Told Apart.\n", 2, "plain words"),
    ("include/hakmem.h", "/* Once, at birth. */\nint birth;\n", 1, "plain words"),
    ("README.md", f"Short.\n\n* {'word ' * 20}\n  {'word ' * 6}end.\n", 3, "short sentences"),
    ("docs/a.md", f"{'word ' * 5}. {'word ' * 12} `a b c` {'word ' * 13}\n", 1, "short sentences"),
    ("src/heap/span.c", "/* A. */\n/* A span is free.\n * It is old. */\n", 3, "named subjects"),
    ("docs/glossary.md", "### front gate, nowhere\nIt is.\n", 1, "used terms"),
    ("docs/options.md", "# Options\n", 1, "fresh pages"),
    ("src/options/tuning.h", TUNING.replace("Origin: guess", "A guess"), 7, "tuning"),
    ("src/options/tuning.h", TUNING.replace("TUNE(BIN_BLOCKS, 8, 1, 124);", "#define BIN_BLOCKS 8"),
     7, "tuning"),
    ("src/options/tuning.h", TUNING.replace("#endif\n", "".join(
        f"/* A.\n * Origin: guess. */\nTUNE(A{number}, 1, 1, 2);\n" for number in range(30))
        + "#endif\n"), 1, "tuning"),
    *((f"python/hakmem/{name}.py", f'"""A."""\n{text}\n', 2, "tools show by one function")
      for name, text in (("a", "print(1)"), ("b", "click.echo(1)"), ("c", "say = console.print"),
                         ("d", "sys.stderr.write(a)"))),
    *((f"python/hakmem/{name}.py", f'"""A."""\n{text}\n', 2, "encodings")
      for name, text in (("a", "path.write_text(a)"), ("b", "path.open()"), ("c", 'open(a, "w")'),
                         ("d", 'NamedTemporaryFile("w")'), ("e", "run(a, text=True)"))),
]


def write(root: Path, files: dict[str, str]) -> None:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)


def test_a_tidy_tree_has_no_violation(tmp_path: Path) -> None:
    write(tmp_path, TIDY)
    assert tidy.check(tmp_path) == []


@pytest.mark.parametrize("text", [
    f"| {'word ' * 30} |\n",
    f"```\n{'word ' * 30}for real\n```\n",
    f"    {'word ' * 30}\n",
    f"# {'word ' * 30}\n",
    f"<!-- figures: a -->\n\n{'word ' * 30}for real\n\n<!-- end of figures -->\n",
    f"<!-- made from a -->\n{'word ' * 30}for real\n<!-- end -->\n",
    f"Five words, and then: {'word ' * 21}\n\n{'word ' * 25}\n- {'word ' * 25}\n- {'word ' * 25}",
])
def test_code_tables_and_generated_parts_have_no_sentences(tmp_path: Path, text: str) -> None:
    write(tmp_path, TIDY | {"docs/a.md": text})
    assert tidy.check(tmp_path) == []


@pytest.mark.parametrize(("path", "text", "line", "rule"), UNTIDY)
def test_a_violation_is_found_where_it_is(
    tmp_path: Path, path: str, text: str, line: int, rule: str
) -> None:
    write(tmp_path, TIDY | {path: text})
    found = tidy.check(tmp_path)
    assert len(found) == 1, found
    assert found[0].startswith(f"{path}:{line}: {rule}: ")


def test_every_rule_is_exercised() -> None:
    names = {rule.__name__.replace("_", " ") for rule, _, _ in tidy.RULES}
    assert names | {"fresh pages"} == {rule for _, _, _, rule in UNTIDY}


def test_a_table_of_a_page_is_made_of_its_rows_and_nothing_else_of_the_page(tmp_path: Path) -> None:
    rows = "suite,hakmem,glibc\nfork,3 of 3,\n"
    page = ("# A\n\n<!-- made from tests/suites.csv -->\n\n| suite | hakmem | glibc |\n"
            "|---|---:|---:|\n| fork | 3 of 3 | – |\n\n<!-- end -->\n\nB.\n")
    table, = (each for each in tables.TABLES if each.source == "tests/suites.csv")
    assert table.render(page.replace("3 of 3", "2 of 3"), rows) == page
    write(tmp_path, TIDY | {table.source: rows, table.page: page})
    assert tidy.check(tmp_path) == []
    write(tmp_path, {table.source: rows.replace("3 of", "2 of")})
    assert tidy.check(tmp_path) == [f"{table.page}:1: fresh pages: stale: run tools/tables.py"]


def test_every_table_has_its_rows_and_its_place_in_the_page() -> None:
    for table in tables.TABLES:
        assert (ROOT / table.source).exists()
        place = rf"^<!-- made from {re.escape(table.source)} -->$.*?^<!-- end.*$"
        assert re.search(place, (ROOT / table.page).read_text(), re.MULTILINE | re.DOTALL), table


def test_the_options_page_shows_each_mode() -> None:
    row = "| `HAKMEM_FRONT_GATE` | one; two | on/off |  | on | off |"
    assert row in options_doc.render(OPTIONS, WORDS)
    assert "The default mode is `minimal`." in options_doc.render(OPTIONS, WORDS)


def test_the_options_page_shows_words_for_values() -> None:
    table = OPTIONS + 'OPTION(price, PRICE, 1, 9, 7, 2,\n       "three")\n'
    page = options_doc.render(table, WORDS + 'WORD(PRICE, "lean", 7)\n')
    assert "| three | ms of processor time | 1 – 9, lean = 7 | 7 | 2 |" in page


def test_the_options_are_exported_for_programs() -> None:
    exported = json.loads(options_doc.export(OPTIONS, WORDS))
    assert exported["modes"] == ["minimal", "debug"]
    assert exported["options"] == [{
        "name": "front_gate", "unit": "on/off", "numbers": False, "least": 0, "most": 1,
        "defaults": {"minimal": 1, "debug": 0}, "sentence": "one; two",
        "words": {"off": 0, "on": 1, "no": 0}}]


def test_the_bare_machine_has_what_the_first_page_names():
    """tools/bare.sh, the first step of continuous integration, reads it there."""
    script = (ROOT / "tools/bare.sh").read_text()
    words = re.search(r"^named=\$\(sed -n '(.*)' (docs/\S+)\)$", script, re.MULTILINE)
    found = subprocess.run(["sed", "-n", words[1], ROOT / words[2]], capture_output=True, text=True,
                           check=True).stdout
    assert found == "git, make, gcc and python3\n"
