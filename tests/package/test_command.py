"""The command `hakmem`, installed and of the Python package: statuses and the lines of errors."""
import os
import shutil
import subprocess
import sys

import pytest
from files import ROOT, clean_environment


@pytest.fixture(params=["installed", "package"])
def command(request, prefix, hakmem, tmp_path):
    """Runs it, by the script of `make install` and by the entry point of the wheel."""
    def run_installed(*words, **more):
        return subprocess.run([prefix / "bin/hakmem", *words], cwd=tmp_path, capture_output=True,
                              text=True, check=False, env=clean_environment(**more))

    return run_installed if request.param == "installed" else hakmem


@pytest.mark.parametrize(("words", "status", "line"), [
    (["run", "no-such-program"], 127, "no-such-program: there is no such program"),
    (["run", "./no-such-program"], 127, "./no-such-program: there is no such program"),
    (["leaks", "no-such-program"], 127, "no-such-program: there is no such program"),
    (["stat", "abc"], 1, "abc: there is no such process or file"),
    (["why", "abc"], 1, "abc: there is no such process or file"),
])
def test_what_is_not_there_is_told_in_one_line(command, words, status, line):
    done = command(*words)
    assert (done.returncode, done.stderr) == (status, f"hakmem: {line}\n")


@pytest.mark.parametrize(("words", "status", "said"), [
    (["run", "./text"], 126, ["./text"]),  # cannot be started
    (["run", "--nonesuch", "true"], 2, ["no option --nonesuch", "--help"]),
    # No program of coreutils is proposed: they close the stream that a report goes to.
    (["run", "mode=debug"], 2, ["try hakmem run python3 app.py"]),
    (["run", "nonesuch=1", "sh", "-c", "true"], 0,
     ["HAKMEM_NONESUCH is not an option", "hakmem-options(7)"]),
])
def test_what_is_wrong_is_told_with_what_helps(command, tmp_path, words, status, said):
    (tmp_path / "text").write_text("text\n")
    done = command(*words)
    assert done.returncode == status and all(part in done.stderr for part in said), done


def test_a_command_that_is_not_there_is_named(command):
    done = command("nonesuch")
    assert done.returncode == 2 and "nonesuch" in done.stderr and "--help" in done.stderr


def test_help_says_what_each_command_does(prefix):
    said = subprocess.run([prefix / "bin/hakmem", "--help"], capture_output=True, text=True,
                          check=True).stdout
    for name, does in (("leaks", "never frees"), ("why", "holds its memory"), ("tune", "options")):
        assert any(name in line.split()[:1] and does in line for line in said.splitlines()), said


def test_another_python_in_front_does_not_hide_the_distribution_s(prefix, tmp_path):
    """One that does not run."""
    if not os.path.exists("/usr/bin/python3"):
        pytest.skip("the distribution has no python3 here")
    (tmp_path / "python3").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "python3").chmod(0o755)
    done = subprocess.run([prefix / "bin/hakmem", "stat", "--help"], capture_output=True, text=True,
                          check=False, env=clean_environment(PATH=f"{tmp_path}:/usr/bin:/bin"))
    assert done.returncode == 0 and "HAKMEM_STATS" in done.stdout, done


@pytest.mark.parametrize("flag", ["--help", "-h"])
def test_run_tells_how_it_is_used(command, flag):
    done = command("run", flag)
    assert (done.returncode, done.stderr) == (0, "")
    assert "PROGRAM" in done.stdout and "NAME=VALUE sets an option" in done.stdout


@pytest.mark.parametrize("is_static", [True, False])
def test_a_static_program_is_told(prefix, compiled, is_static):
    program = compiled("int main(void) { return 3; }\n", *["-static"] * is_static)
    done = subprocess.run([prefix / "bin/hakmem", "run", program], check=False,
                          capture_output=True, text=True)
    assert done.returncode == 3 and ("it runs on its own malloc" in done.stderr) == is_static


def test_statistics_show_that_it_is_engaged(command):
    """By the line of the README."""
    line = "hakmem run stats=/tmp/s.json program && hakmem stat /tmp/s.json"
    assert line in (ROOT / "README.md").read_text()
    assert command("run", "stats=s.json", "sh", "-c", "true").returncode == 0
    done = command("stat", "s.json")
    assert done.returncode == 0 and "mapped" in done.stdout, done


def test_a_program_that_writes_over_its_environment_is_found(hakmem, compiled, library, tmp_path):
    """As redis and postgres do, which put a title there."""
    program = compiled("""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
extern char **environ;
int main(void)
{
    for (char **each = environ; *each; each++)
        memset(*each, 0, strlen(*each));
    for (int round = 0; round < 30; round++, usleep(100000))
        for (int size = 1; size < 9000; size += 16)
            *(char *)malloc(size) = 1;
    puts("written");
    fflush(stdout);
    return getchar();
}
""")
    with subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=clean_environment(LD_PRELOAD=library,
                                                HAKMEM_STATS=tmp_path / "%p.json")) as process:
        process.stdout.readline()
        done = hakmem("stat", str(process.pid))
        process.stdin.close()
    assert done.returncode == 0 and "mapped for blocks" in done.stdout, done


def test_who_has_no_binutils_is_told_what_names_need(command, compiled, tmp_path):
    """Once for a run, however many processes and stacks."""
    compiled("#include <stdlib.h>\nint main(void) {"
             "for (int i = 0; i < 9; i++) *(char *)malloc(1 << 20) = 1; }", "-O0", name="leak")
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
    environment = clean_environment(PATH=f"{prefix}/bin:{os.environ['PATH']}")

    def completed(*words):
        script = (f". {prefix}/share/bash-completion/completions/hakmem; COMP_WORDS=(\"$@\");"
                  "COMP_CWORD=$(($# - 1)); compopt() { :; }; _hakmem hakmem;"
                  "printf '%s\n' \"${COMPREPLY[@]}\"")
        return subprocess.run(["bash", "-c", script, "bash", "hakmem", *words], env=environment,
                              capture_output=True, text=True, check=True).stdout.split()

    assert {"run", "stat", "why", "leaks", "policy"} <= set(completed(""))
    assert completed("pro") == ["profile"]
    assert completed("profile", "--show", "al") == ["allocated"]
    assert completed("profile", "--js") == ["--json"]
    assert completed("profile", "--json", "--mean", "4", "--js") == ["--json"]
    assert "mode=checked" in completed("profile", "--json", "mo")
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
