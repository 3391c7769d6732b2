"""The matrix: every family at every setting, as cells. Settings are given by name, so that what a
program understood can be compared with what it was asked (rounds.refuse_misread).

A name that ends in "cold" means a run as short as a small process. The others are in steady state:
ten million operations or more, all threads together; where each is slow, as many as fit in a
second, and the title says so."""

from hakmem_lab.measure.subject import Cell, Subject

FIXED_SIZES = (128, 256, 512, 1024)
LIMIT_S = 20.0  # a hundred times what a cell takes on any allocator that is not stuck
STEADY = 10_000_000  # operations


def _cell(name: str, family: str, program: str, title: str, **settings: object) -> Cell:
    words = [f"--{key.replace('_', '-')}={value}" for key, value in settings.items()]
    subject = Subject((program, *words), limit_s=LIMIT_S, has_json=True)
    return Cell(f"{family}, {name}", family, subject, title=title)


def _many(count: int, what: str) -> str:
    """"1 thread", "2 threads"."""
    return f"{count:,} {what}{'s' * (count > 1)}"


def _length(operations: int) -> str:
    """The end of a title: how long a run is."""
    if operations >= STEADY:
        return f"{operations / 1e6:.3g} million operations."
    count = f"{operations / 1e6:.3g} million" if operations >= 1e6 else f"{operations:,}"
    return f"{count} operations, not ten million: each of them is slow."


def _cold(operations: int) -> str:
    count = f"{operations / 1e6:.3g} million" if operations >= 1e6 else f"{operations:,}"
    return f"cold, {count} operations."


def _random_mixed() -> list[Cell]:
    def cell(name: str, title: str, **settings: object) -> Cell:
        return _cell(name, "random mixed", "bench_random_mixed", title, **settings)

    doing = "One thread frees or allocates in a slot drawn at random"
    cells = [cell(f"{slots:,} slots, cold", f"{doing}, 16 to 1,024 B in {slots:,} slots; "
                  f"{_cold(100000)}", cycles=100000, slots=slots) for slots in (256, 8192)]
    cells += [cell(f"{slots:,} slots", f"{doing}, 16 to 1,024 B in {slots:,} slots; "
                   f"{_length(STEADY)}", cycles=STEADY, slots=slots)
              for slots in (256, 8192, 200000)]
    cells += [cell(f"{size} B only", f"{doing}, {size:,} B each in 256 slots; {_length(STEADY)}",
                   cycles=STEADY, slots=256, min_size=size, max_size=size)
              for size in FIXED_SIZES]
    return cells


def _tiny_hot() -> list[Cell]:
    settings = [(8, 100), (16, 100), (32, 1), (32, 100), (32, 1000), (32, 10000), (64, 100)]
    blocks = 6_000_000  # a batch of 100, 60,000 times

    def cell(size: int, batch: int, cycles: int, is_cold: bool) -> Cell:
        length = (_cold if is_cold else _length)(2 * batch * cycles)
        title = (f"One thread allocates {_many(batch, 'block')} of {size} B, frees them all, and "
                 f"again; {length}")
        return _cell(f"{size} B x {batch:,}{', cold' * is_cold}", "tiny hot", "bench_tiny_hot",
                     title, size=size, batch=batch, cycles=cycles)

    cells = [cell(size, 100, 500, True) for size in (32, 64)]
    return cells + [cell(size, batch, blocks // batch, False) for size, batch in settings]


def _mid_large() -> list[Cell]:
    def cell(threads: int, operations: int, is_cold: bool) -> Cell:
        length = (_cold if is_cold else _length)(operations)
        title = (f"{_many(threads, 'thread')} freeing or allocating 8 to 32 KiB in 2,048 slots of "
                 f"each thread; {length}")
        return _cell(f"{_many(threads, 'thread')}{', cold' * is_cold}", "mid-large",
                     "bench_mid_large_mt", title, threads=threads, cycles=operations // threads,
                     slots=2048)

    cells = [cell(threads, 40000 * threads, True) for threads in (2, 4)]
    return cells + [cell(threads, STEADY, False) for threads in (1, 2, 4, 8)]


def _vm_mixed() -> list[Cell]:
    def cell(name: str, title: str, **settings: object) -> Cell:
        return _cell(name, "VM mixed", "bench_vm_mixed", title, **settings)

    large = "One thread frees or allocates 512 KiB to 2 MiB in 256 slots"
    return [
        cell("512 KiB-2 MiB, cold", f"{large}; {_cold(20000)}", cycles=20000, slots=256),
        cell("512 KiB-2 MiB", f"{large}; {_length(200000)}", cycles=200000, slots=256),
        cell("32-512 KiB, 2 threads", "2 threads freeing or allocating 32 to 512 KiB in 256 slots "
             f"of each thread; {_length(2000000)}", cycles=1000000, slots=256, threads=2,
             min_size=32768, max_size=524288),
    ]


def _larson() -> list[Cell]:
    settings = [(128, 1024, threads) for threads in (1, 2, 4, 8)]
    settings += [(128, 10000, threads) for threads in (1, 4, 8)]
    settings += [(1024, 1024, threads) for threads in (1, 4, 8)]
    settings += [(1024, 10000, threads) for threads in (1, 2, 4, 8)]

    def cell(size: int, chunks: int, threads: int) -> Cell:
        title = (f"{_many(threads, 'server')} replacing blocks of 8 to {size:,} B, {chunks:,} of "
                 "each; a thread ends after 100 per block and leaves them to its successor; "
                 "0.25 s.")
        return _cell(f"8-{size:,} B, {chunks:,} chunks, {_many(threads, 'thread')}", "Larson",
                     "larson", title, seconds="0.25", min_size=8, max_size=size, chunks=chunks,
                     rounds=100, threads=threads)

    return [cell(*setting) for setting in settings]


def _hand_over() -> list[Cell]:
    def pair(pairs: int, size: int) -> Cell:
        title = (f"{_many(pairs, 'thread')} allocating 16 to {size:,} B in batches of 100, and as "
                 "many that free them; 0.3 s.")
        return _cell(f"producer to consumer, {_many(pairs, 'pair')}, to {size} B", "hand-over",
                     "bench_producer_consumer", title, pairs=pairs, batch=100, seconds="0.3",
                     min_size=16, max_size=size)

    def slots(threads: int) -> Cell:
        title = (f"{threads} threads replacing blocks of 16 to 256 B in 4,096 slots that all "
                 f"share; {_length(STEADY)}")
        return _cell(f"shared slots, {threads} threads", "hand-over", "bench_migrate", title,
                     threads=threads, cycles=STEADY // 2 // threads, slots=4096)

    def ring(threads: int) -> Cell:
        title = (f"{threads} threads in a ring, each allocating batches of 100 that the next one "
                 f"frees; {_length(200 * 60000)}")
        return _cell(f"ring of {threads}", "hand-over", "bench_ring", title, threads=threads,
                     batch=100, cycles=60000 // threads)

    return [*[pair(pairs, size) for pairs, size in ((1, 256), (4, 256), (1, 4096))],
            *[slots(threads) for threads in (2, 8)], *[ring(threads) for threads in (2, 8)]]


def _sharing() -> list[Cell]:
    given = {"active": "blocks that it allocated itself",
             "passive": "blocks that began with one thread's neighbours"}
    return [_cell(f"false sharing, {kind}", "further", "bench_false_sharing",
                  f"2 threads writing 1,000 times to {of_whom}, 8 B each: slow if two of them "
                  "share a cache line; 100,000 blocks, nearly all of the time is writing.",
                  threads=2, cycles=50000, writes=1000, size=8, kind=kind)
            for kind, of_whom in given.items()]


def _further() -> list[Cell]:
    def cell(name: str, program: str, title: str, **settings: object) -> Cell:
        return _cell(name, "further", program, title, **settings)

    return [
        *_sharing(),
        cell("calloc, reused", "bench_calloc", "One thread callocs 100 blocks of 256 B and frees "
             f"them, again and again; {_length(STEADY)}", size=256, batch=100,
             cycles=STEADY // 100, blocks="reused"),
        cell("calloc, fresh", "bench_calloc", "One thread callocs blocks of 256 B and keeps them "
             "all: 128 MB in 500,000 operations.", size=256, batch=100, cycles=5000,
             blocks="fresh"),
        cell("realloc, 16 B to 64 MiB", "bench_realloc_growth", "Two buffers grow in turn by half "
             f"from 16 B to 64 MiB, five times; {_length(390)}", cycles=5, buffers=2),
        cell("posix_memalign", "bench_aligned", "One thread frees or allocates 16 to 1,024 B, "
             f"aligned to 16 B to 4 KiB, in 256 slots; {_length(STEADY)}", cycles=STEADY,
             slots=256),
        cell("every call timed, 2 threads", "bench_tail", "2 threads freeing or allocating 16 to "
             f"1,024 B in 8,192 slots, each call by the clock; {_length(STEADY)}", threads=2,
             cycles=STEADY // 2, slots=8192),
        cell("empty process", "bench_startup", "200 processes, one after the other, that do "
             "nothing: what starting with the allocator costs.", processes=200),
    ]


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
