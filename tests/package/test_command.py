"""The command `hakmem`, installed and of the Python package: statuses and the lines of errors."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = os.environ.get("TESTED_BUILD")

pytestmark = pytest.mark.skipif(not BUILD, reason="TESTED_BUILD is not set")


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    place = tmp_path_factory.mktemp("installed")
    subprocess.run(["cmake", "--install", BUILD, "--prefix", place], check=True,
                   capture_output=True)
    return place


@pytest.fixture(params=["installed", "package"])
def command(request, prefix, tmp_path):
    """Runs it, by the script of `make install` and by the entry point of the wheel."""
    started = [prefix / "bin/hakmem"]
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_", "PYTHON"))}
    if request.param == "package":
        started = [sys.executable, "-B", "-m", "hakmem.command"]
        environment |= {"PYTHONPATH": str(ROOT / "python"),
                        "LIBHAKMEM": os.environ["TESTED_LIBRARY"]}

    def run(*words, **more):
        return subprocess.run([*started, *words], cwd=tmp_path, capture_output=True, text=True,
                              check=False, env={**environment, **more})

    return run


def test_a_program_that_is_not_there_is_127(command):
    for name in ("no-such-program", "./no-such-program"):
        done = command("run", name)
        assert (done.returncode, done.stderr) == (
            127, f"hakmem: {name}: there is no such program\n")
    done = command("leaks", "no-such-program")
    assert (done.returncode, done.stderr) == (
        127, "hakmem: no-such-program: there is no such program\n")


def test_a_program_that_cannot_be_started_is_126(command, tmp_path):
    (tmp_path / "text").write_text("text\n")
    done = command("run", "./text")
    assert done.returncode == 126 and "./text" in done.stderr


def test_a_static_program_is_told(prefix, tmp_path):
    (tmp_path / "program.c").write_text("int main(void) { return 3; }\n")
    for name, flags in (("static", ["-static"]), ("dynamic", [])):
        subprocess.run(["cc", *flags, tmp_path / "program.c", "-o", tmp_path / name], check=True)
        done = subprocess.run([prefix / "bin/hakmem", "run", tmp_path / name], check=False,
                              capture_output=True, text=True)
        assert done.returncode == 3 and ("it runs on its own malloc" in done.stderr) == \
            (name == "static")


def test_run_tells_how_it_is_used(command):
    for words in (["--help"], ["-h"]):
        done = command("run", *words)
        assert (done.returncode, done.stderr) == (0, "")
        assert "PROGRAM" in done.stdout and "NAME=VALUE sets an option" in done.stdout


def test_an_option_that_run_does_not_have_is_named(command):
    done = command("run", "--nonesuch", "true")
    assert done.returncode == 2
    assert "no option --nonesuch" in done.stderr and "--help" in done.stderr


def test_no_program_is_answered_with_one_that_can_say_something(command):
    """No program of coreutils, which close the stream that a report goes to."""
    done = command("run", "mode=debug")
    assert done.returncode == 2 and "try hakmem run python3 app.py" in done.stderr


def test_neither_process_nor_file(command):
    for name in ("stat", "why"):
        done = command(name, "abc")
        assert (done.returncode, done.stderr) == (
            1, "hakmem: abc: there is no such process or file\n")


def test_statistics_show_that_it_is_engaged(command):
    """By the line of the README."""
    line = "hakmem run stats=/tmp/s.json program && hakmem stat /tmp/s.json"
    assert line in (ROOT / "README.md").read_text()
    assert command("run", "stats=s.json", "sh", "-c", "true").returncode == 0
    done = command("stat", "s.json")
    assert done.returncode == 0 and "mapped" in done.stdout, done


def test_an_unknown_option_of_the_library_is_told_with_its_manual_page(command):
    done = command("run", "nonesuch=1", "sh", "-c", "true")
    assert done.returncode == 0
    assert "HAKMEM_NONESUCH is not an option" in done.stderr
    assert "hakmem-options(7)" in done.stderr


def test_who_has_no_binutils_is_told_what_names_need(command, tmp_path):
    """Once for a run, however many processes and stacks."""
    if not shutil.which("cc"):
        pytest.skip("no compiler")
    (tmp_path / "leak.c").write_text("#include <stdlib.h>\nint main(void) {"
                                     "for (int i = 0; i < 9; i++) *(char *)malloc(1 << 20) = 1; }")
    subprocess.run(["cc", "-O0", "leak.c", "-o", "leak"], cwd=tmp_path, check=True)
    (tmp_path / "bin").mkdir()
    for name in ("sh", "env", "dirname", "readlink", "tr"):
        (tmp_path / "bin" / name).symlink_to(shutil.which(name))
    (tmp_path / "bin/python3").write_text(f"#!/bin/sh\nexec {sys.executable} \"$@\"\n")
    (tmp_path / "bin/python3").chmod(0o755)
    for words in (("leaks",), ("profile", "--mean", "1")):
        told = [command(*words, "./leak", PATH=path).stderr.count("install binutils")
                for path in (str(tmp_path / "bin"), os.environ["PATH"])]
        assert told == [1, 0 if shutil.which("addr2line") else 1], words


def test_tools_leave_no_compiled_module(command, prefix):
    assert command("stat", "--help").returncode == 0
    assert not list(prefix.rglob("__pycache__"))


def test_bash_completes_commands_settings_and_values(prefix):
    """As bash splits them: = is a word of its own."""
    environment = {name: text for name, text in os.environ.items()
                   if not name.startswith(("HAKMEM_", "LD_", "PYTHON"))}
    environment["PATH"] = f"{prefix}/bin:{environment['PATH']}"

    def completed(*words):
        script = (f". {prefix}/share/bash-completion/completions/hakmem; COMP_WORDS=(\"$@\");"
                  "COMP_CWORD=$(($# - 1)); compopt() { :; }; _hakmem_completion hakmem;"
                  "printf '%s\n' \"${COMPREPLY[@]}\"")
        return subprocess.run(["bash", "-c", script, "bash", "hakmem", *words], env=environment,
                              capture_output=True, text=True, check=True).stdout.split()

    assert {"run", "stat", "why", "leaks", "policy"} <= set(completed(""))
    assert completed("pro") == ["profile"]
    assert completed("profile", "--show", "al") == ["allocated"]
    assert completed("policy", "me") == ["merge"]
    assert {"mode=", "mode=checked"} <= set(completed("run", "mo"))
    assert {"mode=", "limit_mb=", "stats="} <= set(completed("run", ""))
    assert completed("run", "mode", "=", "ch") == ["checked"]
    assert completed("run", "HAKMEM_MODE", "=", "d") == ["debug"]
    assert set(completed("run", "junk", "=")) == {"on", "off"}
    assert "cat" in completed("run", "mode", "=", "checked", "ca")
    assert "cat" in completed("run", "--", "ca")
    assert completed("run", "cat", "mo") == []
    assert "1" in completed("stat", "1")
