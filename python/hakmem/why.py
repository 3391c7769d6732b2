"""Why does a process hold its memory? Sentences, each with the figure that it rests on, what would
bring the memory back, and which option would have changed it."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from hakmem import frames
from hakmem.next_step import KEEPS
from hakmem.statistics import Picture, shown

WORTH_IT = 0.05  # of what is resident, and
WORTH_BYTES = 1 << 20
STARTING_MS = 2000  # a program grows at first: that is no leak
OFTEN = 0.5  # calls a second that unmap
SLACK = 0.1  # of huge pages: so many hold nothing before that is worth a word
PYTHON = f"{frames.MEMRAY}, name the lines of Python that have allocated them (docs/profile.md)"
KEEP_LEAST, KEEP_SHARE = 16 << 20, 16  # as in src/options/tuning.h


@dataclass(frozen=True)
class Reason:
    """A part of the resident memory."""

    cause: str  # a word for tests and tables
    size: int  # bytes
    sentence: str
    remedy: str


def reasons(now: Picture, before: Picture | None = None) -> list[Reason]:
    """The parts that are worth a word, the largest first."""
    total = now.kernel.rss if now.kernel else now.bytes["resident"]
    least = max(total * WORTH_IT, WORTH_BYTES)
    found = [each for each in _all(now, before) if each.size >= least]
    return sorted(found, key=lambda each: -each.size)


def _all(now: Picture, before: Picture | None) -> Iterator[Reason]:
    at = now.bytes
    yield _in_use(now, before)
    yield _free_pages(now)
    threads = now.told["thread_caches"]
    cached = _held(now, at["cached_threads"])
    yield Reason("thread caches", cached,
                 f"{shown(cached)} are free blocks in the caches of {threads} "
                 f"thread{'s' * (threads != 1)}. An idle thread keeps its cache.",
                 "call hakmem_idle() before a thread waits for long; HAKMEM_TINY_FAST_CAP makes "
                 "caches smaller")
    yield Reason("between threads", at["cached_depots"],
                 f"{shown(at['cached_depots'])} are free blocks on their way between threads.",
                 "they go back when no thread takes them for half a second, or at once by "
                 "hakmem_purge()")
    yield _scattered(now)
    yield Reason("own structures", at["metadata"],
                 f"{shown(at['metadata'])} are HAKMEM's own structures. Their idle pages go back, "
                 "except for as many as are in use.", "")
    if now.kernel:
        yield from _of_the_kernel(now, before)
    yield from _comes_and_goes(now, before)


def _given_back(picture: Picture, *names: str) -> tuple[int, int]:
    """(calls, bytes) of these system calls so far."""
    made = [picture.told["system_calls"].get(name, {"calls": 0, "bytes": 0}) for name in names]
    return sum(each["calls"] for each in made), sum(each["bytes"] for each in made)


def _is_newer(now: Picture, before: Picture | None) -> bool:
    """The figures were written anew between two looks."""
    return before is not None and before.told["written_ms"] < now.told["written_ms"]


def _comes_and_goes(now: Picture, before: Picture | None) -> Iterator[Reason]:
    """Huge blocks whose pages go back and are taken again and again; over all of the run where the
    figures were not written twice meanwhile, and then those alone that were unmapped."""
    if before is not None and _is_newer(now, before):
        both = "munmap", "madvise_purge"
        (calls, size), earlier = _given_back(now, *both), _given_back(before, *both)
        calls, size = calls - earlier[0], size - earlier[1]
        seconds = (now.told["written_ms"] - before.told["written_ms"]) / 1000
        if before.bytes["resident"] - now.bytes["resident"] > size / 2:
            return  # It was not taken again.
    else:
        calls, size = _given_back(now, "munmap")
        seconds = now.told.get("running_ms", 0) / 1000
    if calls <= 0 or seconds <= 0 or calls / seconds < OFTEN:
        return
    each = size // calls
    yield Reason("huge blocks come and go", each,
                 f"Huge blocks come and go: {shown(each)} in the mean go back to the kernel "
                 f"{calls / seconds:.1f} times a second and are taken again. The kernel clears "
                 "their pages each time.",
                 f"{KEEPS} keep the pages of freed huge blocks; or let the program use one buffer "
                 "again; hakmem profile PROGRAM names the code")


def _held(now: Picture, size: int) -> int:
    """A part of the heap holds no more memory than the heap: the rest are addresses that nobody
    has touched."""
    if now.kernel is None or now.kernel.heap_rss == 0:
        return size
    return min(size, now.kernel.heap_rss + now.bytes["huge_used"] + now.bytes["huge_cached"])


def _free_pages(now: Picture) -> Reason:
    size = _held(now, now.bytes["free_pages"] + now.bytes["huge_cached"])
    text = f"{shown(size)} are free pages that were in use before, as after a spike. They are kept "
    remedy = "hakmem_purge() or malloc_trim(0) gives them back at once; "
    if now.options.get("free_policy") == 0:
        return Reason("free pages", size, f"{text}for ever, because of free_policy=keep.",
                      f"{remedy}HAKMEM_FREE_POLICY=batch gives them back after a delay")
    text += f"until nobody needs them for {now.options['purge_delay_ms']} ms. "
    if now.options.get("free_policy") == 2 and size > now.bytes["used"] / KEEP_SHARE + KEEP_LEAST:
        text += "So many stay only if the program needed as many again within that time before. "
    if now.options.get("background", 0):
        return Reason("free pages", size, f"{text}Then a thread gives them back.",
                      f"{remedy}HAKMEM_LIMIT_MB bounds them")
    return Reason("free pages", size, f"{text}Then the program's calls give them back.",
                  f"{remedy}HAKMEM_BACKGROUND=1 lets a thread do so; HAKMEM_LIMIT_MB bounds them")


def _by_caches(now: Picture) -> bool:
    """Of the slabs of small blocks the caches hold more than the program."""
    return _in_small(now) < now.bytes["cached_threads"] + now.bytes["cached_depots"]


def _scattered(now: Picture) -> Reason:
    """Free blocks of slabs. What holds the slabs are blocks in use, or in caches."""
    at = now.bytes
    free = at["free_in_slabs"] - at["purged_in_slabs"]
    share = 100 * free / max(free + _in_small(now), 1)
    text = f"up to {shown(_held(now, free))} are free blocks in slabs of small blocks"
    if _by_caches(now):
        return Reason("fragmentation", _held(now, free),
                      f"{text}. Of the other blocks of these slabs the caches hold more than the "
                      "program.",
                      "emptying the caches gives these back too; hakmem_purge() does both")
    text = (f"{text}, between blocks in use: {share:.0f} % of the slabs. A few long-lived blocks "
            "hold many pages.")
    if _is_python(now):  # One function of the interpreter allocates both.
        return Reason("fragmentation", _held(now, free), text, f"of the blocks in use, {PYTHON}; "
                      "make what lives long before what does not")
    return Reason("fragmentation", _held(now, free), text,
                  "hakmem learn PROGRAM finds the code of long-lived blocks, and writes a policy "
                  "that places them apart (docs/learning.md); by hand: hakmem_malloc_group")


def _blocks(picture: Picture) -> tuple[int, int]:
    """(small ones, others) that the program has."""
    return (sum(picture.used_by_size.values()),
            picture.told["blocks"]["large"] + picture.told["blocks"]["huge"])


def _in_small(picture: Picture) -> int:
    return sum(size * count for size, count in picture.used_by_size.items())


def _growth(now: Picture, before: Picture | None) -> tuple[str, float]:
    """(what grows, bytes a second); "": nothing does, or the program starts."""
    if before is None or before.told.get("running_ms", STARTING_MS) < STARTING_MS:
        return "", 0.0
    seconds = (now.told["written_ms"] - before.told["written_ms"]) / 1000
    more = now.bytes["used"] - before.bytes["used"]
    if seconds <= 0 or more <= max(0.01 * now.bytes["used"], 1 << 16):
        return "", 0.0
    is_small = _in_small(now) - _in_small(before) > more / 2
    is_array = not is_small and 0 < _blocks(now)[1] <= _blocks(before)[1]
    return "growing block" if is_array else "leak", more / seconds


def _in_use(now: Picture, before: Picture | None) -> Reason:
    used = now.bytes["used"]
    held = _held(now, used)
    blocks = sum(_blocks(now))
    grows, speed = _growth(now, before)
    text = f"{shown(held)} are {blocks:,} block{'s' * (blocks != 1)} that the program has."
    if held < used:
        text += f" They have {shown(used)} of addresses; the program has not written all of it."
    if grows == "leak":
        text += f" That grows by {shown(speed)} a second, which may be a leak."
    if grows == "growing block":
        return Reason(grows, held, f"{text} That grows by {shown(speed)} a second and the number "
                      "of large blocks does not: an array or a buffer that grows.",
                      "let it reserve its last size at once; " + (
                          PYTHON if _is_python(now) else "hakmem profile PROGRAM names the code"))
    if _is_python(now):
        return Reason(grows or "in use", held, text, f"only the program can free them; {PYTHON}")
    return Reason(grows or "in use", held, text,
                  f"only the program can free them; hakmem {'leaks' if grows else 'profile'} "
                  "PROGRAM names the code that has allocated them (docs/profile.md)")


def _is_python(picture: Picture) -> bool:
    return frames.PYTHON.fullmatch(picture.told["program"]) is not None


def _others(picture: Picture) -> int:
    """What is resident now and not in the figures."""
    kernel, at = picture.kernel, picture.bytes
    assert kernel is not None
    ours = at["metadata"] + at["huge_used"] + at["huge_cached"]
    return kernel.rss - (kernel.heap_rss + ours if kernel.heap_rss else at["resident"])


def _is_steady(now: Picture, before: Picture | None) -> bool:
    """What the figures lack was the same at both looks, though the figures were written anew: so it
    is none of the blocks that came after them."""
    if before is None or before.kernel is None:
        return now.age_s == 0
    return not now.is_old and before.told["written_ms"] < now.told["written_ms"] and \
        abs(_others(now) - _others(before)) < SLACK * _others(now)


def _of_the_kernel(now: Picture, before: Picture | None) -> Iterator[Reason]:
    kernel = now.kernel
    assert kernel is not None
    empty = int(kernel.heap_huge * kernel.zero)
    if kernel.zero >= SLACK:
        yield Reason("huge pages", empty,
                     f"{shown(kernel.heap_huge)} of the heap are in huge pages, of which some "
                     f"{shown(empty)} hold only zeroes: a huge page counts whole, even if "
                     "only a part was written.",
                     "HAKMEM_THP_MIN_HEAP_MB=off turns them off")
    others = _others(now)
    if others > 0:
        what = "code, stacks, mappings that the program or its runtime made itself"
        helps = ""
        if _is_python(now):
            what += ", pools of Python's objects of up to 512 bytes"
            helps = f"PYTHONMALLOC=malloc has no such pools; {PYTHON}"
        yield Reason("not malloc", others,
                     f"{shown(others)} are not from malloc: {what}." if _is_steady(now, before) else
                     f"{shown(others)} are not in these figures, which are {now.age_s:,.1f} s old: "
                     f"{what}, or what was allocated since.", helps)


def facts_of(now: Picture, before: Picture | None = None) -> dict[str, Any]:
    """The same for programs; sizes are in bytes."""
    return {"program": now.told["program"], "process": now.told["process"],
            "figures_are_old_s": round(now.age_s, 3), "has_ended": now.has_ended,
            "resident": now.kernel.rss if now.kernel else now.bytes["resident"],
            "mapped": now.bytes["mapped"], "given_back": now.bytes["purge_bytes"],
            "reasons": [asdict(each) for each in reasons(now, before)]}


def _of_the_end(now: Picture) -> list[str]:
    """What a process has left that is gone: what frees memory while it runs is of no use then. What
    places blocks apart in the next run is."""
    ran_s = now.told.get("running_ms", 0) / 1000
    left = reasons(now)
    lines = [f"{now.name} has ended, or runs elsewhere. Its figures are those {ran_s:,.1f} s after "
             f"its start: {shown(now.bytes['resident'])} resident at most, "
             f"{shown(now.bytes['mapped'])} mapped for blocks."]
    for each in left:
        lines.append(f"* {each.sentence.partition('. ')[0].rstrip('.')}.")
        if each.cause == "fragmentation" and not _by_caches(now):
            lines.append(f"  -> {each.remedy}")
    if not left:
        lines.append(f"Each part held less than {shown(WORTH_BYTES)}.")
    if any(each.cause in ("in use", "leak") for each in left):
        lines.append("  -> hakmem leaks PROGRAM names the code whose blocks were never freed")
    lines.append("The peak is not in these figures: hakmem profile PROGRAM names the code that "
                 "held memory at the peak.")
    if ran_s < STARTING_MS / 1000:
        lines.append("All memory goes back when a program ends. For so short a run only peak and "
                     "time count: hakmem tune PROGRAM searches for options that lower them.")
    return lines


def text_of(now: Picture, before: Picture | None = None) -> str:
    """All of it as plain text."""
    if now.has_ended:
        return "\n".join(_of_the_end(now))
    rss = f"{shown(now.kernel.rss)} resident" if now.kernel else \
        f"{shown(now.bytes['resident'])} resident at most, as it was written"
    lines = [f"{now.name}: {rss}, {shown(now.bytes['mapped'])} mapped for blocks."]
    for each in reasons(now, before):
        lines.append(f"* {each.sentence}")
        if each.remedy:
            lines.append(f"  -> {each.remedy}")
    if now.is_old:
        lines.append(f"These figures are {now.age_s:,.0f} s old: the program has made no call that "
                     "misses the hit path since. The first second after them may be missing.")
    gone = now.bytes["purge_bytes"]
    lines.append(f"Given back so far: {shown(gone)} in {now.bytes['purge_calls']:,} calls, which "
                 f"took {now.bytes['purge_us'] / 1000:,.1f} ms.")
    return "\n".join(lines)
