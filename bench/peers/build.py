#!/usr/bin/env python3
"""Builds the other allocators as preloadable shared libraries, for side-by-side runs.

    build.py [--only NAME]... [--list] [--update]

Each peer lands in out/peers/NAME/libNAME.so, is proved at once by probe.c, and is recorded in
out/peers/peers.json with a digest of its recipe: it is built again when that has changed. A peer
that cannot be built is skipped with one line that says why.
"""
import argparse
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
CRATES = HERE / "crates"
OUT = HERE.parent.parent / "out" / "peers"

C_NAMES = ["malloc", "free", "calloc", "realloc", "aligned_alloc", "memalign", "posix_memalign",
           "valloc", "pvalloc", "malloc_usable_size"]
SNMALLOC_NAMES = {name: f"sn_{name}" for name in C_NAMES}
TCMALLOC_NAMES = {
    "malloc": "Malloc", "free": "Free", "calloc": "Calloc", "realloc": "Realloc",
    "aligned_alloc": "AlignedAlloc", "memalign": "Memalign", "posix_memalign": "PosixMemalign",
    "valloc": "Valloc", "pvalloc": "Pvalloc", "malloc_usable_size": "MallocSize",
    "reallocarray": "ReallocArray",
    "_Znwm": "New", "_Znam": "NewArray", "_ZdlPv": "Delete", "_ZdaPv": "DeleteArray",
    "_ZnwmRKSt9nothrow_t": "NewNothrow", "_ZnamRKSt9nothrow_t": "NewArrayNothrow",
    "_ZdlPvm": "DeleteSized", "_ZdaPvm": "DeleteArraySized",
    "_ZdlPvRKSt9nothrow_t": "DeleteNothrow", "_ZdaPvRKSt9nothrow_t": "DeleteArrayNothrow",
    "_ZnwmSt11align_val_t": "NewAligned", "_ZnamSt11align_val_t": "NewArrayAligned",
    "_ZdlPvSt11align_val_t": "DeleteAligned", "_ZdaPvSt11align_val_t": "DeleteArrayAligned",
}


@dataclass
class Crate:
    """A peer whose source comes in a crate; the crate's own build script compiles it."""
    package: str
    archive: str
    aliases: dict = field(default_factory=dict)
    compiler_flags: str = ""
    environment: dict = field(default_factory=dict)


@dataclass
class Debian:
    """A peer that the distribution ships. Preloads are in load order; the last owns malloc."""
    package: str
    files: list


PEERS = {
    "mimalloc3": Crate("libmimalloc-sys", "libmimalloc.a"),
    "mimalloc2": Crate("libmimalloc-sys", "libmimalloc.a"),
    "jemalloc": Crate("tikv-jemalloc-sys", "libjemalloc_pic.a"),
    "snmalloc": Crate("snmalloc-sys", "libsnmallocshim-rust.a", SNMALLOC_NAMES),
    "tcmalloc": Crate("libtcmalloc-sys", "libtcmalloc.a",
                      {name: f"TCMallocInternal{to}" for name, to in TCMALLOC_NAMES.items()},
                      environment={"GLIBC_TUNABLES": "glibc.pthread.rseq=0"}),
    "rpmalloc": Crate("rpmalloc-sys", "librpmalloc.a", compiler_flags="-DENABLE_OVERRIDE=1"),
    "debian-mimalloc": Debian("libmimalloc2.0", ["libmimalloc.so.2"]),
    "debian-jemalloc": Debian("libjemalloc2", ["libjemalloc.so.2"]),
    "debian-gperftools": Debian("libtcmalloc-minimal4", ["libtcmalloc_minimal.so.4"]),
    "debian-tbb": Debian("libtbbmalloc2", ["libtbbmalloc.so.2", "libtbbmalloc_proxy.so.2"]),
}


class Skip(Exception):
    """Why a peer cannot be had, in one line."""


def run(command, **options):
    """Runs a command; its last line becomes the reason if it fails."""
    try:
        done = subprocess.run(command, text=True, capture_output=True, check=False, **options)
    except FileNotFoundError:
        raise Skip(f"{command[0]} is not installed") from None
    if done.returncode != 0:
        words = (done.stderr or done.stdout).strip().splitlines() or [f"exit {done.returncode}"]
        errors = [line for line in words if re.search(r"error|E:|fatal|cannot", line)]
        raise Skip(f"{command[0]}: {(errors or words)[0].strip()}")
    return done.stdout


def crate_folder(package):
    """The folder of a fetched crate and the crate's version."""
    text = run(["cargo", "metadata", "--format-version", "1", "--locked", "--all-features"],
               cwd=CRATES)
    for entry in json.loads(text)["packages"]:
        if entry["name"] == package:
            return Path(entry["manifest_path"]).parent, entry["version"]
    raise Skip(f"{package} is not in Cargo.lock")


def crate_version(name, peer):
    """The version of the allocator inside the crate, as its own source states it."""
    folder, version = crate_folder(peer.package)
    own = ""
    if name.startswith("mimalloc"):
        header = folder / f"c_src/mimalloc/v{name[-1]}/include/mimalloc.h"
        digits = re.search(r"MI_MALLOC_VERSION\s+(\d+)", header.read_text())[1]
        own = f"{digits[0]}.{int(digits[1:3])}.{int(digits[3:5])}, "
    if name == "jemalloc":
        own = version.split("+", 1)[1] + ", "
    return f"{own}crate {peer.package} {version}"


def flags_of(archive):
    """The options for code with which the crate's build script called the compiler."""
    said = next(parent / "output" for parent in archive.parents if (parent / "output").exists())
    lines = [line for line in said.read_text(errors="replace").splitlines()
             if re.search("running|CFLAGS|C_FLAGS|CXX_FLAGS", line)]
    found = re.findall(r"(?<![\w-])-(?:O\w|f[\w=-]+|m[\w=-]+|std=[\w+]+|DNDEBUG)", "\n".join(lines))
    return " ".join(dict.fromkeys(found))


def build_crate(name, peer, folder):
    """cargo builds the archive; the linker turns it into a library under malloc's own names."""
    target = OUT / "build" / name
    shutil.rmtree(target / "release" / "build", ignore_errors=True)
    environment = dict(os.environ, CC_ENABLE_DEBUG_OUTPUT="1")
    if peer.compiler_flags:
        environment["CFLAGS"] = peer.compiler_flags
    run(["cargo", "build", "--release", "--locked", "--features", name, "--target-dir",
         str(target)], cwd=CRATES, env=environment)
    archives = sorted(path for path in target.glob(f"release/build/**/{peer.archive}"))
    if not archives:
        raise Skip(f"the crate left no {peer.archive}")
    library = folder / f"lib{name}.so"
    command = ["g++", "-shared", "-O2", "-o", str(library), "-Wl,--whole-archive",
               str(archives[0]), "-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]
    command += [f"-Wl,--defsym={alias}={target}" for alias, target in peer.aliases.items()]
    run(command)
    built = f"cargo build --release --features {name}; g++ -shared -Wl,--whole-archive"
    if peer.compiler_flags:
        built = f"CFLAGS={peer.compiler_flags} {built}"
    if peer.aliases:
        built += f"; {len(peer.aliases)} names by -Wl,--defsym"
    built += f"; compiled with {flags_of(archives[0])}"
    return [library], built, crate_version(name, peer)


def names_of(package):
    """What a package may be called: since Ubuntu 24.04 and Debian 13 some names end in t64."""
    return package, f"{package}t64"


def debian_version(peer):
    """What apt would install now, as far as the machine's own lists know."""
    for package in names_of(peer.package):
        found = re.search(r"Candidate: (\S+)", run(["apt-cache", "policy", package]))
        if found and found[1] != "(none)":
            return f"{found[1]}, package {package}"
    raise Skip(f"apt knows no {peer.package}")


def unpack(peer, tree):
    """Downloads the package and takes it apart; nothing is installed: its name and version."""
    reason = None
    for package in names_of(peer.package):
        try:
            version = run([str(HERE.parent.parent / "tools/apt_unpack.sh"), package, str(tree)])
        except Skip as error:
            reason = reason or error
        else:
            return package, version.strip()
    raise reason


def build_debian(name, peer, folder):
    """Takes the library out of the package; nothing is installed."""
    tree, libraries = folder / "package", []
    package, version = unpack(peer, tree)
    for file in peer.files:
        found = next(tree.rglob(file), None)
        if found is None:
            raise Skip(f"{peer.package} holds no {file}")
        last = file == peer.files[-1]
        libraries.append(folder / (f"lib{name}.so" if last else file))
        shutil.copyfile(found, libraries[-1])
    shutil.rmtree(tree)
    return (libraries, f"apt-get download {package}; taken out as shipped",
            f"{version}, package {package}")


def prove(preload, environment, owner):
    """Runs the probe under the library; malloc must be served by it."""
    probe = OUT / "build" / "probe"
    run(["gcc", "-std=c17", "-D_GNU_SOURCE", "-O2", "-pthread", "-o", str(probe),
         str(HERE / "probe.c")])
    text = run([str(probe)], env=dict(os.environ, LD_PRELOAD=preload, **environment))
    if Path(text.strip()).resolve() != owner.resolve():
        raise Skip(f"malloc is served by {text.strip()}, not by {owner.name}")


def recipe(name):
    """A digest of all that decides what a peer is built from."""
    text = repr(PEERS[name])
    if isinstance(PEERS[name], Crate):
        text += "".join((CRATES / file).read_text() for file in ("Cargo.toml", "Cargo.lock"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def record(name, version, path, preload, built, environment, digest=""):
    """One row of peers.json."""
    return {"name": name, "version": version, "path": str(path), "preload": preload,
            "built": built, "environment": environment, "recipe": digest}


def recorded():
    """The rows of peers.json."""
    file = OUT / "peers.json"
    return json.loads(file.read_text()) if file.exists() else []


def rows_of(name):
    """What peers.json tells of a peer that was made by the recipe of today, or was to be."""
    return [row for row in recorded()
            if row["name"] == name and row.get("recipe") == recipe(name)]


def is_built(name):
    return any(row["preload"] and Path(row["path"]).exists() for row in rows_of(name))


def build(name):
    """Builds and proves one peer; returns its rows."""
    peer = PEERS[name]
    folder = OUT / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (OUT / "build").mkdir(exist_ok=True)
    is_crate = isinstance(peer, Crate)
    libraries, built, version = (build_crate if is_crate else build_debian)(name, peer, folder)
    preload = ":".join(str(path) for path in libraries)
    environments = {name: {}}
    if is_crate and peer.environment:
        environments[f"{name}-percpu"] = peer.environment
    for environment in environments.values():
        prove(preload, environment, libraries[-1])
    return [record(each, version, libraries[-1], preload, built, environment, recipe(name))
            for each, environment in environments.items()]


def ensure(name):
    """Builds a peer unless it is built, keeps its rows, and returns a line that says how it went.
    An interrupted series of peers so goes on where it stopped."""
    if is_built(name):
        return f"{name:18} is built"
    try:
        rows = build(name)
    except Skip as reason:
        shutil.rmtree(OUT / name, ignore_errors=True)
        has_failed = isinstance(PEERS[name], Crate) and shutil.which("cargo")
        save([record(name, "", "", "", f"failed: {reason}", {}, recipe(name))] * bool(has_failed))
        return f"{name:18} skipped: {reason}"
    save([system_row(), *rows])
    return f"{name:18} {rows[0]['version']}"


def system_row():
    """The C library itself: nothing to preload."""
    text = run(["ldd", "/bin/sh"])
    path = re.search(r"libc\.so\.6 => (\S+)", text)[1]
    return record("system", " ".join(platform.libc_ver()), path, "", "of the machine", {})


def save(rows):
    """Replaces the rows of the same name in peers.json and keeps the others that still exist."""
    names = {row["name"] for row in rows}
    rows = rows + [row for row in recorded()
                   if row["name"] not in names and Path(row["path"]).exists()]
    order = ["system"] + list(PEERS)
    rows.sort(key=lambda row: order.index(row["name"].removesuffix("-percpu")))
    whole = OUT / "peers.json.new"
    whole.write_text(json.dumps(rows, indent=2) + "\n")
    whole.rename(OUT / "peers.json")


def list_versions(names):
    """What build would build now."""
    for name in names:
        peer = PEERS[name]
        try:
            version = (crate_version(name, peer) if isinstance(peer, Crate)
                       else debian_version(peer))
        except Skip as reason:
            version = f"not available: {reason}"
        print(f"{name:18} {version}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", choices=list(PEERS), metavar="NAME",
                        help="build this peer only (may be repeated): " + ", ".join(PEERS))
    parser.add_argument("--list", action="store_true", help="print versions and build nothing")
    parser.add_argument("--update", action="store_true", help="first raise the lock file")
    arguments = parser.parse_args()
    names = arguments.only or list(PEERS)
    if arguments.update:
        run(["cargo", "update"], cwd=CRATES)
    if arguments.list:
        list_versions(names)
        return 0
    for name in names:
        print(ensure(name), flush=True)
    return 0 if any(map(is_built, names)) else 1


if __name__ == "__main__":
    sys.exit(main())
