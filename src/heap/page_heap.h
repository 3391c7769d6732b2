/* The page heap: runs of units for slabs and for large blocks. What one of them leaves serves the
 * other, whatever its length. One lock; any thread.
 *
 * Free spans stand in bins by length, dirty ones (which still hold memory) apart from clean ones.
 * A request is served from dirty spans, for memory that is already there costs no page fault. Then
 * come clean ones, and growth. Dirty spans age; purge.c gives those back that were not wanted for a
 * while.
 *
 * Huge pages are a property of the chunks that a heap grows by. They are for memory that the
 * program fills, and each growth is judged by the one before. Blocks no longer than a page mostly
 * fill memory; of longer ones many a program touches only parts. Once the heap is large enough
 * for huge pages, it therefore grows by chunks of their own for the short ones, dense chunks, and
 * the two kinds are judged apart. Then the heap grows before a request takes clean memory of the
 * other kind, but for three cases. Large blocks take it where the program fills them, and everybody
 * does where the kernel has refused or a limit counts addresses. */
#ifndef HAKMEM_HEAP_PAGE_HEAP_H
#define HAKMEM_HEAP_PAGE_HEAP_H

#include "base/types.h"
#include "os/lock.h"
#include "options/tuning.h"
#include "heap/free_spans.h"

/* What a heap grew by. */
typedef struct growth {
    size_t first_unit; /* SIZE_MAX: nothing yet */
    size_t unit_count;
    size_t huge_count;  /* so many of the first of these may have huge pages */
    size_t known_count; /* so many of the first were measured, or passed over */
    bool is_filled;     /* the program had filled what the heap grew by before */
} growth_t;

typedef struct page_heap {
    lock_t lock;
    size_t mapped_units;  /* taken from the kernel */
    size_t used_spans;    /* slabs and large blocks */
    size_t used_units;    /* in slabs and large blocks */
    size_t slab_units;    /* of these, in slabs */
    size_t purged_units;  /* given back so far */
    size_t leaving_units; /* on their way to the kernel: neither free nor in use */
    bool is_advised;      /* some of it may have huge pages */
    bool is_split;        /* it has grown by dense chunks */
    bool is_refused;      /* it could not grow the last time */
    growth_t newest[2];   /* what it grew by last, by unit_is_dense */
    free_spans_t free;
} __attribute__((aligned(CACHE_LINE))) page_heap_t;

extern HIDDEN page_heap_t page_heap;

/* Units leave the heap for the kernel: if it grew by them last, that is no more to be looked at.
 * The caller holds the lock. */
static inline void page_heap_forget_newest(size_t first_unit, size_t unit_count)
{
    for (unsigned dense = 0; dense < 2; dense++) {
        growth_t *newest = &page_heap.newest[dense];
        if (first_unit < newest->first_unit + newest->unit_count &&
            newest->first_unit < first_unit + unit_count)
            *newest = (growth_t){.first_unit = SIZE_MAX};
    }
}

void page_heap_create(void);

/* A span of `unit_count` (> 0) units whose first address is a multiple of `alignment` (a power of
 * two), in state LARGE. *is_zero says whether it surely reads as zero. NULL: no memory. */
span_t *page_heap_alloc(size_t unit_count, size_t alignment, bool *is_zero);

/* The same, one that reads as zero where that is possible. */
span_t *page_heap_alloc_zeroed(size_t unit_count, size_t alignment, bool *is_zero);

/* The same from what is mapped already: the heap does not grow. */
span_t *page_heap_alloc_mapped(size_t unit_count, size_t alignment, bool *is_zero);

/* As page_heap_alloc, in state SLAB and with `class` in the page map, 0 for a slab whose blocks the
 * hit path of free is not to take. `is_dense`: its blocks are no longer than a page. Where the heap
 * cannot grow, it may have down to `least_count` units. */
span_t *page_heap_alloc_slab(size_t unit_count, size_t least_count, size_t alignment,
                             unsigned class, bool is_dense);

/* Takes a large block's span back and joins it with free neighbours. `now_ms`: when it became free.
 */
void page_heap_free(span_t *span, uint64_t now_ms);

/* The same for a CACHED span of which each unit was purged. */
void page_heap_free_clean(span_t *span, uint64_t now_ms);

/* For a LARGE span that was just allocated: the first run of units from *from on that may not read
 * as zero, up to *behind. False: there is none. */
bool page_heap_next_dirty(const span_t *span, size_t *from, size_t *behind);

/* The same for a slab. A bit of `clean` stands for each of its units that was purged, and not
 * touched since. */
void page_heap_free_slab(span_t *span, uint32_t clean, uint64_t now_ms);

/* Cuts a LARGE span down to `unit_count` units and frees the rest. */
void page_heap_shrink(span_t *span, size_t unit_count, uint64_t now_ms);

/* Lengthens a LARGE span to `unit_count` units in its place, if the units behind it are free. */
bool page_heap_extend(span_t *span, size_t unit_count);

/* Is there a free span of so many units that holds memory somewhere? */
bool page_heap_has_warm(size_t unit_count);

/* The least number of dirty free units since the last call. */
size_t page_heap_low_water(void);

/* ---- for purge.c ----
 *
 * A piece of a free span that is on its way to the kernel, in state PURGING: in no list, so that
 * the lock need not be held meanwhile. Its runs of dirty units, whole pages each, go one by one.
 * The rest of the span stays free, so that requests are served from it, however long it is. */

typedef struct dirty_run {
    size_t first_unit;
    size_t unit_count;
    size_t dirty_count; /* of these, the dirty ones; 0 once the kernel has refused to purge them */
} dirty_run_t;

typedef struct purge_piece {
    span_t *span;
    unsigned run_count;
    dirty_run_t runs[RUNS_AT_ONCE];
} purge_piece_t;

/* Takes a piece with no more than `most_units` dirty units (rounded up to pages) out of the oldest
 * dirty span, if that was freed before `before_ms`. Where the heap may have huge pages, the clean
 * units around a run belong to it too, as far as the span goes and within the chunk: a huge page
 * filled them. False: there is none. */
bool page_heap_take_old(uint64_t before_ms, size_t most_units, purge_piece_t *piece);

/* Puts the piece back; what is purged is clean now. Returns how many dirty units that were. If it
 * was none, all that the piece is joined with counts as freed at `now_ms`: what the kernel refuses
 * must not keep older memory from going. */
size_t page_heap_purged(purge_piece_t *piece, uint64_t now_ms);

/* For want of memory for our own structures: `unit_count` free units leave the heap for good. NULL:
 * there are none in one piece. */
void *page_heap_give_up(size_t unit_count);

/* Bytes in whole chunks that are free: what page_heap_release would unmap. */
size_t page_heap_releasable(void);

/* Unmaps whole chunks that are free, up to `most_bytes` of them, so that the limits of the process
 * no longer count them. The addresses stay ours and are mapped again before the window grows.
 * Returns bytes. The caller holds no lock: the program may have put hooks into madvise. */
size_t page_heap_release(size_t most_bytes);

void page_heap_at_fork(fork_phase_t phase);

/* The law: bins, neighbours and counts agree. For tests; takes the lock. */
bool page_heap_is_valid(void);

#endif
