#!/usr/bin/env python3
"""Compares the code of two builds, function by function, whatever the files are called: for changes
that move or rename and must not change what the compiler makes.

    cp -r out/release/CMakeFiles/hakmem_objects.dir /tmp/before   # of the commit before
    tools/same_code.py /tmp/before out/release/CMakeFiles/hakmem_objects.dir

Both built from nothing: objects of files that have moved would count twice. Prints the functions
that differ, or that only one of the two has, and ends with 1 if there is one.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

FUNCTION = re.compile(r"^[0-9a-f]+ <([^>]+)>:\n((?:.+\n)+)", re.MULTILINE)
ADDRESS = re.compile(r"^\s*[0-9a-f]+:", re.MULTILINE)
TARGET = re.compile(r"\b[0-9a-f]+ (?=<)")
NUMBER = re.compile(r"\.\d+\b")  # of a static variable, or of a copy that the compiler makes


def functions_of(folder: Path) -> Counter[tuple[str, str]]:
    """Name and code of each function. The names of static functions may occur more than once."""
    found: Counter[tuple[str, str]] = Counter()
    for path in sorted(folder.rglob("*.o")):
        text = subprocess.run(["objdump", "-dr", "--no-show-raw-insn", str(path)], check=True,
                              capture_output=True, text=True).stdout
        for name, code in FUNCTION.findall(text):
            plain = NUMBER.sub("", TARGET.sub("", ADDRESS.sub("", code)))
            found[NUMBER.sub("", name), plain] += 1
    return found


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__)
        return 2
    before, after = (functions_of(Path(argument)) for argument in sys.argv[1:])
    differing = sorted({name for name, _ in (before - after) + (after - before)})
    print(f"{before.total()} functions before, {after.total()} after, {len(differing)} differ")
    print("\n".join(differing), end="\n" if differing else "")
    return 1 if differing or not before else 0


if __name__ == "__main__":
    sys.exit(main())
