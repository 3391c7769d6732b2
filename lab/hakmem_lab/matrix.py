"""The matrix: every family at every setting, as cells. Settings are given by name, so that what a
program understood can be compared with what it was asked (rounds.refuse_misread)."""

from hakmem_lab.subject import Cell, Subject

FIXED_SIZES = (128, 256, 512, 1024)
LIMIT_S = 20.0  # a hundred times what a cell takes on any allocator that is not stuck


def _cell(name: str, family: str, program: str, **settings: object) -> Cell:
    words = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
    subject = Subject((program, *words), limit_s=LIMIT_S, has_json=True)
    return Cell(f"{family}, {name}", family, subject, has_floor=True)


def _random_mixed() -> list[Cell]:
    def cell(name: str, **settings: object) -> Cell:
        return _cell(name, "random mixed", "bench_random_mixed", **settings)

    cells = [cell(f"{slots:,} slots, cold", cycles=100000, slots=slots) for slots in (256, 8192)]
    cells += [cell(f"{slots:,} slots", cycles=10000000, slots=slots)
              for slots in (256, 8192, 200000)]
    cells += [cell(f"{size} B only", cycles=10000000, slots=256, min_size=size, max_size=size)
              for size in FIXED_SIZES]
    return cells


def _tiny_hot() -> list[Cell]:
    settings = [(8, 100), (16, 100), (32, 1), (32, 100), (32, 1000), (32, 10000), (64, 100)]
    cells = [_cell("32 B x 100, cold", "tiny hot", "bench_tiny_hot",
                   size=32, batch=100, cycles=60000)]
    return cells + [_cell(f"{size} B x {batch:,}", "tiny hot", "bench_tiny_hot", size=size,
                          batch=batch, cycles=20000000 // batch) for size, batch in settings]


def _mid_large() -> list[Cell]:
    cells = [_cell(f"{count} threads, cold", "mid-large", "bench_mid_large_mt", threads=count,
                   cycles=40000, slots=2048) for count in (2, 4)]
    return cells + [_cell(f"{count} thread{'s' * (count > 1)}", "mid-large", "bench_mid_large_mt",
                          threads=count, cycles=1600000 // count, slots=2048)
                    for count in (1, 2, 4, 8)]


def _vm_mixed() -> list[Cell]:
    return [
        _cell("512 KiB-2 MiB, cold", "VM mixed", "bench_vm_mixed", cycles=20000, slots=256),
        _cell("512 KiB-2 MiB", "VM mixed", "bench_vm_mixed", cycles=200000, slots=256),
        _cell("32-512 KiB, 2 threads", "VM mixed", "bench_vm_mixed", cycles=100000, slots=256,
              threads=2, min_size=32768, max_size=524288),
    ]


def _larson() -> list[Cell]:
    settings = [(128, 1024, threads) for threads in (1, 2, 4, 8)]
    settings += [(128, 10000, threads) for threads in (1, 8)]
    settings += [(1024, 1024, threads) for threads in (1, 8)]
    settings += [(1024, 10000, threads) for threads in (1, 2, 4, 8)]
    return [_cell(f"8-{size:,} B, {chunks:,} chunks, {threads} thread{'s' * (threads > 1)}",
                  "Larson", "larson", seconds="0.25", min_size=8, max_size=size, chunks=chunks,
                  rounds=100, threads=threads) for size, chunks, threads in settings]


def _hand_over() -> list[Cell]:
    family = "hand-over"
    cells = [_cell(f"producer to consumer, {pairs} pair{'s' * (pairs > 1)}, to {size} B", family,
                   "bench_producer_consumer", pairs=pairs, batch=100, seconds="0.3",
                   min_size=16, max_size=size) for pairs, size in ((1, 256), (4, 256), (1, 4096))]
    cells += [_cell(f"shared slots, {threads} threads", family, "bench_migrate", threads=threads,
                    cycles=4000000 // threads, slots=4096) for threads in (2, 8)]
    return cells + [_cell(f"ring of {threads}", family, "bench_ring", threads=threads, batch=100,
                          cycles=60000 // threads) for threads in (2, 8)]


def _further() -> list[Cell]:
    sharing = [_cell(f"false sharing, {kind}", "further", "bench_false_sharing", threads=2,
                     cycles=50000, writes=1000, size=8, kind=kind)
               for kind in ("active", "passive")]
    calloc = [_cell("calloc, reused", "further", "bench_calloc", size=256, batch=100,
                    cycles=60000, blocks="reused"),
              _cell("calloc, fresh", "further", "bench_calloc", size=256, batch=100, cycles=5000,
                    blocks="fresh")]
    return [*sharing, *calloc,
            _cell("realloc, 16 B to 64 MiB", "further", "bench_realloc_growth", cycles=5,
                  buffers=2),
            _cell("posix_memalign", "further", "bench_aligned", cycles=2000000, slots=256),
            _cell("every call timed, 2 threads", "further", "bench_tail", threads=2,
                  cycles=1000000, slots=8192),
            _cell("empty process", "further", "bench_startup", processes=200)]


def families() -> list[Cell]:
    """All cells of the benchmark programs of this repository."""
    return [*_random_mixed(), *_tiny_hot(), *_mid_large(), *_vm_mixed(), *_larson(),
            *_hand_over(), *_further()]


QUICK = ("random mixed, 256 slots", "random mixed, 8,192 slots", "tiny hot, 32 B x 100",
         "mid-large, 2 threads, cold", "VM mixed, 512 KiB-2 MiB, cold",
         "Larson, 8-128 B, 1,024 chunks, 2 threads",
         "hand-over, producer to consumer, 1 pair, to 256 B")


def quick() -> list[Cell]:
    """One setting or two of each family: for a first look."""
    return [cell for cell in families() if cell.name in QUICK]
