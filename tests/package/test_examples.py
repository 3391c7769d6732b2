"""The programs of examples/ compile by the command in their first comment and run on HAKMEM."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("TESTED_BUILD")
EXAMPLES = sorted((ROOT / "examples").glob("*.c*"))

pytestmark = pytest.mark.skipif(not BUILD, reason="TESTED_BUILD is not set")


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    if not shutil.which("pkg-config"):
        pytest.skip("no pkg-config")
    prefix = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", prefix], check=True,
                   capture_output=True)
    libraries = next(prefix.rglob("libhakmem.so")).parent
    return {**os.environ, "PKG_CONFIG_PATH": str(libraries / "pkgconfig"),
            "LD_LIBRARY_PATH": str(libraries), "LIBRARY_PATH": str(libraries),
            "CPATH": str(prefix / "include")}


@pytest.mark.parametrize("source", EXAMPLES, ids=lambda path: path.name)
def test_example(source, environment, tmp_path):
    if source.suffix == ".cpp" and not shutil.which("c++"):
        pytest.skip("no C++ compiler")
    command = re.search(r"^(?:// | \*)  +((?:cc|c\+\+) .*?) && (\./\S+)", source.read_text(),
                        re.MULTILINE)
    assert command, "the first comment says how it is compiled and run"
    shutil.copy(source, tmp_path)
    done = subprocess.run(f"{command[1]} && {command[2]}", shell=True, cwd=tmp_path,
                          env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done
    assert done.stdout
