"""The record of where figures come from: commit, compilers, processor, kernel, allocators, load.

Nothing in it names the machine or its user: host names and home folders stay out of results.
"""

import hashlib
import os
import platform
import re
import subprocess
import time
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from hakmem_lab import LabError, ROOT
from hakmem_lab.measure import builds
from hakmem_lab.measure.allocators import BUILD, CHECKOUT, Allocator
from hakmem_lab.measure.subject import GROUPS, Cell

VERSION_LIMIT_S = 5.0  # for a program to tell its version
DISTANCE = BUILD / "distance"
TICKS = os.sysconf("SC_CLK_TCK")
TOOLS = f":{ROOT}/.venv/bin"  # cmake and ninja, where the system has none
# What allocators read, and what would be preloaded beside them.
OF_ALLOCATORS = re.compile(
    "(HAKMEM_|MALLOC_|_RJEM_|JE_MALLOC_|MIMALLOC_|TCMALLOC_|RPMALLOC_|SNMALLOC_|SCUDO_|"
    "TBB_MALLOC_).*"
    "|GLIBC_TUNABLES|LD_PRELOAD|LAUNCH_PRELOAD|LAUNCH_THP")


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

    A change of a page or of the laboratory's code is none of the allocator or of a benchmark."""
    changed = output_of("git", "status", "--porcelain", "--", "src", "include", "bench/programs",
                        "CMakeLists.txt", "CMakePresets.json", "lab/*.toml", "lab/inputs")
    return output_of("git", "rev-parse", "--short=10", "HEAD"), bool(changed)


def commit_of(allocator: Allocator) -> tuple[str, bool]:
    """The commit of ours that a library was built from, and whether it may differ; of a library
    that is not ours there is none."""
    return commit() if allocator.commit == CHECKOUT else (allocator.commit, False)


def source_of(commit: str, folder: Path = ROOT) -> str:
    """The git trees of what the library is built from, at a commit; "" if it is not known."""
    found = [output_of("git", "rev-parse", "--verify", "--quiet", f"{commit}:{name}",
                       folder=folder) for name in ("src", "include")]
    return " ".join(found) if all(found) else ""


def hash_of(file: str | Path) -> str:
    """The first 16 digits of the SHA-256 of a file, "" if it cannot be read."""
    try:
        path = Path(file).resolve()
        return _hash(path, path.stat().st_mtime_ns)
    except OSError:
        return ""


@cache
def _hash(path: Path, changed_ns: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()[:16]


def round_trip_ns() -> float:
    """Of a cache line between the processors now; 0 if there is only one, as lab/distance.c says.
    LabError if that is not there."""
    if not DISTANCE.exists():
        raise LabError(f"{DISTANCE} is missing; `make release` builds it")
    return float(output_of(DISTANCE) or 0)


def others_cpu_s() -> float:
    """CPU seconds of this machine so far, with those that its host gave to others, less those of
    this process and of all that it has started and that has ended."""
    words = _line("/proc/stat", r"^cpu (.*)$").split()
    busy = sum(map(int, [*words[:3], *words[5:8]])) if len(words) > 7 else 0
    return busy / TICKS - sum(os.times()[:4])


def others_cpus(seconds: float = 1.0) -> float:
    """How many processors others keep busy now."""
    start, before_s = time.monotonic(), others_cpu_s()
    time.sleep(seconds)
    return max(0.0, others_cpu_s() - before_s) / (time.monotonic() - start)


def program_versions(cells: Iterable[Cell]) -> str:
    """Those of the real programs; a user's own is not started with other words than its own."""
    programs = sorted({cell.subject.command[0] for cell in cells if cell.group == GROUPS[0]})
    return "; ".join(f"{Path(each).name}: {_version_of(each) or 'unknown'}" for each in programs)


def _version_of(program: str) -> str:
    """The first line of what it says of itself, "" if it does not."""
    for option in ("--version", "-v"):
        try:
            done = subprocess.run([program, option], text=True, errors="replace", check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True,
                                  timeout=VERSION_LIMIT_S)
        except (OSError, subprocess.TimeoutExpired):
            return ""
        if done.returncode == 0 and (said := (done.stdout or done.stderr).strip()):
            return said.splitlines()[0]
    return ""


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


def _library(allocator: Allocator) -> str:
    """The path of its library, that of the C library too."""
    if "/" in allocator.owner:
        return allocator.owner
    return _line("/proc/self/maps", rf"(/\S*/{re.escape(allocator.owner)})$")


def _compiler_of(library: str) -> str:
    """What the compiler has left in a library that was not stripped."""
    said = re.findall(r"\]\s+(.+)$", output_of("readelf", "-p", ".comment", library), re.MULTILINE)
    return ", ".join(dict.fromkeys(said))


def _told(allocator: Allocator) -> dict[str, Any]:
    library, (ours, _) = _library(allocator), commit_of(allocator)
    return {"version": allocator.version, "settings": allocator.settings,
            "library": hash_of(library), "commit": ours, "source": source_of(ours) if ours else "",
            "compiler": _compiler_of(library), "built": allocator.built}


def thp_mode() -> str:
    """Of the machine: "always", "madvise" or "never"."""
    return _chosen("/sys/kernel/mm/transparent_hugepage/enabled")


def record(allocators: Iterable[Allocator], command: str) -> dict[str, Any]:
    """All that a reader needs to judge the figures and to measure them again."""
    cpu = "/sys/devices/system/cpu/cpu0/cpufreq"
    short, dirty = commit()
    compiler = _cache_value("CMAKE_C_COMPILER")
    return {
        "command": command, "commit": short, "dirty": dirty,
        "compiler": output_of(compiler, "--version").partition("\n")[0],
        "build": _cache_value("CMAKE_BUILD_TYPE"), "flags": builds.flags(BUILD),
        "machine": platform.machine(),
        "cpu": _line("/proc/cpuinfo", r"^model name\s*: (.*)$"),
        "processors": len(os.sched_getaffinity(0)),
        "memory_mib": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") >> 20,
        "governor": _line(f"{cpu}/scaling_governor"),
        "frequency_khz": _line(f"{cpu}/scaling_cur_freq"),
        "is_virtual": "hypervisor" in _line("/proc/cpuinfo", r"^flags\s*: (.*)$").split(),
        "kernel": platform.release().split("-")[0], "thp": thp_mode(),
        "thp_defrag": _chosen("/sys/kernel/mm/transparent_hugepage/defrag"),
        "aslr": _line("/proc/sys/kernel/randomize_va_space"),
        "overcommit": _line("/proc/sys/vm/overcommit_memory"),
        "page_size": os.sysconf("SC_PAGE_SIZE"),
        "c_library": " ".join(platform.libc_ver()),
        "distribution": _line("/etc/os-release", r'^PRETTY_NAME="(.*)"$'),
        "load_average": round(os.getloadavg()[0], 2),
        "allocators": {each.name: _told(each) for each in allocators},
    }
