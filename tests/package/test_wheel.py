"""The Python package: a wheel is built from this checkout, and its command runs a program."""
import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(not os.environ.get("TESTED_BUILD"),
                                reason="TESTED_BUILD is not set")


def test_the_wheel_runs_a_program(tmp_path):
    place = tmp_path / "environment"
    try:
        venv.create(place, with_pip=True)
    except subprocess.CalledProcessError:
        pytest.skip("this Python has no ensurepip")
    pip = [place / "bin/python", "-m", "pip", "--disable-pip-version-check"]
    fetched = subprocess.run([*pip, "install", "-q", "scikit-build-core>=0.10", "ninja"],
                             capture_output=True, text=True, check=False)
    if fetched.returncode != 0:
        pytest.skip("PyPI cannot be reached")
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_", "PYTHON"))}
    environment["PATH"] = f"{place / 'bin'}:{environment['PATH']}"
    done = subprocess.run([*pip, "install", "-q", "--no-build-isolation", ROOT], env=environment,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    said = subprocess.run([place / "bin/hakmem", "run", "mode=balanced", "--", place / "bin/python",
                           "-c", "import os; print(os.environ['HAKMEM_MODE'], 'libhakmem' in "
                           "open('/proc/self/maps').read())"],
                          env=environment, capture_output=True, text=True, check=False)
    assert (said.returncode, said.stdout) == (0, "balanced True\n"), said.stderr
    version = subprocess.run([place / "bin/hakmem", "--version"], env=environment,
                             capture_output=True, text=True, check=True).stdout
    assert version.startswith("hakmem ") and sys.version_info >= (3, 8)
