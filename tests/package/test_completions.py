"""What shells complete after `hakmem`."""
import shutil
import subprocess
from pathlib import Path

import pytest

pytest.importorskip("click")
import completions  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / completions.FOLDER
COMMANDS = {"run", "stat", "top", "why", "profile", "leaks", "trace", "learn", "tune", "policy"}


def bash(*words):
    """As bash splits them: = is a word of its own."""
    script = (f". {FOLDER}/hakmem.bash; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1));"
              "compopt() { :; }; _hakmem; printf '%s\\n' \"${COMPREPLY[@]}\"")
    return subprocess.run(["bash", "-c", script, "bash", "hakmem", *words], capture_output=True,
                          text=True, check=True).stdout.split()


def fish(line):
    if not shutil.which("fish"):
        pytest.skip("no fish")
    done = subprocess.run(["fish", "--no-config", "-c", f"source {FOLDER}/hakmem.fish; "
                           f"complete -C '{line}'"], capture_output=True, text=True, check=True)
    return [row.split("\t")[0] for row in done.stdout.splitlines()]


def test_they_are_of_the_commands_and_options_that_there_are():
    for path, text in completions.made().items():
        assert (ROOT / path).read_text() == text, "stale: run tools/completions.py"


def test_bash_completes_commands_options_and_values():
    assert COMMANDS <= set(bash(""))
    assert bash("pro") == ["profile"]
    assert bash("profile", "--sh") == ["--show"]
    assert bash("profile", "--show", "al") == ["allocated"]
    assert "mode=" in bash("run", "mo") and "HAKMEM_MODE" not in bash("run", "")
    assert bash("run", "mode", "=", "ch") == ["checked"]
    assert bash("run", "HAKMEM_MODE", "=", "d") == ["debug"]
    assert set(bash("run", "junk", "=")) == {"on", "off"}
    assert "cat" in bash("run", "mode", "=", "checked", "ca")
    assert "cat" in bash("run", "--", "ca")
    assert bash("run", "cat", "mo") == []
    assert bash("policy", "me") == ["merge"]
    assert "1" in bash("stat", "1")


def test_fish_completes_commands_options_and_values():
    assert COMMANDS <= set(fish("hakmem "))
    assert "mode=checked" in fish("hakmem run mode=")
    assert fish("hakmem profile --show al") == ["allocated"]
    assert "merge" in fish("hakmem policy ")


def test_zsh_takes_its_file():
    if not shutil.which("zsh"):
        pytest.skip("no zsh")
    subprocess.run(["zsh", "-n", FOLDER / "_hakmem"], check=True)
