"""The models hold in every interleaving, their broken variants do not, and they mirror the code."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models  # noqa: E402

needs_spin = pytest.mark.skipif(shutil.which("spin") is None or shutil.which("gcc") is None,
                                reason="spin or gcc is missing: the models are not checked")


def test_the_models_mirror_the_code_of_today():
    assert models.changed() == []


def test_every_function_that_is_mirrored_is_found():
    assert [key for key, value in models.hashes().items() if value == "gone"] == []


def test_a_changed_function_is_noticed(tmp_path):
    source = tmp_path / "a.c"
    source.write_text("static int f(int a)\n{\n    return a; /* one */\n}\n")
    before = models.function_hash(source, "f")
    source.write_text("static int f(int a)\n{\n    return a; /* two */\n}\n")
    assert models.function_hash(source, "f") == before
    source.write_text("static int f(int a)\n{\n    return a + 1;\n}\n")
    assert models.function_hash(source, "f") != before
    assert models.function_hash(source, "g") == "gone"


@needs_spin
def test_the_models_hold_and_their_broken_variants_do_not():
    verdicts = models.check()
    assert [verdict for verdict in verdicts if not verdict.is_right()] == []
    assert {verdict.model for verdict in verdicts if not verdict.variant} == \
        {"depot", "idle_cache", "lock", "orphans", "publication", "purge", "span_cache"}
