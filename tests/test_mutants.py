"""tools/mutants.py: what it changes and what it leaves alone."""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tools"))
import mutants  # noqa: E402
from mutate import PAGE, explained  # noqa: E402

SOURCE = '''/* if (a < b) 1 + 1; */
#include "x.h"
#define LIMIT 8
static int f(const char *text, int b)
{
    int sum = 0;
    if (b < LIMIT && g(text, b))
        sum += 1;
    note("a < b", '9', b);
    return sum;
}
'''


def mutate(tmp_path):
    (tmp_path / "src").mkdir()
    path = tmp_path / "src" / "a.c"
    path.write_text(SOURCE)
    return list(mutants.mutants_of(tmp_path, path))


def test_each_kind_is_found_where_it_stands(tmp_path):
    found = {(mutant.kind, mutant.line, mutant.old, mutant.new) for mutant in mutate(tmp_path)}
    assert found == {
        ("constant", 3, "8", "9"), ("constant", 3, "8", "7"), ("constant", 6, "0", "1"),
        ("operator", 7, "<", "<="), ("operator", 7, "&&", "||"),
        ("condition", 7, "b < LIMIT && g(text, b)", "!(b < LIMIT && g(text, b))"),
        ("swapped", 7, "text, b", "b, text"),
        ("operator", 8, "+=", "-="), ("constant", 8, "1", "0"), ("constant", 8, "1", "2"),
        ("deleted", 8, "sum += 1;", ";"), ("deleted", 9, "note(\"a < b\", '9', b);", ";"),
    }


def test_a_mutant_names_the_text_that_it_replaces_and_keeps_the_lines(tmp_path):
    for mutant in mutate(tmp_path):
        end = mutant.offset + len(mutant.old)
        assert SOURCE[mutant.offset:end] == mutant.old
        assert (SOURCE[:mutant.offset] + mutant.new + SOURCE[end:]).count("\n") == \
            SOURCE.count("\n")


def test_a_seed_names_a_sample():
    assert mutants.sample(ROOT, 30, 1) == mutants.sample(ROOT, 30, 1)
    assert mutants.sample(ROOT, 30, 1) != mutants.sample(ROOT, 30, 2)
    assert len(set(mutants.sample(ROOT, 30, 1))) == 30


def test_a_listed_survivor_is_a_line_of_the_code():
    listed = sorted(explained())
    assert listed
    gone = [(name, old) for name, old, _ in listed
            if old not in map(str.strip, (ROOT / name).read_text().splitlines())]
    assert not gone, f"{PAGE.name} lists lines that are gone"
