"""The files of this checkout as they are, for tests that build from a copy of them; and commands
that have to succeed."""
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def copy_checkout(to, without=("bench/results/",)):
    """All files but the ignored ones, committed or not. Without a git repository the test skips."""
    if not (ROOT / ".git").exists() or not shutil.which("git"):
        pytest.skip("no git repository")
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                            cwd=ROOT, capture_output=True, text=True, check=False)
    assert listed.returncode == 0, listed.stderr
    for name in listed.stdout.split("\0"):
        if name and (ROOT / name).is_file() and not name.startswith(without):
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, to / name)


def run(*words, **more):
    """What the command writes. The test fails if the command does."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          check=False, **more)
    assert done.returncode == 0, (words, done.stdout[-3000:], done.stderr[-3000:])
    return done.stdout
