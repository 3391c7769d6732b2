#!/usr/bin/env python3
"""Counts the instructions of a hit in the disassembly of malloc, free, operator new and delete.

A hit is a way from the entry of a function to a `ret` that never leaves the function; misses leave
it by a tail call. Of several such ways the longest counts. No `call` may stand before the first
`ret`. Usage: fast_path.py [LIBRARY]
"""

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

BUDGET = {
    "malloc": 14, "free": 19,
    **dict.fromkeys(["_Znwm", "_Znam", "_ZnwmRKSt9nothrow_t", "_ZnamRKSt9nothrow_t"], 14),
    **dict.fromkeys(["_ZdlPv", "_ZdaPv", "_ZdlPvm", "_ZdaPvm"], 19),
}
PREFIXES = {"lock", "rep", "repz", "repnz", "bnd", "notrack", "data16", "cs"}
SKIPPED = 77


@dataclass(frozen=True)
class Instruction:
    address: int
    name: str
    target: int | None  # where a direct jump goes
    text: str

    @property
    def is_call(self) -> bool:
        return self.name.startswith("call")

    @property
    def is_jump(self) -> bool:
        return self.name in ("jmp", "jmpq")

    @property
    def is_branch(self) -> bool:
        return self.name.startswith("j") and not self.is_jump

    @property
    def is_return(self) -> bool:
        return self.name in ("ret", "retq")


def disassemble(library: Path, function: str) -> list[Instruction]:
    command = ["objdump", "-d", "--no-show-raw-insn", f"--disassemble={function}", str(library)]
    listing = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    instructions = []
    for address, text in re.findall(r"^\s*([0-9a-f]+):\t(.+?)\s*$", listing, re.MULTILINE):
        words = [word for word in text.split() if word not in PREFIXES]
        goes = re.search(r"\b([0-9a-f]+) <", text)
        target = int(goes.group(1), 16) if goes and words[0].startswith("j") else None
        instructions.append(Instruction(int(address, 16), words[0], target, text))
    return instructions


def longest_hit(body: list[Instruction]) -> list[Instruction]:
    """The longest way from the entry to a return that stays inside; empty when there is none."""
    place = {instruction.address: index for index, instruction in enumerate(body)}

    def follow(index: int | None, seen: frozenset[int]) -> list[Instruction]:
        if index is None or index >= len(body) or index in seen or body[index].is_call:
            return []
        here, seen = body[index], seen | {index}
        if here.is_return:
            return [here]
        jumped = place.get(here.target) if here.target is not None else None
        ways = []
        if here.is_jump or here.is_branch:
            ways.append(follow(jumped, seen))
        if not here.is_jump:
            ways.append(follow(index + 1, seen))
        best = max(ways, key=len)
        return [here, *best] if best else []

    return follow(0, frozenset())


def complaints(body: list[Instruction], budget: int) -> list[str]:
    """What is wrong with a function, in words."""
    if not body:
        return ["is not defined in the library"]
    found = []
    for instruction in body:
        if instruction.is_return:
            break
        if instruction.is_call:
            found.append(f"has `{instruction.text}` before its first ret")
    hit = longest_hit(body)
    if not hit:
        found.append("has no way to a ret without a call")
    elif len(hit) > budget:
        listing = "".join(f"\n    {instruction.text}" for instruction in hit)
        found.append(f"takes {len(hit)} instructions on a hit, at most {budget}:{listing}")
    return found


def main(library: Path) -> int:
    if not library.exists():
        print(f"fast_path: no library at {library}: run make release", file=sys.stderr)
        return 1
    headers = subprocess.run(["objdump", "-f", library], check=True, capture_output=True, text=True)
    if "x86-64" not in headers.stdout:
        print("fast_path: the budgets are those of x86-64: skipped")
        return SKIPPED
    failed = False
    for function, budget in BUDGET.items():
        body = disassemble(library, function)
        wrong = complaints(body, budget)
        failed |= bool(wrong)
        for complaint in wrong:
            print(f"{function} {complaint}")
        if not wrong:
            print(f"{function}: {len(longest_hit(body))} instructions on a hit, at most {budget}")
    return 1 if failed else 0


if __name__ == "__main__":
    default = os.environ.get("TESTED_LIBRARY", "out/release/libhakmem.so")
    sys.exit(main(Path(sys.argv[1] if len(sys.argv) > 1 else default)))
