"""Runs a program with a heap profile and tells what it found."""

import math
import os
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hakmem import elf, flame, foreign, pprof, symbols
from hakmem.errors import NoSuchProgram, UserError
from hakmem.place import preloaded
from hakmem.pprof import Profile
from hakmem.statistics import shown
from hakmem.symbols import Name

SIGNAL = 128  # a shell adds the number of the signal that has ended a program
VALUES = {"held": "inuse_space", "allocated": "alloc_space", "moved": "moved_space"}


@dataclass(frozen=True)
class Ending:
    """How a program has ended."""

    status: int  # as a shell has it: 128 and the signal that ended it
    was_interrupted: bool  # by Ctrl-C, whatever the program made of it

    def why_not_again(self) -> str:
        """Why it is not run again to be compared; "": it ended well and by itself."""
        if self.was_interrupted:
            return "was interrupted"
        return f"ended with status {self.status}" if self.status else ""


@dataclass(frozen=True)
class Found:
    """What a program has left of profiles."""

    ending: Ending
    profiles: dict[Path, Profile]  # of processes that have allocated


def run(words: Sequence[str], mean_kib: int, folder: Path,
        settings: Mapping[str, str] | None = None) -> Found:
    elf.library(), pprof.library()  # What is missing is told before the program has run.
    ending = run_with(words, {"HAKMEM_PROFILE": str(folder / "%p.pb"),
                              "HAKMEM_PROFILE_MEAN_KB": str(mean_kib)} | dict(settings or {}))
    profiles = {path: pprof.read(path) for path in sorted(folder.glob("*.pb"))
                if path.stat().st_size}  # 0: of a process that has not ended by exit
    return Found(ending, {path: each for path, each in profiles.items() if each.samples})


def nothing_sampled(ending: Ending, mean_kib: int) -> str:
    """Why there is no profile."""
    if ending.was_interrupted or ending.status > SIGNAL:
        return ("no profile was written: that is done when the program ends by exit, and a signal "
                "may have ended it; end it in another way, or let it handle the signal")
    return (f"nothing was sampled: the program allocates less than {mean_kib} KiB, is static, or "
            "drops LD_PRELOAD; try --mean 1")


def run_with(words: Sequence[str], settings: Mapping[str, str]) -> Ending:
    """Runs a program on HAKMEM. Ctrl-C is for the program, and noted."""
    environment = preloaded(dict(os.environ)) | dict(settings)
    noted: list[int] = []
    previous = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        status = subprocess.run(words, env=environment, check=False, preexec_fn=_default_interrupt
                                ).returncode
    except OSError as error:
        raise NoSuchProgram(words[0], error) from None
    finally:
        signal.signal(signal.SIGINT, previous)
    return Ending(status if status >= 0 else SIGNAL - status, bool(noted))


def _default_interrupt() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@dataclass(frozen=True)
class Stack:
    """What one call stack holds, as estimated from its samples."""

    names: list[Name]  # outermost first
    size: int  # bytes
    variance: float  # of the estimate, bytes squared


def _variance(size: int, blocks: int, mean: int) -> float:
    """Of an estimate from blocks of about one size, each sampled with the probability p and
    counted as 1 / p blocks (docs/profile.md)."""
    if not blocks or not mean:
        return 0.0
    each = size / blocks
    likely = -math.expm1(-each / mean)
    return blocks * each ** 2 * (1 - likely) / likely if likely else 0.0


def named_stacks(profile: Profile, value: str) -> list[Stack]:
    names = symbols.names_of(profile)
    stacks = []
    for sample in profile.samples:
        if size := sample.values[value]:
            chain = [name for address in sample.addresses for name in names[address]]
            blocks = sample.values[value.replace("_space", "_objects")]
            stacks.append(Stack(chain[::-1], size, _variance(size, blocks, profile.period)))
    return stacks


@dataclass
class Leaf:
    """What a function has allocated for a caller."""

    size: int = 0
    variance: float = 0.0


def leaves(stacks: list[Stack]) -> list[tuple[str, str, Leaf]]:
    """(where it is allocated, for whom, how much), the most first."""
    held: dict[tuple[str, str], Leaf] = defaultdict(Leaf)
    for stack in stacks:
        caller = str(stack.names[-2]) if len(stack.names) > 1 else ""
        leaf = held[str(stack.names[-1]), caller]
        leaf.size += stack.size
        leaf.variance += stack.variance
    return sorted(((name, caller, leaf) for (name, caller), leaf in held.items()),
                  key=lambda row: -row[2].size)


def _error(size: int, variance: float) -> str:
    return f"± {100 * math.sqrt(variance) / max(size, 1):.0f} %"


def text_of(title: str, stacks: list[Stack], most: int) -> str:
    total = sum(stack.size for stack in stacks)
    error = _error(total, sum(stack.variance for stack in stacks))
    lines = [f"{title}: {shown(total)} {error} (standard error, for it is a sample)"]
    for name, caller, leaf in leaves(stacks)[:most]:
        lines.append(f"{100 * leaf.size / max(total, 1):5.1f} %  {shown(leaf.size):>10} "
                     f"{_error(leaf.size, leaf.variance):>7}  {name}"
                     f"{'  <- ' + caller if caller else ''}")
    return "\n".join(lines)


def report(found: Found, which: str, out: Path, most: int) -> list[str]:
    """A text for each process, with its files."""
    texts = []
    for path, profile in found.profiles.items():
        stacks = named_stacks(profile, VALUES[which])
        process = path.stem
        kept = out / f"{process}.pb"
        kept.write_bytes(foreign.read(path))
        title = {"held": "held at the end", "allocated": "allocated",
                 "moved": "freed by another thread"}[which]
        page = out / f"{process}.html"
        named = [([name.function for name in each.names], each.size) for each in stacks]
        page.write_text(flame.page(flame.tree(named, f"process {process}: {title}")),
                        encoding="utf-8")
        texts.append(f"{text_of(f'process {process}, {title}', stacks, most)}\n"
                     f"profile: {kept}  (go tool pprof, speedscope.app)\nflame graph: {page}")
    return texts


def profile_program(words: Sequence[str], mean_kib: int, which: str, out: Path,
                    most: int) -> tuple[int, str]:
    """Runs, writes the files into `out`, and returns the program's status and a text."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        is_writable = os.access(out, os.W_OK)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}") from None
    if not is_writable:
        raise UserError(f"{out}: no file can be written there; --out names another folder")
    with tempfile.TemporaryDirectory() as folder:
        found = run(words, mean_kib, Path(folder))
        if not found.profiles:
            return found.ending.status, nothing_sampled(found.ending, mean_kib)
        return found.ending.status, "\n\n".join(report(found, which, out, most) + symbols.hint())
