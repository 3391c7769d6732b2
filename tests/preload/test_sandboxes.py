"""A program that freed much confines itself, or is confined, as it could without the library.

What the machine does not allow with the C library's malloc either is skipped.
"""
import os
import pathlib
import re
import shutil
import tempfile

import pytest
from conftest import TESTS, succeeds

SOURCE = (TESTS / "preload" / "sandboxed.c").read_text(encoding="utf-8")
CASES = re.findall(r"^test\((\w+)\)", SOURCE, re.MULTILINE)
# What such filters forbid: to read how much memory there is, and to ask what is resident.
SETTINGS = {case: {"HAKMEM_PLAIN_SYSCALLS": 1} for case in CASES if "malloc_alone" in case}


def allowed(run, folder, *command):
    """Skips where the command fails with the C library's malloc."""
    result = run(*command, preload=None, before=lambda: os.chdir(folder("theirs")))
    if result.returncode:
        pytest.skip(f"not allowed on this machine: {result.stdout}{result.stderr}")


@pytest.fixture
def folder(tmp_path):
    def make(name):
        path = tmp_path / name
        path.mkdir(exist_ok=True)
        return path

    return make


@pytest.mark.parametrize("case", CASES)
def test_a_program_may(run, build, folder, case):
    program = build("sandboxed.c")
    if "bare_clone" not in case:
        allowed(run, folder, program, case)
    said = succeeds(run(program, case, before=lambda: os.chdir(folder("ours")),
                        **SETTINGS.get(case, {})))
    assert said.endswith(f"ok {case}\n")


@pytest.mark.parametrize("case", ["a_program_stays_alone", "a_user_namespace_is_made",
                                  "no_task_keeps_the_rights_that_the_library_drops"])
def test_a_program_with_the_archive_may(run, build, archive, folder, case):
    allowed(run, folder, build("sandboxed.c"), case)
    succeeds(run(build("sandboxed.c", archive, name="sandboxed_linked"), case, preload=None))


@pytest.fixture
def public(library, build):
    """Copies of the program and the library that any user may read."""
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        yield [pathlib.Path(shutil.copy(each, name)) for each in (build("sandboxed.c"), library)]


@pytest.mark.parametrize("case", ["a_program_stays_alone", "a_user_namespace_is_made",
                                  "landlock_binds_every_thread",
                                  "a_filter_against_threads_kills_nobody"])
@pytest.mark.parametrize("tool", [
    "setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all "
    "--no-new-privs",
    "bwrap --unshare-all --die-with-parent --ro-bind / / --proc /proc --dev /dev",
    "unshare --user --map-root-user --mount --pid --fork --mount-proc",
], ids=lambda text: text.split()[0])
def test_a_program_under_a_tool_may(run, public, folder, tool, case):
    """The tool itself has the library too."""
    if not shutil.which(tool.split()[0]):
        pytest.skip(f"no {tool.split()[0]} here")
    program, library = public
    allowed(run, folder, *tool.split(), program, case)
    said = succeeds(run(*tool.split(), program, case, preload=library))
    assert said.endswith(f"ok {case}\n")
