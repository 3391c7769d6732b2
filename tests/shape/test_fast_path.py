"""fast_path.py finds a call on the way, a hit that is too long, and no hit at all."""

import platform
import subprocess
from pathlib import Path

import fast_path
import pytest

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="the budgets are x86-64's")

# A miss is a tail call; the hit lies in a taken branch, behind a jump.
GOOD = "test %rdi, %rdi; jne 2f; 1: jmp slow; 2: nop; jmp 3f; 3: mov %rdi, %rax; ret"
CALL = "test %rdi, %rdi; je 1f; ret; 1: call slow; ret"
CALL_FIRST = "test %rdi, %rdi; jne 1f; call slow; ret; 1: ret"
LONG = "test %rdi, %rdi; je 1f; ret; 1: " + "nop; " * 14 + "ret"
NO_HIT = "call slow; ret"
TAIL_CALL = "jmp slow"


def assemble(folder: Path, body: str) -> Path:
    source, library = folder / "body.s", folder / "body.so"
    lines = body.replace("; ", "\n")
    source.write_text(f".globl f\n.type f,@function\nf:\n{lines}\n.size f,.-f\n"
                      ".type slow,@function\nslow: ret\n.size slow,.-slow\n")
    subprocess.run(["cc", "-nostdlib", "-shared", "-o", library, source], check=True)
    return library


@pytest.mark.parametrize(("body", "complaint"), [
    (CALL_FIRST, "before its first ret"),
    (LONG, "takes 17 instructions on a hit, at most 16"),
    (NO_HIT, "no way to a ret"),
    (TAIL_CALL, "no way to a ret"),
])
def test_a_violation_is_found(tmp_path: Path, body: str, complaint: str) -> None:
    found = fast_path.complaints(fast_path.disassemble(assemble(tmp_path, body), "f"), 16)
    assert any(complaint in line for line in found), found


@pytest.mark.parametrize(("body", "length"), [(GOOD, 6), (CALL, 3)])
def test_the_hit_is_followed(tmp_path: Path, body: str, length: int) -> None:
    function = fast_path.disassemble(assemble(tmp_path, body), "f")
    assert fast_path.complaints(function, 16) == []
    assert len(fast_path.longest_hit(function)) == length


def test_a_missing_function_is_told(tmp_path: Path) -> None:
    missing = fast_path.disassemble(assemble(tmp_path, GOOD), "malloc")
    assert fast_path.complaints(missing, 16) == ["is not defined in the library"]
