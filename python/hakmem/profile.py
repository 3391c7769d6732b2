"""Runs a program with a heap profile and tells what it found."""

import json
import math
import os
import signal
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hakmem import elf, flame, foreign, frames, next_step, peaks, pprof, symbols
from hakmem.errors import NoSuchProgram, UserError
from hakmem.frames import Name
from hakmem.place import preloaded
from hakmem.pprof import Profile
from hakmem.processes import HANDED_ON, SIGNAL, adopted, started, waited_for
from hakmem.statistics import shown

STDERR = 2
PEAK = ".peak"  # what the name of a profile ends in that was written at the peak
VALUES = {"peak": "inuse_space", "held": "inuse_space", "allocated": "alloc_space",
          "moved": "moved_space", "missed": "alloc_space"}
SHOWN = "peak", "held", "allocated", "moved"
# What was held at the peak is one sample at most, and so many times as much has come and gone: then
# the peak was not seen.
FEW_SAMPLES, MUCH_MORE = 2, 16


@dataclass(frozen=True)
class Ending:
    """How a program has ended."""

    status: int  # as a shell has it: 128 and the signal that ended it
    was_interrupted: bool = False  # by Ctrl-C, whatever the program made of it
    handed_on: int = 0  # a signal that we got, and the program from us; likewise
    wall_s: float = 0.0
    goes_on: bool = False  # a process that it has started does

    def why_not_again(self) -> str:
        """Why it is not run again to be compared; "": it ended well and by itself."""
        if self.was_interrupted or self.handed_on:
            return "was interrupted"
        if self.status:
            return f"ended with status {self.status}"
        return "left a process that goes on: run it in the foreground" if self.goes_on else ""


@dataclass(frozen=True)
class Found:
    """What a program has left of profiles."""

    ending: Ending
    profiles: dict[Path, Profile]  # of processes that have allocated
    peaks: dict[Path, bytes] = field(default_factory=dict)  # of those that held less at the end
    is_loaded: bool = True  # some process had the library
    was_cut: bool = False  # some process had it, and ended before a profile was written
    damaged: Sequence[str] = ()  # what is said of profiles that could not be read

    def nothing_sampled(self, mean_kib: int) -> str:
        """Why there is no profile."""
        if not self.is_loaded:
            why = "the program is statically linked, or removes LD_PRELOAD"
        elif self.was_cut:
            how = "was killed" if self.ending.status > SIGNAL else "left by _exit"
            why = (f"the program {how} within a tenth of a second, or allocates less than "
                   f"{mean_kib} KiB; try --mean 1")
        else:
            why = f"the program allocates less than {mean_kib} KiB; try --mean 1"
        return f"nothing was sampled: {why}"


def run(words: Sequence[str], mean_kib: int, folder: Path,
        settings: Mapping[str, str] | None = None, is_quiet: bool = False,
        watch: peaks.Watch | None = None) -> Found:
    """`watch` looks at the folder meanwhile."""
    elf.library(), pprof.library()  # What is missing is told before the program has run.
    ending = run_with(words, {"HAKMEM_PROFILE": str(folder / "%p.pb"),
                              "HAKMEM_PROFILE_MEAN_KB": str(mean_kib)} | dict(settings or {}),
                      is_quiet, watch.look if watch else None)
    files = sorted(folder.glob("*.pb"))
    profiles, damaged = dict[Path, Profile](), list[str]()
    for path in files:
        try:
            if path.stat().st_size:
                profiles[path] = pprof.read(path)
        except (UserError, OSError) as error:
            damaged.append(str(error))
    found = {path: each for path, each in profiles.items() if each.samples}
    if damaged and not found:
        raise UserError(damaged[0])
    damaged = [f"{each}: it is left out" for each in damaged]
    for each in damaged:
        foreign.tell(f"hakmem: {each}", err=True)
    most = {path: watch.peak_of(path, each) for path, each in found.items()} if watch else {}
    return Found(ending, found, {path: data for path, data in most.items() if data}, bool(files),
                 len(profiles) < len(files), damaged)


def run_with(words: Sequence[str], settings: Mapping[str, str], is_quiet: bool = False,
             look: Callable[[], None] | None = None) -> Ending:
    """Runs a program on HAKMEM. Ctrl-C is for the program, which has got it from the terminal;
    SIGTERM and SIGHUP are handed on to it; all are noted. `look` is called while it runs. A quiet
    one writes to stderr alone."""
    environment = preloaded(dict(os.environ)) | dict(settings)
    noted, start = list[int](), time.monotonic()
    before = signal.getsignal(signal.SIGINT)
    if before != signal.SIG_IGN:  # as a shell without job control leaves it for "command &"
        signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        with (adopted() as go_on,
              started(words, env=environment, stdout=STDERR if is_quiet else None,
                      preexec_fn=_default) as (child, handed_on)):
            status = child.returncode = waited_for(child.pid, look)
            wall_s, goes_on = time.monotonic() - start, go_on()
    except OSError as error:
        raise NoSuchProgram(words[0], error) from None
    finally:
        signal.signal(signal.SIGINT, before)
    return Ending(status if status >= 0 else SIGNAL - status, bool(noted),
                  next(iter(handed_on), 0), wall_s, goes_on)


def _default() -> None:
    for number in (signal.SIGINT, *HANDED_ON):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


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
    """What a function has allocated for a caller, itself or by a library that it calls."""

    size: int = 0
    variance: float = 0.0


def leaves(stacks: list[Stack]) -> list[tuple[str, str, Leaf]]:
    """(where it is allocated, for whom, how much), the most first."""
    held: dict[tuple[str, str], Leaf] = defaultdict(Leaf)
    for stack in stacks:
        names = frames.own_first(stack.names[::-1])
        called = ""
        if len(names) > 1 and names[0].is_library and not names[1].is_library:
            called = frames.short(names.pop(0).function)
            is_own = called.rpartition("::")[2] in {each.function.rpartition("::")[2]
                                                    for each in names if not each.is_library}
            called = "" if is_own else f", in {called}"  # Who inlines may lend its name.
        is_told = len(names) > 1 and (names[0].is_library or not names[1].is_library)
        caller = str(names[1]) if is_told else ""
        leaf = held[f"{names[0]}{called}", caller]
        leaf.size += stack.size
        leaf.variance += stack.variance
    return sorted(((name, caller, leaf) for (name, caller), leaf in held.items()),
                  key=lambda row: -row[2].size)


def _error(size: int, variance: float) -> str:
    return f"± {100 * math.sqrt(variance) / max(size, 1):.0f} %"


def text_of(title: str, stacks: list[Stack], most: int) -> str:
    total = sum(stack.size for stack in stacks)
    error = _error(total, sum(stack.variance for stack in stacks))
    lines = [f"{title}: {shown(total)} {error} (standard error of the sample)"]
    for name, caller, leaf in leaves(stacks)[:most]:
        lines.append(f"{100 * leaf.size / max(total, 1):5.1f} %  {shown(leaf.size):>10} "
                     f"{_error(leaf.size, leaf.variance):>7}  {name}"
                     f"{'  <- ' + caller if caller else ''}")
    return "\n".join(lines)


@dataclass(frozen=True)
class View:
    """What is shown of a process."""

    process: str
    title: str
    stacks: list[Stack]
    held_at_end: int  # bytes
    kept: Path  # the profile that is shown
    page: Path
    steps: list[str]  # what to do next

    def text(self, most: int, hints: Sequence[str] = ()) -> str:
        """The hints and the next steps stand before the rows, which may be more than a screen."""
        title, *rows = text_of(f"process {self.process}, {self.title}", self.stacks,
                               most).split("\n")
        lines = [title, *(f"  -> {step}" for step in (*hints, *self.steps)), *rows]
        if self.kept.suffix == PEAK:
            lines.append(f"at its end it held {shown(self.held_at_end)}: --show held, or "
                         f"{self.kept.with_name(f'{self.process}.pb')}")
        return "\n".join([*lines, f"profile: {self.kept}  (go tool pprof, speedscope.app)",
                          f"flame graph: {self.page}"])

    def facts(self) -> dict[str, Any]:
        """The same for programs; sizes are in bytes, errors are standard errors."""
        return {"process": int(self.process), "what": self.title,
                "bytes": sum(stack.size for stack in self.stacks),
                "error": round(math.sqrt(sum(stack.variance for stack in self.stacks))),
                "held_at_end": self.held_at_end, "profile": str(self.kept),
                "flame_graph": str(self.page), "next_steps": self.steps,
                "rows": [{"bytes": leaf.size, "error": round(math.sqrt(leaf.variance)),
                          "where": name, "caller": caller}
                         for name, caller, leaf in leaves(self.stacks)]}


def _largest(found: Profile) -> int:
    """The longest block that the program has had: it has held at least that."""
    return max(map(next_step.size_of, found.samples), default=0)


def is_by_chance(found: Profile) -> bool:
    """Does what is held come from few samples, and much more has come and gone?"""
    held = found.total(VALUES["peak"])
    return held < FEW_SAMPLES * found.period and found.total("alloc_space") > MUCH_MORE * held


def peak_of(found: Profile) -> int:
    """Bytes that were held at the peak; if it was not seen, more than was."""
    most = max(found.total(VALUES["peak"]), _largest(found))
    return max(most, found.total("alloc_space")) if is_by_chance(found) else most


def view_of(path: Path, found: Found, which: str, out: Path) -> View:
    """Writes the profiles and the flame graph of a process into `out`."""
    end, peak = found.profiles[path], found.peaks.get(path) if which == "peak" else None
    kept = out / f"{path.stem}.pb"
    kept.write_bytes(foreign.read(path))
    if peak:
        kept = kept.with_suffix(PEAK)
        kept.write_bytes(peak)
    told = pprof.parsed(peak) if peak else end
    most = peak_of(told)
    if which == "peak" and told.total(VALUES["peak"]) < most:
        which = "missed"
    at_end = "when it was killed" if end.is_unfinished else "at the end"
    title = {"peak": f"held at the peak, {told.duration_ns / 1e9:.1f} s after its start"
             if peak else f"held {at_end}, the most that was seen", "held": f"held {at_end}",
             "allocated": "allocated", "moved": "freed by another thread",
             "missed": "allocated in all, for its peak was too short to be seen"}[which]
    stacks = named_stacks(told, VALUES[which])
    page = out / f"{path.stem}.html"
    named = [([frames.short(name.function) for name in each.names], each.size) for each in stacks]
    page.write_text(flame.page(flame.tree(named, f"process {path.stem}: {title}")),
                    encoding="utf-8")
    steps = next_step.of_profile(end, most, symbols.names_of(end))
    return View(path.stem, title, stacks, end.total(VALUES["held"]), kept, page, steps)


def profile_program(words: Sequence[str], mean_kib: int, which: str, out: Path, most: int,
                    as_json: bool = False) -> tuple[int, str]:
    """Runs, writes the files into `out`, and returns the program's status and a text."""
    try:
        out.mkdir(parents=True, exist_ok=True)
        is_writable = os.access(out, os.W_OK)
    except OSError as error:
        raise UserError(f"{out}: {error.strerror}") from None
    if not is_writable:
        raise UserError(f"{out}: no file can be written there; name another folder with --out")
    # What the program leaves running may still write there.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        watch = peaks.Watch(Path(folder)) if which == "peak" else None
        found = run(words, mean_kib, Path(folder), is_quiet=as_json, watch=watch)
        views = [view_of(path, found, which, out) for path in found.profiles]
    hints = frames.hint(name for view in views for stack in view.stacks for name in stack.names)
    hints += symbols.hint()
    if not views:
        hints = [found.nothing_sampled(mean_kib)]
    if as_json:
        return found.ending.status, json.dumps(
            {"status": found.ending.status, "processes": [view.facts() for view in views],
             "notes": [*found.damaged, *hints]}, indent=1)
    texts = [view.text(most, () if number else hints) for number, view in enumerate(views)]
    return found.ending.status, "\n\n".join(texts or hints)
