"""Every misuse ends as expected.txt says: in SIGABRT and one exact line, or unseen.

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
MODES = ["balanced", "checked", "debug"]
GLIBC = "glibc"  # the C library's own malloc, of the version that expected.txt speaks of
WHENS = ["at once", "later", "never"]

pytestmark = pytest.mark.skipif(not LIBRARY, reason="TESTED_LIBRARY is not set")


def expectations():
    """(program, mode) -> (when, [lines]), in the order of the file."""
    table = {}
    for row in (FOLDER / "expected.txt").read_text(encoding="utf-8").splitlines():
        if not row or row.startswith("#"):
            continue
        program, mode, rest = row.split(" | ", 2)
        when, line = (part.strip() for part in rest.split("|"))
        assert mode in [*MODES, GLIBC] and when in WHENS, row
        table.setdefault((program, mode), (when, []))[1].append(line)
    return table


EXPECTED = expectations()


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """A function from flags to the program with every misuse, compiled once."""
    folder = tmp_path_factory.mktemp("misuse")

    def compile_once(*flags):
        executable = folder / "".join(["misuse", *flags])
        if not executable.exists():
            subprocess.run(["cc", "-std=c17", "-D_GNU_SOURCE", "-O0", "-g", "-w", "-fno-builtin",
                            *flags, *map(str, FOLDER.glob("*.c")), "-o", str(executable),
                            "-pthread", "-ldl"], check=True)
        return executable

    return compile_once


def run(executable, program, mode):
    """Runs it with the library preloaded and no other setting than the mode."""
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_"))}
    if mode != GLIBC:
        environment |= {"LD_PRELOAD": LIBRARY, "HAKMEM_MODE": mode}
    return subprocess.run([str(executable), program], env=environment, capture_output=True,
                          text=True, timeout=60, check=False)


def outcome(result):
    """When the misuse was stopped, as far as that shows from outside."""
    if result.returncode >= 0:
        return "never"
    return "later" if "survived" in result.stdout else "at once"


@pytest.mark.parametrize("flags", [[], ["-DWARM"]], ids=["cold", "warm"])
@pytest.mark.parametrize("program,mode", [row for row in EXPECTED if row[1] != GLIBC])
def test_misuse_is_named_and_stopped(compiled, program, mode, flags):
    if flags and program == "never_allocated":
        pytest.skip("in a warm program the next slot is a block in use")
    when, lines = EXPECTED[program, mode]
    result = run(compiled(*flags), program, mode)
    pointer = re.match(r"misuse (0x[0-9a-f]+)\n", result.stdout)
    assert pointer, result
    allowed = [line.replace("0x…", pointer.group(1)) + "\n" if line else "" for line in lines]
    assert result.stderr in allowed
    stopped_by = {"never": 0, "at once": -signal.SIGABRT if lines[0] else -signal.SIGSEGV,
                  "later": -signal.SIGABRT}
    assert result.returncode == stopped_by[when]
    assert WHENS.index(outcome(result)) <= WHENS.index(when)


@pytest.mark.skipif(os.confstr("CS_GNU_LIBC_VERSION") != "glibc 2.36",
                    reason="expected.txt has the rows of glibc 2.36")
@pytest.mark.parametrize("program,mode", [row for row in EXPECTED if row[1] == GLIBC])
def test_what_glibc_does_with_it(compiled, program, mode):
    assert outcome(run(compiled(), program, mode)) == EXPECTED[program, mode][0]


def test_the_default_stops_all_that_glibc_stops():
    stopped = {program for (program, mode), (when, _) in EXPECTED.items()
               if mode == GLIBC and when != "never"}
    missed = {program for program in stopped if EXPECTED[program, "balanced"][0] == "never"}
    # glibc remembers the last seven blocks of a size, the hit path looks at two: docs/hardening.md.
    assert missed == {"double_free_reused_later"}


def test_checked_mode_stops_every_bad_free_at_once():
    """What it does not: writing where no block is, which is no free."""
    late = {program for (program, mode), (when, _) in EXPECTED.items()
            if mode == "checked" and when != "at once"}
    assert late == {"write_behind_end", "write_behind_any", "write_behind_realloc",
                    "write_behind_in_group", "write_after_free", "write_behind_until_exit",
                    "write_after_free_until_exit"}


@pytest.mark.parametrize("mode", MODES)
def test_no_misuse_ends_in_silence(compiled, mode):
    result = run(compiled(), "no_misuse", mode)
    assert (result.returncode, result.stderr) == (0, "")


def test_every_program_is_expected():
    programs = {name for path in FOLDER.glob("*.c") for name in
                re.findall(r"^misuse\((\w+)\)", path.read_text(), re.MULTILINE)} - {"no_misuse"}
    assert {(program, mode) for program in programs for mode in [*MODES, GLIBC]} == set(EXPECTED)
