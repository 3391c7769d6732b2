"""The Rust crate: its own tests, with the sources of this checkout; and its version is ours."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not os.environ.get("TESTED_BUILD"),
                                reason="TESTED_BUILD is not set")


def test_the_version_is_that_of_the_library():
    ours = re.search(r"project\(hakmem VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
    assert f'\nversion = "{ours}"\n' in (ROOT / "Cargo.toml").read_text()


def test_its_own_tests(tmp_path):
    if not shutil.which("cargo"):
        pytest.skip("no cargo")
    crate = tmp_path / "crate"
    for name in ("src", "include", "packaging/rust"):
        shutil.copytree(ROOT / name, crate / name)
    (crate / "tools").mkdir()
    for name in ("Cargo.toml", "LICENSE", "tools/prefix.sh"):
        shutil.copy(ROOT / name, crate / name)

    def cargo(*words):
        return subprocess.run(["cargo", *words], cwd=crate, capture_output=True, text=True,
                              check=False)

    if cargo("fetch").returncode != 0:
        pytest.skip("the Rust registry cannot be reached")
    done = cargo("test", "--offline", "--quiet")
    assert done.returncode == 0, done.stdout + done.stderr
