"""The allocators of this machine: the library of this checkout, the peers, the system's own.

A contestant is a library to preload and an environment; so HAKMEM with another option, or built
from another commit, is simply one more allocator.
"""

import json
import os
import platform
import re
import subprocess
import tempfile
import sys
import tomllib
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

from hakmem_lab import LabError, ROOT
from hakmem_lab.measure import peers as recipes

BUILD = ROOT / "out/release"
WITNESS = BUILD / "libwitness.so"
PEERS = ROOT / "out/peers/peers.json"
HAKMEM, SYSTEM = "hakmem", "system"
CHECKOUT = "checkout"  # instead of a commit: the one that this checkout is at

# What Debian ships takes part by default where the newer version from the crate is not here.
SUPERSEDED_BY = {"debian-mimalloc": "mimalloc2", "debian-jemalloc": "jemalloc"}
SHORT = {"glibc": SYSTEM, "gperftools": "debian-gperftools", "tbb": "debian-tbb",
         "mimalloc": "mimalloc3"}
# Allocators with other settings than their defaults, as contestants; a list of names has all of a
# set by the name of the set.
SETTINGS = tomllib.loads((ROOT / "lab/settings.toml").read_text())
SETS = sorted({row["set"] for row in SETTINGS.values()})


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
        raise LabError(f"{library} is missing; `make release` builds it")
    return Allocator(name, "this checkout", (library,), str(library),
                     {"HAKMEM_POLICY": "none"}, commit=CHECKOUT)


@cache
def version_of(library: Path) -> str:
    """What a library says of itself in a process that it serves, or else its build ID."""
    asked = subprocess.run([sys.executable, str(ROOT / "lab/library_version.py")], text=True,
                           capture_output=True, errors="replace", check=False,
                           env=os.environ | {"LD_PRELOAD": str(library)})
    notes = subprocess.run(["readelf", "-n", str(library)], text=True, capture_output=True,
                           errors="replace", check=False)
    found = re.search(r"Version: (.+)|Build (ID: \w+)", asked.stdout + notes.stdout)
    return found and (found[1] or f"unknown, build {found[2]}") or "unknown"


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
                       row["environment"], built=row["built"]) for row in rows if row["preload"]]
    return [peer for peer in peers if all(path.exists() for path in peer.preload)]


def present() -> dict[str, Allocator]:
    """All allocators that can be used now, by name, ours first."""
    found = [hakmem(), system(), *_peers()]
    names = {each.name: each for each in found}
    for name, suffix in ((HAKMEM, "hakmem"), ("mimalloc3", "mi")):
        if name in names and (BUILD / f"larson_{suffix}").exists():
            names[f"{name}-linked"] = replace(names[name], name=f"{name}-linked", preload=(),
                                              linked=suffix)
    return names | {name: names[row["base"]].with_settings(name, row["settings"])
                    for name, row in SETTINGS.items() if row["base"] in names}


def _set(name: str) -> list[str]:
    return [each for each, row in SETTINGS.items() if row["set"] == name]


def choose(wanted: str | None) -> list[Allocator]:
    """The allocators of a list like "hakmem,glibc,new=/path/lib.so"; None: all but those that are
    superseded, linked, or have other settings than their defaults."""
    known = present()
    if wanted is None:
        return [each for each in known.values() if not each.linked
                and SUPERSEDED_BY.get(each.name) not in known and each.name not in SETTINGS]
    chosen: dict[str, Allocator] = {}
    for name, path in _named(wanted):
        if path:
            chosen[name] = given(name, path)
        elif name in SETS:
            chosen |= {each: known[each] for each in _set(name) if each in known}
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
        if equals and name in _names():
            raise LabError(f"'{name}' is the name of another allocator; take another one, such as "
                           f"{name}-given={path}")
        name = SHORT.get(name, name)
        if name in found:
            raise LabError(f"--allocators names {name} twice")
        found[name] = Path(path).absolute() if path else None
        if path and not Path(path).is_file():
            raise LabError(f"{path}: no such library")
    return list(found.items())


def _names() -> set[str]:
    """All that a name without a library may be, whether it is here or not."""
    peers = recipes.names()
    return {HAKMEM, SYSTEM, *SETS, *SHORT, *SETTINGS, f"{HAKMEM}-linked", *peers,
            *[each.name for each in _peers()],
            *[f"{name}-{way}" for name in peers for way in ("percpu", "linked")]}


def refuse_unknown(wanted: str | None) -> None:
    """LabError if a list cannot be meant, before anything is built for it."""
    for name, path in _named(wanted) if wanted is not None else ():
        if path is None and name not in _names():
            raise LabError(f"no allocator '{name}' here; there are "
                           f"{', '.join((HAKMEM, SYSTEM, *recipes.names()))}")


def build_release(*targets: str) -> None:
    """Builds HAKMEM and all that is measured with it, or only some targets of CMakeLists.txt. Tests
    come after that build (tools/test.sh)."""
    if os.environ.get("RELEASE_IS_BUILT"):
        return
    command = [str(ROOT / "tools/build.sh"), "release" + f":{','.join(targets)}" * bool(targets)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = (done.stderr + done.stdout).strip().splitlines()
        said = [line for line in lines if "error" in line.lower()] or lines[-1:] or ["no reason"]
        raise LabError(f"the release could not be built: {said[0].strip()}")


def lacking(wanted: str | None) -> list[str]:
    """The peers that a list of names asks for and that are not here; None: those that take part
    by default, less what once failed to be built."""
    known = [name for name in recipes.names() if not recipes.is_built(name)]
    if wanted is None:
        return [name for name in known if not recipes.has_failed(name)
                and not (name in SUPERSEDED_BY and recipes.is_built(SUPERSEDED_BY[name]))]
    words = [word.strip() for word in wanted.split(",") if "=" not in word]
    words += [name for word in words if word in SETS for name in _set(word)]
    named = {SETTINGS[word]["base"] if word in SETTINGS
             else SHORT.get(word, word).removesuffix("-percpu") for word in words}
    return [name for name in known if name in named]
