"""Files that the tools read, as a test wants them."""
import json

from hakmem import pprof

ID = "ab" * 20
MIB = 1 << 20
COUNTS = ("mapped", "used", "huge_used", "slab_ends", "cached_threads", "cached_depots",
          "free_in_slabs", "free_pages", "huge_cached", "clean_pages", "purged_in_slabs",
          "metadata", "resident", "purge_bytes", "purge_calls", "purge_us")


def profile(path="/nonesuch", build_id=ID, place=0x201):
    """One of which a policy is made: what is allocated at `place` stays, what is allocated behind
    it comes and goes."""
    kinds = ["alloc_objects", "alloc_space", "inuse_objects", "inuse_space"]
    texts = [*kinds, path, build_id, "block_size", "samples left out for lack of room: 0"]
    samples = [{"location_id": [1 + number, 1 + number], "label": [{"key": 6, "num": 48}],
                "value": [90, 90 * MIB, kept, kept * MIB]} for number, kept in ((0, 80), (1, 0))]
    message, _ = pprof.library()
    return message(
        sample_type=[{"type": number} for number in range(4)], sample=samples,
        mapping=[{"id": 1, "memory_start": 1 << 40, "memory_limit": 2 << 40, "filename": 4,
                  "build_id": 5}],
        location=[{"id": 1 + number, "mapping_id": 1, "address": (1 << 40) + place + 16 * number}
                  for number in range(2)],
        string_table=[text.encode() for text in texts], period=1 << 16, comment=[7],
    ).SerializeToString()


def statistics(**changes):
    """What HAKMEM_STATS writes; `changes` replace what stands at the top."""
    told = {
        "program": "made up", "process": 7, "written_ms": 1000, "running_ms": 900,
        "thread_caches": 1, "statistics": dict.fromkeys(COUNTS, 50 * MIB),
        "blocks": {"large": 1, "huge": 1}, "small_blocks": {"64": {"used": 3}},
        "window": {"start": 0, "end": 4096},
        "options": {"purge_delay_ms": 500, "free_policy": 1, "background": 0},
        "system_calls": {"mmap": {"calls": 1, "bytes": 4096, "us": 1}}}
    return json.dumps(told | changes).encode()
