"""The allocators of this machine: the library of this checkout, the peers, the system's own.

A contestant is a library to preload and an environment; so HAKMEM with another option, or built
from another commit, is simply one more allocator.
"""

import importlib.util
import json
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from hakmem_lab import LabError, ROOT

BUILD = ROOT / "out/release"
WITNESS = BUILD / "libwitness.so"
PEERS = ROOT / "out/peers/peers.json"
HAKMEM, SYSTEM = "hakmem", "system"
CHECKOUT = "checkout"  # instead of a commit: the one that this checkout is at

# Older than the crates of the same name: there when named, not by default.
ONLY_WHEN_NAMED = ("debian-mimalloc", "debian-jemalloc")
SHORT = {"glibc": SYSTEM, "gperftools": "debian-gperftools", "tbb": "debian-tbb",
         "mimalloc": "mimalloc3"}
BEST = "best"  # in a list of names: all that BEST_SETTINGS makes of the peers that are here


@dataclass(frozen=True)
class BestSettings:
    """What an allocator's own documents recommend for speed, as a contestant of its own."""

    base: str
    settings: dict[str, str]
    source: str


BEST_SETTINGS = {
    "glibc-hugetlb": BestSettings(
        SYSTEM, {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"},
        "The GNU C Library manual, Memory Allocation Tunables"),
    "jemalloc-thp": BestSettings(
        "jemalloc", {"MALLOC_CONF": "thp:always,metadata_thp:auto"},
        "jemalloc(3), opt.thp and opt.metadata_thp"),
    "jemalloc-background": BestSettings(
        "jemalloc", {"MALLOC_CONF": "background_thread:true,metadata_thp:auto"},
        "jemalloc, TUNING.md"),
    **{f"{name}-large": BestSettings(
        name, {"MIMALLOC_ALLOW_LARGE_OS_PAGES": "1"}, "mimalloc, Environment Options")
       for name in ("mimalloc3", "mimalloc2")},
    "debian-tbb-huge": BestSettings(
        "debian-tbb", {"TBB_MALLOC_USE_HUGE_PAGES": "1"},
        "oneTBB, Configuring the Memory Allocator"),
}


@dataclass(frozen=True)
class Allocator:
    name: str
    version: str
    preload: tuple[Path, ...] = ()  # in load order
    owner: str = ""  # path or file name of the library that malloc must be bound to
    settings: dict[str, str] = field(default_factory=dict)
    linked: str = ""  # the benchmark programs of this suffix have it linked in
    commit: str = ""  # of ours that it was built from, short, or CHECKOUT; "": not ours
    built: str = ""  # by what commands and with what flags, as far as known

    def is_owner(self, library: str) -> bool:
        """Does a path as the dynamic linker tells it mean this allocator's library?"""
        if "/" not in self.owner:
            return Path(library).name == self.owner
        return Path(library).resolve() == Path(self.owner).resolve()

    def with_settings(self, name: str, settings: dict[str, str]) -> "Allocator":
        """The same library under another name with further environment."""
        return replace(self, name=name, settings=self.settings | settings)


def is_own(allocator: Allocator) -> bool:
    """Is it a HAKMEM: of this checkout, with other options, of another commit, or given?"""
    return "/" in allocator.owner and _owns_blocks(allocator.owner)


@cache
def _owns_blocks(library: str) -> bool:
    """Asks the library itself, through the witness: only HAKMEM has hakmem_owns."""
    with tempfile.NamedTemporaryFile(prefix="hakmem-lab-") as record:
        subprocess.run(["/bin/true"], capture_output=True, check=False, env={
            "LD_PRELOAD": f"{library}:{WITNESS}", "MALLOC_WITNESS": record.name})
        columns = record.read().decode(errors="replace").partition("\n")[0].split("\t")
    return len(columns) == 5 and columns[3] in ("yes", "no")


def hakmem(build: Path = BUILD, name: str = HAKMEM) -> Allocator:
    library = build / "libhakmem.so"
    if not library.exists():
        raise LabError(f"{library} is not there; `make release` builds it")
    return Allocator(name, "this checkout", (library,), str(library), commit=CHECKOUT)


# What a library says of its version, asked in a process that it serves.
ASK_VERSION = """
import ctypes
own = ctypes.CDLL(None)
def ask(name, kind, *arguments):
    function = getattr(own, name, None)
    if function:
        function.restype = kind
        return function(*arguments)
text, size = ctypes.c_char_p(), ctypes.c_size_t(8)
for name in ("mallctl", "je_mallctl", "_rjem_mallctl"):
    if ask(name, ctypes.c_int, b"version", ctypes.byref(text), ctypes.byref(size), None,
           ctypes.c_size_t(0)) == 0:
        print("jemalloc", text.value.decode())
number = str(ask("mi_version", ctypes.c_int) or "")
if len(number) > 3:
    print(f"mimalloc {number[:-4]}.{int(number[-4:-2])}.{int(number[-2:])}")
elif number:
    print("mimalloc", ".".join(number))
for name, of in (("hakmem_version", "HAKMEM"), ("tc_version", "gperftools")):
    if said := ask(name, ctypes.c_char_p, None, None, None):
        print(of, said.decode())
"""


@cache
def version_of(library: Path) -> str:
    """What a library that was handed in says of itself, or else its build ID."""
    asked = subprocess.run([sys.executable, "-c", ASK_VERSION], capture_output=True, text=True,
                           errors="replace", check=False, env={"LD_PRELOAD": str(library)})
    if asked.stdout.strip():
        return asked.stdout.splitlines()[0]
    notes = subprocess.run(["readelf", "-n", library], capture_output=True, text=True,
                           errors="replace", check=False).stdout
    found = re.search(r"Build ID: (\w+)", notes)
    return f"unknown, build ID {found[1]}" if found else "unknown"


def given(name: str, library: Path) -> Allocator:
    return Allocator(name, f"{version_of(library)}, given", (library,), str(library))


def system() -> Allocator:
    """The C library, preloaded too: some programs are linked with an allocator of their own."""
    return Allocator(SYSTEM, " ".join(platform.libc_ver()), (Path("libc.so.6"),), "libc.so.6")


def _peers() -> list[Allocator]:
    if not PEERS.exists():
        return []
    rows = json.loads(PEERS.read_text())
    peers = [Allocator(row["name"], row["version"],
                       tuple(Path(part) for part in row["preload"].split(":")), row["path"],
                       row["environment"], built=" ".join((row["built"], row.get("flags", ""))))
             for row in rows if row["preload"]]
    return [peer for peer in peers if all(path.exists() for path in peer.preload)]


def present() -> dict[str, Allocator]:
    """All allocators that can be used now, by name, ours first."""
    found = [hakmem(), system(), *_peers()]
    names = {each.name: each for each in found}
    for name, suffix in ((HAKMEM, "hakmem"), ("mimalloc3", "mi")):
        if name in names and (BUILD / f"larson_{suffix}").exists():
            names[f"{name}-linked"] = replace(names[name], name=f"{name}-linked", preload=(),
                                              linked=suffix)
    return names | {name: names[best.base].with_settings(name, best.settings)
                    for name, best in BEST_SETTINGS.items() if best.base in names}


def choose(wanted: str | None) -> list[Allocator]:
    """The allocators of a list like "hakmem,glibc,new=/path/lib.so"; None: all but old ones, those
    that are linked, and those with other settings than their defaults."""
    known = present()
    if wanted is None:
        return [each for each in known.values() if not each.linked
                and each.name not in (*ONLY_WHEN_NAMED, *BEST_SETTINGS)]
    chosen: dict[str, Allocator] = {}
    for name, path in _named(wanted):
        if path:
            chosen[name] = given(name, path)
        elif name == BEST:
            chosen |= {each: known[each] for each in BEST_SETTINGS if each in known}
        elif name in known:
            chosen[name] = known[name]
        else:
            raise LabError(f"no allocator '{name}' here; there are {', '.join(known)}"
                           + ("" if PEERS.exists() else " (`./hakmem peers` builds the peers)"))
    return list(chosen.values())


def _named(wanted: str) -> list[tuple[str, Path | None]]:
    """The names of a list, with the libraries of those that come with one."""
    found: dict[str, Path | None] = {}
    for word in wanted.split(","):
        name, equals, path = word.strip().partition("=")
        if not name or not name.isprintable() or equals and not path:
            raise LabError(f"'{word}' in --allocators is neither NAME nor NAME=LIBRARY")
        if equals and name in (*SHORT, HAKMEM, SYSTEM, BEST, *BEST_SETTINGS):
            _refuse_taken(name, path)
        name = SHORT.get(name, name)
        if name in found:
            raise LabError(f"--allocators names {name} twice")
        found[name] = Path(path).absolute() if path else None
        if path and not Path(path).is_file():
            raise LabError(f"{path}: no such library")
    return list(found.items())


def _refuse_taken(name: str, path: str | Path) -> None:
    raise LabError(f"'{name}' is the name of another allocator; take another one, such as "
                   f"{name}-given={path}")


def refuse_unknown(wanted: str | None) -> None:
    """LabError if a list cannot be meant, before anything is built for it."""
    peers = peer_names()
    known = {HAKMEM, SYSTEM, BEST, *BEST_SETTINGS, f"{HAKMEM}-linked", *peers, *[each.name for each in _peers()],
             *[f"{name}-{way}" for name in peers for way in ("percpu", "linked")]}
    for name, path in _named(wanted) if wanted is not None else ():
        if path is None and name not in known:
            raise LabError(f"no allocator '{name}' here; there are "
                           f"{', '.join((HAKMEM, SYSTEM, *peers))}")
        if path is not None and name in known:
            _refuse_taken(name, path)


def build_release() -> None:
    """Builds HAKMEM, the benchmark programs and the witness: quick when nothing has changed."""
    command = [str(ROOT / "tools/build.sh"), "release"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()
        said = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no reason"]
        raise LabError(f"the release could not be built: {said[0].strip()}")


def peer_names() -> list[str]:
    """The peers that bench/peers/build.py knows how to build."""
    found = importlib.util.spec_from_file_location("build_peers", ROOT / "bench/peers/build.py")
    if found is None or found.loader is None:
        return []
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module  # its dataclasses look it up
    found.loader.exec_module(module)
    return list(module.PEERS)


def unbuilt_peers(wanted: str | None) -> list[str]:
    """The peers that a list of names asks for and that are not here yet. Without a list those are
    all, but only until a first build: what could not be built then is not tried each time."""
    known = peer_names()
    if wanted is None:
        return [] if PEERS.exists() else [name for name in known if name not in ONLY_WHEN_NAMED]
    words = [word.strip() for word in wanted.split(",") if "=" not in word]
    words += BEST_SETTINGS if BEST in words else ()
    names = [BEST_SETTINGS[word].base if word in BEST_SETTINGS
             else SHORT.get(word, word).removesuffix("-percpu") for word in words]
    built = {peer.name for peer in _peers()}
    return [name for name in known if name in names and name not in built]


def build_peers(names: Iterable[str] = ()) -> None:
    """Builds the named peers, or all; what cannot be built is skipped with a line."""
    subprocess.run([str(ROOT / "tools/setup.sh"), "peers"], check=False)
    words = [word for name in names for word in ("--only", name)]
    subprocess.run([sys.executable, str(ROOT / "bench/peers/build.py"), *words], check=False)
