"""What README.md, docs/start.md and CONTRIBUTING.md tell a newcomer to type, in a clone with a home
and a prefix of its own. Each command has to end with status 0: lines of blocks, and code within the
text or a table that begins with a program of STARTS. A command that is not run here is a row of
ELSEWHERE, with the reason."""
import os
import re
import shutil
import subprocess

import pytest
from files import ROOT, clean_environment, copy_checkout, run

PAGES = ("README.md", "docs/start.md", "CONTRIBUTING.md")
STARTS = r"(make|apt|pip|cmake|hakmem|\./hakmem|cc|LD_PRELOAD=\S+|tools/\S+|ctest)( |$)"
ELSEWHERE = {  # the beginning of a command: why it is not run here
    "make check": "this is a test; continuous integration runs it on a bare machine",
    "make test": "this is a test, as are the targets whose names begin like this",
    "make soak": "half an hour",
    "make fuzz": "goes on until something is found",
    "make faults": "many minutes",
    "make site": "tests/site/test_site.py builds it",
    "make recipes": "tests/package/test_recipes.py makes them",
    "make docs": "tests/package/test_artifacts.py has them in the archive",
    "pip install .": "needs PyPI; tests/package/test_wheel.py does it",
    "tools/bare.sh": "makes a machine; continuous integration begins with it",
    "ctest --test-dir out -R name": "names no test",
    "make deb ARCHITECTURES": "tests/package/test_deb.py builds them",
}
NAMES = ("hakmem run", "./hakmem ab", "./hakmem history")  # of commands, within a sentence
# What stands for something of the reader's, and what a test cannot wait for.
INSTEAD = (
    ("/usr/local", "$PREFIX"), ("/tmp/", "$PREFIX/"), ("your-program", "program"),
    ("'your program and its arguments'", "program"), ("apt install", "apt-get install --simulate"),
    ("cc …", 'cc program.c -I"$PREFIX/include" -L"$PREFIX/lib"'),
    ("hakmem learn", "hakmem learn --minutes 0"),
    ("hakmem tune", "hakmem tune --minutes 0 --pairs 6"), ("compare --", "compare -n 2 --"),
    ("make run", "make run RUNS=2"),
)
NEEDS = {  # the beginning of a command: a need of tools/setup.sh that a page names for it
    "make deb": "debian", "apt install": "debian", "make run": "lab", "./hakmem": "lab",
    **dict.fromkeys(("hakmem profile", "hakmem leaks", "hakmem learn", "hakmem tune"), "cli"),
}
PROGRAM = """
#include <stdlib.h>
#include <unistd.h>
int main(void)
{
    const char *stats = getenv("HAKMEM_STATS");
    const int rounds = stats ? 20000 : 10; /* who asks for statistics looks for seconds */
    for (int round = 0; round < rounds; round++, usleep(1000))
        for (size_t size = 1; size < 90000; size += 999)
            free(malloc(size));
    return 0;
}
"""


BLOCK = re.compile(r"^```\n(?:.*\n)*?```$|^(?: {4}\S.*\n)+", re.MULTILINE)


def commands_of(page):
    """Those of blocks and of the text, without the remark behind."""
    for line in "\n".join(BLOCK.findall(page)).splitlines():
        if line and line != "```":
            yield re.split(r"\s{2,}#", line.strip())[0]
    for code in re.findall(r"`([^`]+)`", BLOCK.sub("", page)):
        command = " ".join(code.split())
        if re.match(STARTS, command) and " " in command and command not in NAMES:
            yield command


COMMANDS = list(dict.fromkeys(command for page in PAGES
                              for command in commands_of((ROOT / page).read_text())))


@pytest.fixture(scope="module")
def typed(tmp_path_factory):
    """typed(command) is what a shell in the clone says."""
    place = tmp_path_factory.mktemp("hour")
    clone, home, prefix = (place / name for name in ("clone", "home", "prefix"))
    copy_checkout(clone)
    git = ["git", "-C", clone, "-c", "user.name=A Name", "-c", "user.email=a@example.org"]
    run("git", "init", "-q", clone)
    run(*git, "add", "--all")
    run(*git, "commit", "-q", "-m", "As they are")
    if (ROOT / ".venv").exists():
        (clone / ".venv").symlink_to((ROOT / ".venv").resolve())
    home.mkdir()
    (clone / "program.c").write_text(PROGRAM)
    (clone / "app.py").write_text("print(sum(range(1000)))\n")
    (home / "bin").mkdir()
    run("cc", "-O1", "-o", home / "bin/program", clone / "program.c")
    environment = clean_environment(HOME=home, PREFIX=prefix, DEBFULLNAME="A Name",
                                    DEBEMAIL="a@example.org",
                                    PATH=f"{prefix}/bin:{home}/bin:{os.environ['PATH']}")
    for name in ("TESTED_LIBRARY", "TESTED_BUILD", "LIBHAKMEM", "MAKEFLAGS"):
        environment.pop(name, None)

    def type_it(command):
        return subprocess.run(["bash", "-c", command], cwd=clone, env=environment, check=False,
                              capture_output=True, text=True, stdin=subprocess.DEVNULL)

    def type_command(command):
        if not (prefix / "bin/hakmem").exists():
            done = type_it('make install PREFIX="$PREFIX"')
            assert done.returncode == 0, done.stdout + done.stderr
        return type_it(command)

    return type_command


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_pages_works(typed, command):
    for start, reason in ELSEWHERE.items():
        if command.startswith(start):
            pytest.skip(reason)
    need = next((NEEDS[start] for start in NEEDS if command.startswith(start)), "")
    if need and subprocess.run([ROOT / "tools/setup.sh", "--has", need], check=False).returncode:
        pytest.skip(f"no {need} here")
    if command.startswith("apt install ./out/deb"):
        assert typed("ls out/deb/*.deb || make deb").returncode == 0
    for words, others in INSTEAD:
        command = command.replace(words, others)
    done = typed(command)
    assert done.returncode == 0, (command, done.stdout[-2000:], done.stderr[-2000:])


def test_no_reason_outlives_its_command():
    assert [start for start in ELSEWHERE
            if not any(command.startswith(start) for command in COMMANDS)] == []


def test_the_lines_for_rust_compile(tmp_path):
    """The row of README.md as it stands."""
    if not shutil.which("cargo"):
        pytest.skip("no cargo")
    row, = re.findall(r"^\| Rust \| (.*) \|$", (ROOT / "README.md").read_text(), re.MULTILINE)
    dependency, manifest, line = re.findall(r"`([^`]+)`", row)
    assert manifest == "Cargo.toml"
    (tmp_path / "src").mkdir()
    (tmp_path / "Cargo.toml").write_text(
        '[package]\nname = "user"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
        + dependency.replace("…", str(ROOT)) + "\n")
    (tmp_path / "src/main.rs").write_text(line + '\nfn main() { println!("{:?}", vec![1]); }\n')
    done = subprocess.run(["cargo", "run", "--quiet", "--offline"], cwd=tmp_path, check=False,
                          capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[1]\n"), done.stderr
