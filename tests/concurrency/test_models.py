"""The models hold in every interleaving, their broken variants do not, and they mirror the code."""

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import models  # noqa: E402

needs_spin = pytest.mark.skipif(shutil.which("spin") is None or shutil.which("gcc") is None,
                                reason="spin or gcc is missing: the models are not checked")


def test_every_function_that_a_model_mirrors_is_there(tmp_path):
    assert models.gone() == []
    (tmp_path / "a.c").write_text("/* g(int a)\n{ */\nstatic int f(int a)\n{\n    return a;\n}\n")
    assert models.is_defined(tmp_path / "a.c", "f")
    assert not models.is_defined(tmp_path / "a.c", "g")


@needs_spin
def test_the_models_hold_and_their_broken_variants_do_not():
    verdicts = models.check()
    assert [verdict for verdict in verdicts if not verdict.is_right()] == []
    assert {verdict.model for verdict in verdicts if not verdict.variant} == \
        {"depot", "lock", "orphans", "publication", "purge",
         "span_cache"}
