"""Statistics as metrics for Prometheus and what else reads OpenMetrics: as a text, or served on
HTTP. prometheus_client writes both.

Names and units follow Prometheus: bytes, seconds, `_total` for what only grows. The program and
the number of its process are labels. What the file says is as of the last call that missed the hit
path, so its age is a metric too."""

import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from hakmem import foreign
from hakmem.errors import UserError
from hakmem.kernel import PROC
from hakmem.statistics import Picture, is_process, picture_of

PACKAGE = "prometheus_client"
LABELS = ("program", "process")
LOOPBACK = "127.0.0.1"
LOOK_S = 1.0  # between two looks whether the process is there
UP = "Whether the statistics of the process could be read."

# Bytes: the name in the statistics, and what it says.
BYTES = {
    "mapped": "mapped for blocks",
    "used": "in blocks that the program has",
    "huge_used": "in huge blocks that the program has; part of used",
    "slab_ends": "at the ends of slabs, where no block fits",
    "cached_threads": "in free blocks cached by threads",
    "cached_depots": "in free blocks on their way between threads",
    "free_in_slabs": "in free blocks of slabs",
    "free_pages": "in free pages that may hold memory",
    "huge_cached": "in freed huge blocks that are kept",
    "clean_pages": "in free pages that hold no memory",
    "purged_in_slabs": "in free pages of slabs that hold no memory",
    "metadata": "in structures of the allocator",
    "resident": "resident in the heap, at most",
}


def families(now: Picture) -> Iterator[Any]:
    """All metrics of a process."""
    core = foreign.needed(f"{PACKAGE}.core", "prometheus-client")
    who = [foreign.plain(now.told["program"]), str(now.told["process"])]

    def gauge(name: str, about: str, value: float, unit: str = "") -> Any:
        made = core.GaugeMetricFamily(f"hakmem_{name}", about, labels=LABELS, unit=unit)
        made.add_metric(who, value)
        return made

    def counter(name: str, about: str, unit: str = "") -> Any:
        return core.CounterMetricFamily(f"hakmem_{name}", about, labels=(*LABELS, "call"),
                                        unit=unit)

    for name, about in BYTES.items():
        yield gauge(name, f"Bytes {about}.", now.bytes[name], "bytes")
    yield gauge("thread_caches", "Threads that have a cache.", now.told["thread_caches"])
    written = now.told["written_ms"] / 1000
    yield gauge("statistics_written_timestamp", "When the process wrote these figures, since 1970.",
                written, "seconds")
    yield gauge("statistics_age", "For how long the process has not written them: no call has "
                "missed the hit path meanwhile.", max(0.0, time.time() - written), "seconds")
    if "running_ms" in now.told:
        yield gauge("running", "For how long the process had run then.",
                    now.told["running_ms"] / 1000, "seconds")
    if now.kernel is not None:
        yield gauge("process_resident", "Bytes of the process that are resident, as the kernel "
                    "says now.", now.kernel.rss, "bytes")
        yield gauge("process_huge_pages", "Bytes of these in huge pages.", now.kernel.huge, "bytes")
    blocks = core.GaugeMetricFamily("hakmem_blocks", "Blocks that the program has, by size; large "
                                    "and huge ones by kind.", labels=(*LABELS, "size"))
    for size, count in now.used_by_size.items():
        blocks.add_metric([*who, str(size)], count)
    for kind, count in now.told["blocks"].items():
        blocks.add_metric([*who, foreign.plain(kind)], count)
    yield blocks
    calls = counter("system_calls", "System calls for memory.")
    moved = counter("system_call", "Bytes that they were about.", "bytes")
    spent = counter("system_call", "Time that they took.", "seconds")
    for name, call in now.told["system_calls"].items():
        labels = [*who, foreign.plain(name)]
        calls.add_metric(labels, call["calls"])
        moved.add_metric(labels, call["bytes"])
        spent.add_metric(labels, call["us"] / 1e6)
    yield from (calls, moved, spent)
    for name, field, unit, scale, about in (
            ("purged", "purge_bytes", "bytes", 1.0, "Bytes that were given back."),
            ("purges", "purge_calls", "", 1.0, "Calls that gave memory back."),
            ("purge", "purge_us", "seconds", 1e6, "Time that giving back took.")):
        made = core.CounterMetricFamily(f"hakmem_{name}", about, labels=LABELS, unit=unit)
        made.add_metric(who, now.bytes[field] / scale)
        yield made


class Collector:
    """Reads the statistics anew at each scrape. While they cannot be read there are none but
    `hakmem_up`, which is 0."""

    def __init__(self, what: str) -> None:
        self.what = what

    def collect(self) -> Iterator[Any]:
        core = foreign.needed(f"{PACKAGE}.core", "prometheus-client")
        try:
            now = picture_of(self.what)
        except UserError:
            yield core.GaugeMetricFamily("hakmem_up", UP, 0)
            return
        yield core.GaugeMetricFamily("hakmem_up", UP, 1)
        yield from families(now)


def text_of(what: str) -> str:
    """In the format of OpenMetrics."""
    picture_of(what)  # An error is told, and not as a metric.
    registry = foreign.needed(PACKAGE, "prometheus-client").CollectorRegistry()
    registry.register(Collector(what))
    writer = foreign.needed(f"{PACKAGE}.openmetrics.exposition", "prometheus-client")
    return str(writer.generate_latest(registry).decode())


def serve(what: str, port: int) -> None:
    """Answers from now on, in a thread, on a port of loopback. The file may come later."""
    try:
        picture_of(what)
    except UserError as error:
        foreign.tell(f"hakmem: until it can be read hakmem_up is 0: {foreign.plain(error)}", True)
    client = foreign.needed(PACKAGE, "prometheus-client")
    registry = client.CollectorRegistry()
    registry.register(Collector(what))
    try:
        client.start_http_server(port, addr=LOOPBACK, registry=registry)
    except OSError as error:
        raise UserError(f"{LOOPBACK}:{port}: {error.strerror}") from None


def wait_for_end(what: str) -> None:
    """Of the process; of a file, which a process of another container may write: of this one."""
    with suppress(KeyboardInterrupt):
        while not is_process(what) or (PROC / what).exists():
            time.sleep(LOOK_S)
