"""What tests of the command `hakmem` share."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))


@pytest.fixture
def hakmem(tmp_path):
    """Runs the command with the library that is tested, in the folder of the test."""
    library = os.environ.get("TESTED_LIBRARY")
    if not library:
        pytest.skip("TESTED_LIBRARY is not set")
    environment = {**os.environ, "LIBHAKMEM": str(Path(library).resolve()),
                   "PYTHONPATH": str(ROOT / "python")}

    def run(*words):
        return subprocess.run([sys.executable, "-m", "hakmem.command", *words], cwd=tmp_path,
                              env=environment, capture_output=True, text=True, check=False)

    return run
