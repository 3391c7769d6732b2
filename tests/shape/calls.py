#!/usr/bin/env python3
"""Who calls whom, from the object files: calls go down from room to room (RANKS of tests/tidy.py),
and within a room there is no circle of files. An address that is taken is no call. A hook that is
set at initialisation is how a lower room reaches a higher one. Usage: calls.py [FOLDER OF A BUILD]
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
from tidy import RANKS  # noqa: E402

# Those of both forms of the library, and the few that each has of its own.
OBJECTS = ["CMakeFiles/hakmem_objects.dir/src", "CMakeFiles/hakmem.dir/src"]
CALL = re.compile(r"\t(?:call|jmp|bl?|j\w+)\s.*\n"
                  r"\s+[0-9a-f]+: R_(?:X86_64_(?:PLT32|PC32|GOTPCRELX)|AARCH64_(?:CALL|JUMP)26)"
                  r"\s+(\w+)")
DEFINED = re.compile(r"^[0-9a-f]+ [TW] (\w+)$", re.MULTILINE)

Calls = dict[str, dict[str, str]]  # file -> file that it calls -> one function of that


def printed(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def objects_in(folder: Path, sources: Path) -> dict[str, Path]:
    """Objects by file; those of files that have moved or gone may still lie there."""
    files = {str(path.relative_to(folder)).removesuffix(".o"): path
             for path in sorted(folder.rglob("*.o"))}
    return {file: path for file, path in files.items() if (sources / file).exists()}


def newest(build: Path) -> dict[str, Path]:
    """Of a file that has been compiled twice, the newest object."""
    found: dict[str, Path] = {}
    for folder in OBJECTS:
        for file, path in objects_in(build / folder, ROOT / "src").items():
            if file not in found or path.stat().st_mtime > found[file].stat().st_mtime:
                found[file] = path
    return found


def calls_of(files: dict[str, Path]) -> Calls:
    owners = {name: file for file, path in files.items()
              for name in DEFINED.findall(printed("nm", str(path)))}
    calls: Calls = {}
    for file, path in files.items():
        code = printed("objdump", "-dr", "--no-show-raw-insn", str(path))
        calls[file] = {owners[name]: name for name in CALL.findall(code)
                       if owners.get(name, file) != file}
    return calls


def room_of(file: str) -> str:
    first = file.split("/")[0]
    return "entry" if first == "malloc.c" else first


def circle(calls: Calls, room: str) -> list[str]:
    """Files of the room that call each other in a circle; []: there is none."""
    done: set[str] = set()

    def search(path: list[str]) -> list[str]:
        for file in calls.get(path[-1], {}):
            if room_of(file) != room or file in done:
                continue
            if file in path:
                return path[path.index(file):]
            if found := search([*path, file]):
                return found
        done.add(path[-1])
        return []

    return next((found for file in calls if room_of(file) == room if (found := search([file]))), [])


def complaints(calls: Calls) -> Iterator[str]:
    for file, others in calls.items():
        for other, name in others.items():
            if RANKS[room_of(other)] > RANKS[room_of(file)]:
                yield f"{file} calls {name} of {other}, which is above it"
    for room in sorted(RANKS):
        if found := circle(calls, room):
            yield f"a circle of calls: {' -> '.join([*found, found[0]])}"


def main() -> int:
    build = Path(sys.argv[1] if len(sys.argv) > 1 else "out/release")
    calls = calls_of(newest(build))
    if not any(calls.values()):
        print(f"calls.py: no calls were found in {build}")
        return 1
    found = list(complaints(calls))
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
