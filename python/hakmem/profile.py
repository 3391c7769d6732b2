"""Runs a program with a heap profile and tells what it found."""

import os
import signal
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import flame, pprof, symbols
from hakmem.errors import NoSuchProgram
from hakmem.place import preloaded
from hakmem.pprof import Profile
from hakmem.statistics import shown

VALUES = {"held": "inuse_space", "allocated": "alloc_space", "moved": "moved_space"}


@dataclass(frozen=True)
class Found:
    """What a program has left of profiles."""

    status: int
    profiles: dict[Path, Profile]  # of processes that have allocated


def run(words: Sequence[str], mean_kib: int, folder: Path,
        settings: Mapping[str, str] | None = None) -> Found:
    status = run_with(words, {"HAKMEM_PROFILE": str(folder / "%p.pb"),
                              "HAKMEM_PROFILE_MEAN_KB": str(mean_kib)} | dict(settings or {}))
    profiles = {path: pprof.read(path) for path in sorted(folder.glob("*.pb"))}
    return Found(status, {path: each for path, each in profiles.items() if each.samples})


def run_with(words: Sequence[str], settings: Mapping[str, str]) -> int:
    """Runs a program on HAKMEM; its status as a shell has it: 128 and the signal that ended it."""
    environment = preloaded(dict(os.environ)) | dict(settings)
    previous = signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program
    try:
        status = subprocess.run(words, env=environment, check=False, preexec_fn=_default_interrupt
                                ).returncode
    except OSError as error:
        raise NoSuchProgram(words[0], error) from None
    finally:
        signal.signal(signal.SIGINT, previous)
    return status if status >= 0 else 128 - status


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def named_stacks(profile: Profile, value: str) -> list[tuple[list[str], int]]:
    """Stacks as function names, outermost first, with what each holds."""
    names = symbols.names_of(profile)
    stacks = []
    for sample in profile.samples:
        if sample.values[value]:
            chain = [name for address in sample.addresses for name in names[address]]
            stacks.append((chain[::-1], sample.values[value]))
    return stacks


def leaves(stacks: list[tuple[list[str], int]]) -> list[tuple[str, str, int]]:
    """(function that allocates, its caller, bytes), the most first."""
    held: Counter[tuple[str, str]] = Counter()
    for chain, size in stacks:
        held[chain[-1], chain[-2] if len(chain) > 1 else ""] += size
    return [(name, caller, size) for (name, caller), size in held.most_common()]


def text_of(title: str, stacks: list[tuple[list[str], int]], most: int) -> str:
    total = sum(size for _, size in stacks)
    lines = [f"{title}: {shown(total)}"]
    for name, caller, size in leaves(stacks)[:most]:
        lines.append(f"{100 * size / max(total, 1):5.1f} %  {shown(size):>10}  {name}"
                     f"{'  <- ' + caller if caller else ''}")
    return "\n".join(lines)


def report(found: Found, which: str, out: Path, most: int) -> list[str]:
    """A text for each process, with its files."""
    texts = []
    for path, profile in found.profiles.items():
        stacks = named_stacks(profile, VALUES[which])
        process = path.stem
        kept = out / f"{process}.pb"
        kept.write_bytes(path.read_bytes())
        title = {"held": "held at the end", "allocated": "allocated",
                 "moved": "freed by another thread"}[which]
        page = out / f"{process}.html"
        page.write_text(flame.page(flame.tree(stacks, f"process {process}: {title}")))
        texts.append(f"{text_of(f'process {process}, {title}', stacks, most)}\n"
                     f"profile: {kept}  (go tool pprof, speedscope.app)\nflame graph: {page}")
    return texts


def profile_program(words: Sequence[str], mean_kib: int, which: str, out: Path,
                    most: int) -> tuple[int, str]:
    """Runs, writes the files into `out`, and returns the program's status and a text."""
    with tempfile.TemporaryDirectory() as folder:
        found = run(words, mean_kib, Path(folder))
        if not found.profiles:
            return found.status, ("nothing was sampled: the program allocates less than "
                                  f"{mean_kib} KiB, is static, or drops LD_PRELOAD; try --mean 1")
        out.mkdir(parents=True, exist_ok=True)
        return found.status, "\n\n".join(report(found, which, out, most) + symbols.hint())
