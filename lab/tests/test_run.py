"""`hakmem_lab run`: what it shows, and the one line it says when it cannot measure."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from hakmem_lab import compare, runner

HOLDS_20_MIB = "import time; held = b'1' * (20 << 20); time.sleep(0.2)"


def lab(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "hakmem_lab", "run", "-n", "1", "--", *arguments],
                          capture_output=True, text=True, check=False)


def test_the_table_has_a_row_for_each_figure() -> None:
    done = lab("python3", "-c", "print('[/] is no markup')")
    assert done.returncode == 0, done.stderr
    for word in ("[/] is no markup", "time", "CPU", "peak RSS", "page faults"):
        assert word in done.stdout


def test_the_peak_is_the_programs_own() -> None:
    """The parent's own peak, which the kernel lets a child inherit, is larger."""
    parent = b"1" * (64 << 20)
    with open(os.devnull, "w+b") as output:
        measured = runner.run(["python3", "-c", HOLDS_20_MIB], dict(os.environ), output,
                              lambda pid: None)
    assert len(parent) > measured.peak_rss_bytes > 20 << 20


@pytest.mark.parametrize(("command", "said"), [
    (["no-such-program"], "no-such-program: no such program"),
    (["sh", "-c", "kill -SEGV $$"], "died of SIGSEGV on system malloc"),
    (["sh", "-c", 'test -z "$LD_PRELOAD" || { echo boom; exit 3; }'],
     "exited with 3 on HAKMEM: boom"),
])
def test_a_failure_is_one_line(command: list[str], said: str) -> None:
    done = lab(*command)
    assert done.returncode == 1
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_static_program_is_refused(tmp_path: Path) -> None:
    source, program = tmp_path / "a.c", tmp_path / "a"
    source.write_text("int main(void) { return 0; }\n")
    subprocess.run(["cc", "-static", "-o", program, source], check=True)
    assert "statically linked" in lab(str(program)).stderr


def test_the_library_is_seen_in_the_process() -> None:
    library = Path(os.environ["TESTED_LIBRARY"])
    with tempfile.TemporaryFile() as output:
        subject = compare.Subject(["sleep", "0.1"], library, output)
        subject.run(compare.SYSTEM)
        assert not subject.engaged
        subject.run(compare.HAKMEM)
        assert subject.engaged
