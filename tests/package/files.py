"""The files of this checkout as they are, for tests that build from a copy of them; programs that
say whose malloc serves them; and commands that have to succeed."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
VERSION = re.search(r"project\(hakmem VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text())[1]
# Status 0: malloc is ours.
LINKED = """
#include <stdlib.h>
#include <hakmem.h>
int main(void) { return !hakmem_owns(malloc(100)); }
"""
# The same of a program that is not compiled for it, and prints the answer.
UNAWARE = """
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
bool hakmem_owns(const void *ptr) __attribute__((weak));
int main(void)
{
    const bool is_ours = hakmem_owns != NULL && hakmem_owns(strdup("malloc is not named here"));
    puts(is_ours ? "ours" : "not");
    return !is_ours;
}
"""
# Loses a block of 1,234 bytes.
LEAKING = """
#include <stdlib.h>
void *kept;
__attribute__((noinline)) static void inner(void) { kept = malloc(1234); kept = 0; }
__attribute__((noinline)) void outer(void) { inner(); __asm__ volatile(""); }
int main(void) { outer(); return 0; }
"""


def clean_environment(**settings):
    """This process's environment without our variables, the loader's or Python's, plus the
    settings."""
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_", "PYTHON"))}
    return environment | {name: str(text) for name, text in settings.items()}


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
