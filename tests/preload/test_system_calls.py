"""tests/system_calls.csv has the system calls that the library makes, and no others.

A call is the library's where a frame of it is on the stack; the clock of the vDSO hides the frames
behind it.
"""
import csv
import platform
import re
import subprocess

import pytest

from conftest import TESTS, clean_environment

with (TESTS / "system_calls.csv").open(encoding="utf-8") as table:
    ROWS = list(csv.DictReader(table))
EVERYWHERE = {"start", "heap", "threads", "seldom"}
CALL = re.compile(r"\d+ +(?:<\.\.\. )?(\w+)(?:\(| resumed)")
OURS = re.compile(r" > \S*(libhakmem|\[vdso\])")


@pytest.fixture
def seen(shipped, build, tmp_path):
    """seen(kind): the calls of the library in the part of calls.c that has the name."""
    log = tmp_path / "calls"
    strace = ["strace", "-f", "-k", "-qq", "-e", "signal=none", "-o", log]
    try:
        subprocess.run([*strace, "true"], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("no strace here that shows stacks")
    if platform.machine() != "x86_64" or " > " not in log.read_text():
        pytest.skip("the table has the names of x86-64, and strace has to show stacks")

    def run(kind, **settings):
        with (tmp_path / "errors").open("w") as errors:
            subprocess.run([*strace, "-E", f"LD_PRELOAD={shipped}", build("calls.c"), kind],
                           stdout=subprocess.PIPE, stderr=errors, check=False, timeout=300,
                           env=clean_environment(**settings))
        calls = set()
        call = None
        for line in log.read_text().splitlines():
            found = CALL.match(line)
            call = found[1] if found else call
            if OURS.match(line):
                calls.add(call)
        return calls

    return run


def settings_of(part, folder):
    return {"messages": {"HAKMEM_UNKNOWN": 1}, "background": {"HAKMEM_BACKGROUND": 1},
            "files": {f"HAKMEM_{name}": folder / name for name in ("STATS", "PROFILE")},
            }.get(part, {})


@pytest.mark.parametrize("plain", [False, True], ids=["default", "plain"])
@pytest.mark.parametrize("part", ["start", "heap", "threads", "messages", "files", "background"])
def test_the_table_has_the_calls(seen, tmp_path, part, plain):
    listed = [row for row in ROWS if not plain or row["plain"]]
    calls = seen(part, HAKMEM_PLAIN_SYSCALLS=int(plain), **settings_of(part, tmp_path))
    assert calls <= {row["call"] for row in listed if row["part"] in EVERYWHERE | {part}}
    assert calls >= {row["call"] for row in listed if row["part"] == part}
