"""Policies and profiles take memory only where somebody asks for them."""
import os
import pathlib
import re
import subprocess

import pytest

from conftest import clean_environment

# The files whose variables are for policies and profiles; globals have these names.
REQUESTED = {f"{name}.c" for name in (
    "site_rules", "groups", "sampler", "samples", "pprof", "profile")}
NAMED = re.compile("(site|groups|sampler|samples|pprof|profile)_")


def variables(library):
    """Address in the library and length of each variable: those for what may be requested, and
    the others."""
    text = subprocess.run(["readelf", "-sW", library], check=True, capture_output=True,
                          text=True).stdout
    requested, others, file = set(), set(), ""
    for value, size, kind, section, name in re.findall(
            r"^ +\d+: (\w+) +(\w+) (\w+) +\w+ +\w+ +(\w+)(?: (.*))?$", text, re.MULTILINE):
        if kind == "FILE":
            file = name
        elif kind == "OBJECT" and section.isdigit():
            is_requested = file in REQUESTED or not file and NAMED.match(name)
            (requested if is_requested else others).add((int(value, 16), int(size, 0)))
    return requested, others


def resident_for_requests(library, **settings):
    """Of a process that has begun: bytes of these variables that are not zero, and how many pages
    with nothing else are there."""
    requested, others = variables(library)
    with subprocess.Popen(["/bin/cat"], env=clean_environment(LD_PRELOAD=library, **settings),
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdin.write(b"begun\n")
        process.stdin.flush()
        assert process.stdout.readline() == b"begun\n"
        maps = pathlib.Path(f"/proc/{process.pid}/maps").read_text().splitlines()
        base = min(int(line.split("-")[0], 16) for line in maps if line.endswith(str(library)))
        areas = [range(*(int(end, 16) for end in line.split()[0].split("-"))) for line in maps
                 if line.split()[1].startswith("rw")]
        requested = [(base + value, size) for value, size in requested
                     if any(base + value in area for area in areas)]  # and no constants
        assert sum(size for _, size in requested) > 5000, "not all were found"
        page_size = os.sysconf("SC_PAGE_SIZE")

        def pages_of(variables):
            return {page for first, size in variables
                    for page in range(first // page_size, (first + size - 1) // page_size + 1)}
        own = pages_of(requested) - pages_of((base + value, size) for value, size in others)
        resident = written = 0
        try:
            with pathlib.Path(f"/proc/{process.pid}/pagemap").open("rb") as pages:
                for page in own:
                    pages.seek(page * 8)
                    resident += pages.read(8)[7] >> 7
            with pathlib.Path(f"/proc/{process.pid}/mem").open("rb") as memory:
                for first, size in requested:
                    memory.seek(first)
                    written += size - memory.read(size).count(0)
        except PermissionError:
            pytest.skip("the kernel lets nobody look (kernel.yama.ptrace_scope)")
        finally:
            process.stdin.close()
    return written, resident


def test_what_nobody_requested_takes_no_memory(shipped):
    """Less than 4 KiB: next to nothing is written, and no table is mapped."""
    written, resident = resident_for_requests(shipped)
    assert written <= 8 and resident == 0


def test_what_was_requested_is_seen(shipped, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert resident_for_requests(shipped, HAKMEM_PROFILE="%p.pb")[0] > 8
