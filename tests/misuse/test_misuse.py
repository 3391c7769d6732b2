"""Every crime ends in SIGABRT and in the exact line that expected.txt quotes.

TESTED_LIBRARY names the library to preload; without it everything here is skipped.
"""
import os
import pathlib
import re
import signal
import subprocess

import pytest

FOLDER = pathlib.Path(__file__).parent
LIBRARY = os.environ.get("TESTED_LIBRARY")
MODES = ["minimal", "debug"]

pytestmark = pytest.mark.skipif(not LIBRARY, reason="TESTED_LIBRARY is not set")


def expectations():
    """(program, mode) -> (when, [lines]), in the order of the file."""
    table = {}
    for row in (FOLDER / "expected.txt").read_text(encoding="utf-8").splitlines():
        if not row or row.startswith("#"):
            continue
        program, mode, when, line = row.split(" | ")
        assert mode in MODES and when in ("at once", "by trim"), row
        table.setdefault((program, mode), (when, []))[1].append(line)
    return table


EXPECTED = expectations()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A function from a program's name to its executable, compiled once."""
    folder = tmp_path_factory.mktemp("misuse")

    def compile_once(program):
        executable = folder / program
        if not executable.exists():
            subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O0", "-g", "-w", "-fno-builtin",
                            str(FOLDER / f"{program}.c"), "-o", str(executable),
                            "-pthread", "-ldl"], check=True)
        return executable

    return compile_once


def run(executable, mode):
    """Runs it with the library preloaded and no other setting than the mode."""
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_"))}
    environment |= {"LD_PRELOAD": LIBRARY, "HAKMEM_MODE": mode}
    return subprocess.run([str(executable)], env=environment, capture_output=True, text=True,
                          timeout=60, check=False)


@pytest.mark.parametrize("program,mode", EXPECTED)
def test_crime_is_named_and_stopped(compiled, program, mode):
    when, lines = EXPECTED[program, mode]
    result = run(compiled(program), mode)
    pointer = re.match(r"crime (0x[0-9a-f]+)\n", result.stdout)
    assert pointer, result
    allowed = [line.replace("0x…", pointer.group(1)) + "\n" for line in lines]
    assert result.stderr in allowed
    assert result.returncode == -signal.SIGABRT
    if when == "at once":
        assert "survived" not in result.stdout


@pytest.mark.parametrize("mode", MODES)
def test_no_crime_ends_in_silence(compiled, mode):
    result = run(compiled("no_crime"), mode)
    assert (result.returncode, result.stderr) == (0, "")


def test_every_program_is_expected():
    programs = {path.stem for path in FOLDER.glob("*.c")} - {"no_crime"}
    assert programs == {program for program, _ in EXPECTED}
