"""Why does a process hold its memory? Sentences, each with the figure that it rests on, what would
bring the memory back, and which option would have changed it."""

from collections.abc import Iterator
from dataclasses import dataclass

from hakmem.statistics import Picture, shown

WORTH_IT = 0.05  # of what is resident, and
WORTH_BYTES = 1 << 20
STARTING_MS = 2000  # a program grows at first: that is no leak
SLACK = 0.1  # of huge pages: so many hold nothing before that is worth a word
KEEP_LEAST, KEEP_SHARE, IDLE_CACHES_WORTH_IT = 16 << 20, 16, 8 << 20  # as in src/options/tuning.h


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
                 f"thread{'s' * (threads != 1)}. A thread that is parked keeps its cache until all "
                 f"hold more than {shown(IDLE_CACHES_WORTH_IT)} and another thread makes calls. "
                 "Three blocks of each size stay.",
                 "call hakmem_idle() before a thread waits for long; HAKMEM_TINY_FAST_CAP makes "
                 "caches smaller")
    yield Reason("between threads", at["cached_depots"],
                 f"{shown(at['cached_depots'])} are free blocks on their way between threads.",
                 "they go when nobody takes them for half a second; hakmem_purge() at once")
    yield _scattered(now)
    yield Reason("own structures", at["metadata"],
                 f"{shown(at['metadata'])} are our own structures. Pages of them in which nothing "
                 "is in use go back, but for as many as are in use.", "")
    if now.kernel:
        yield from _of_the_kernel(now)


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
        return Reason("free pages", size, f"{text}for ever, as free_policy=keep says.",
                      f"{remedy}HAKMEM_FREE_POLICY=batch does after a delay")
    text += f"until nobody needs them for {now.options['purge_delay_ms']} ms. "
    if now.options.get("free_policy") == 2 and size > now.bytes["used"] / KEEP_SHARE + KEEP_LEAST:
        text += "So many stay only where the program wanted as much again within that time. "
    if now.options.get("background", 0):
        return Reason("free pages", size, f"{text}A thread gives them back then.",
                      f"{remedy}HAKMEM_LIMIT_MB bounds them")
    return Reason("free pages", size, f"{text}They go when calls are made.",
                  f"{remedy}HAKMEM_BACKGROUND=1 lets a thread do it; HAKMEM_LIMIT_MB bounds them")


def _scattered(now: Picture) -> Reason:
    """Free blocks of slabs. What holds the slabs are blocks in use, or in caches."""
    at = now.bytes
    free = at["free_in_slabs"] - at["purged_in_slabs"]
    used = sum(size * count for size, count in now.used_by_size.items())
    share = 100 * free / max(free + used, 1)
    text = f"up to {shown(_held(now, free))} are free blocks in slabs of small blocks"
    if used < at["cached_threads"] + at["cached_depots"]:
        return Reason("fragmentation", _held(now, free),
                      f"{text}. The caches hold more of the other blocks than the program does.",
                      "what empties the caches gives these back too; hakmem_purge() does both")
    return Reason("fragmentation", _held(now, free),
                  f"{text}, between blocks in use: {share:.0f} % of the slabs. Few blocks that "
                  "live long hold many pages.",
                  "HAKMEM_PROFILE names the code that they come from; allocate what lives long "
                  "from a heap of its own (hakmem_heap_new)")


def _in_use(now: Picture, before: Picture | None) -> Reason:
    used = now.bytes["used"]
    held = _held(now, used)
    blocks = sum(now.used_by_size.values()) + now.told["blocks"]["large"] + \
        now.told["blocks"]["huge"]
    growth = ""
    if before is not None and before.told.get("running_ms", STARTING_MS) >= STARTING_MS:
        seconds = (now.told["written_ms"] - before.told["written_ms"]) / 1000
        more = used - before.bytes["used"]
        if seconds > 0 and more > max(0.01 * used, 1 << 16):
            growth = f" That grows by {shown(more / seconds)} a second, which may be a leak."
    untouched = f" They have {shown(used)} of addresses; not all of it was written." \
        if held < used else ""
    return Reason("leak" if growth else "in use", held,
                  f"{shown(held)} are {blocks:,} blocks that the program has.{untouched}{growth}",
                  "only the program can free them; HAKMEM_PROFILE names the code that has "
                  "allocated them (docs/profile.md)")


def _of_the_kernel(now: Picture) -> Iterator[Reason]:
    kernel, at = now.kernel, now.bytes
    assert kernel is not None
    empty = int(kernel.heap_huge * kernel.zero)
    if kernel.zero >= SLACK:
        yield Reason("huge pages", empty,
                     f"{shown(kernel.heap_huge)} of the heap are in huge pages, of which some "
                     f"{shown(empty)} hold nothing but zeroes: where only a part of one is "
                     "written, all of it counts.",
                     "HAKMEM_THP_MIN_HEAP_MB=1048576 asks for none")
    ours = at["metadata"] + at["huge_used"] + at["huge_cached"]
    others = kernel.rss - (kernel.heap_rss + ours if kernel.heap_rss else at["resident"])
    if others > 0:
        what = "code, stacks, mappings that the program or its runtime made itself"
        yield Reason("not malloc", others,
                     f"{shown(others)} are not in these figures, which may be old: {what}, or what "
                     "was allocated since." if now.is_old else
                     f"{shown(others)} are not from malloc: {what}.", "")


def text_of(now: Picture, before: Picture | None = None) -> str:
    """All of it as plain text."""
    rss = f"{shown(now.kernel.rss)} resident" if now.kernel else \
        f"{shown(now.bytes['resident'])} resident at most, as it was written"
    lines = [f"{now.name}: {rss}, {shown(now.bytes['mapped'])} mapped for blocks."]
    for each in reasons(now, before):
        lines.append(f"* {each.sentence}")
        if each.remedy:
            lines.append(f"  -> {each.remedy}")
    if now.is_old:
        lines.append(f"These figures are {now.age_s:,.0f} s old: no call has missed the hit path "
                     "since, but for a second behind them, which may be missing.")
    gone = now.bytes["purge_bytes"]
    lines.append(f"Given back so far: {shown(gone)} in {now.bytes['purge_calls']:,} calls, which "
                 f"took {now.bytes['purge_us'] / 1000:,.1f} ms.")
    return "\n".join(lines)
