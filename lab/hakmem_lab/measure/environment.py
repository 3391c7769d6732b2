"""The record of where figures come from: commit, compiler, processor, kernel, allocators.

Nothing in it names the machine or its user: host names and home folders stay out of results.
"""

import os
import platform
import re
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from hakmem_lab import ROOT
from hakmem_lab.measure.allocators import BUILD, Allocator

TOOLS = f":{ROOT}/.venv/bin"  # cmake and ninja, where the system has none
# What allocators read, and what would be preloaded beside them.
OF_ALLOCATORS = re.compile(
    "(HAKMEM_|MALLOC_|_RJEM_|JE_MALLOC_|MIMALLOC_|TCMALLOC_|RPMALLOC_|SNMALLOC_|SCUDO_|"
    "TBB_MALLOC_).*"
    "|GLIBC_TUNABLES|LD_PRELOAD|LAUNCH_PRELOAD")


def add_tools() -> None:
    """Lets the laboratory find what setup.sh has installed for it."""
    os.environ["PATH"] = os.environ.get("PATH", os.defpath) + TOOLS


def of_user() -> dict[str, str]:
    """The environment as the user has it."""
    return {name: text.removesuffix(TOOLS) if name == "PATH" else text
            for name, text in os.environ.items()}


def without_allocators() -> dict[str, str]:
    """The user's without what would make contestants differ from what their names say."""
    return {name: text for name, text in of_user().items() if not OF_ALLOCATORS.fullmatch(name)}


def not_handed_over() -> list[str]:
    """The names of the variables that measured programs do not get."""
    return sorted(name for name in os.environ if OF_ALLOCATORS.fullmatch(name))


def output_of(*words: str | Path, folder: Path = ROOT) -> str:
    """What a command prints, or nothing if it cannot be run."""
    try:
        done = subprocess.run([str(word) for word in words], text=True, errors="replace",
                              capture_output=True, check=False, cwd=folder)
    except OSError:
        return ""
    return done.stdout.strip()


@cache
def commit() -> tuple[str, bool]:
    """The commit of this checkout, short, and whether what is measured may differ from it.

    A change of a page or of the laboratory is none of the allocator or of a benchmark."""
    changed = output_of("git", "status", "--porcelain", "--", "src", "include", "bench/programs",
                        "bench/floor.c", "CMakeLists.txt", "CMakePresets.json")
    return output_of("git", "rev-parse", "--short=10", "HEAD"), bool(changed)


def commit_of(allocator: Allocator) -> tuple[str, bool]:
    """The commit that rows of an allocator belong to, and whether the library may differ."""
    return (allocator.commit, False) if allocator.commit else commit()


def _line(file: str, pattern: str = "(.*)") -> str:
    try:
        found = re.search(pattern, Path(file).read_text(errors="replace"), re.MULTILINE)
    except OSError:
        return "not visible"
    return found[1].strip() if found else "not visible"


def _chosen(file: str) -> str:
    """The word in brackets of a file such as `always [madvise] never`."""
    return _line(file, r"\[(\w+)\]")


def _cache_value(name: str) -> str:
    cached = BUILD / "CMakeCache.txt"
    return _line(str(cached), rf"^{name}:\w+=(.*)$")


def _compile_flags() -> str:
    text = _line(str(BUILD / "compile_commands.json"), r'"command": "(.*src/malloc\.c)"')
    kept = [word for word in text.split() if word.startswith(("-O", "-f", "-g", "-m", "-std"))]
    return " ".join(kept)


def record(allocators: Iterable[Allocator], command: str) -> dict[str, Any]:
    """All that a reader needs to judge the figures and to measure them again."""
    cpu = "/sys/devices/system/cpu/cpu0/cpufreq"
    huge = "/sys/kernel/mm/transparent_hugepage"
    short, dirty = commit()
    compiler = _cache_value("CMAKE_C_COMPILER")
    return {
        "command": command,
        "commit": short,
        "dirty": dirty,
        "compiler": output_of(compiler, "--version").partition("\n")[0],
        "build": _cache_value("CMAKE_BUILD_TYPE"),
        "flags": _compile_flags(),
        "machine": platform.machine(),
        "cpu": _line("/proc/cpuinfo", r"^model name\s*: (.*)$"),
        "processors": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "governor": _line(f"{cpu}/scaling_governor"),
        "frequency_khz": _line(f"{cpu}/scaling_cur_freq"),
        "is_virtual": "hypervisor" in _line("/proc/cpuinfo", r"^flags\s*: (.*)$").split(),
        "kernel": platform.release().split("-")[0],
        "thp": _chosen(f"{huge}/enabled"),
        "thp_defrag": _chosen(f"{huge}/defrag"),
        "overcommit": _line("/proc/sys/vm/overcommit_memory"),
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "c_library": " ".join(platform.libc_ver()),
        "distribution": _line("/etc/os-release", r'^PRETTY_NAME="(.*)"$'),
        "load_average": round(os.getloadavg()[0], 2),
        "allocators": {each.name: {"version": each.version, "settings": each.settings}
                       for each in allocators},
    }
