/* The purge: pages that were not wanted for a while go back to the kernel. See purge.h.
 *
 * The lock of the page heap is released meanwhile: madvise takes microseconds, and the run of pages
 * stands in no list. */
#include "span/purge.h"

#include "base/bits.h"
#include "os/os.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "span/budget.h"
#include "span/keep.h"
#include "span/page_heap.h"
#include "span/sparse_chunks.h"

uint64_t purge_retry_ms[HEAP_COUNT];
static budget_t budgets[HEAP_COUNT];
static size_t idle_before[HEAP_COUNT]; /* units that were idle before they were free */
static uint64_t pause_ms[HEAP_COUNT];

static void set_pause(page_heap_kind_t kind, uint64_t pause, uint64_t retry_ms)
{
    pause_ms[kind] = pause;
    /* relaxed: purge_may_try only wants to know the time */
    __atomic_store_n(&purge_retry_ms[kind], retry_ms, __ATOMIC_RELAXED);
}

static void note_refusal(page_heap_kind_t kind, uint64_t now_ms)
{
    uint64_t first = larger_of((size_t)options.purge_delay_ms, LEAST_PAUSE_MS);
    uint64_t pause = pause_ms[kind] == 0 ? first : 2 * pause_ms[kind];
    pause = smaller_of(pause, LONGEST_PAUSE_MS);
    if (purge_may_try(kind, now_ms)) /* else it was tried because the program wanted it */
        set_pause(kind, pause, now_ms + pause);
}

/* Purges a piece of the oldest free pages of the heap, if they were freed before `before_ms`, but
 * not many more than `most_units`. Returns the dirty units; 0: there are none, or the kernel
 * refuses. A run that it refuses does not keep the others from going: one page of it may be
 * locked. */
static size_t purge_oldest(page_heap_kind_t kind, uint64_t before_ms, size_t most_units,
                           uint64_t now_ms)
{
    purge_piece_t piece;
    if (!page_heap_take_old(kind, before_ms, most_units, &piece))
        return 0;
    for (unsigned index = 0; index < piece.run_count; index++) {
        dirty_run_t *run = &piece.runs[index];
        if (__atomic_load_n(&page_heaps[kind].is_advised, __ATOMIC_RELAXED))
            sparse_chunks_note(run->first_unit, run->unit_count);
        run->is_purged = os_purge(unit_address(run->first_unit), run->unit_count << UNIT_SHIFT);
    }
    size_t purged = page_heap_purged(&piece, now_ms);
    if (purged == 0)
        note_refusal(kind, now_ms);
    else if (pause_ms[kind] != 0)
        set_pause(kind, 0, 0);
    return purged;
}

/* Returns bytes. */
static size_t purge_heap(page_heap_kind_t kind, uint64_t before_ms, size_t most_units,
                         uint64_t now_ms)
{
    size_t sum = 0;
    size_t units = 1;
    while (units != 0 && sum < most_units) {
        units = purge_oldest(kind, before_ms, most_units - sum, now_ms);
        sum += units;
    }
    return sum << UNIT_SHIFT;
}

size_t purge_excess(size_t most_units, uint64_t now_ms)
{
    size_t bytes = 0;
    for (page_heap_kind_t kind = 0; kind < HEAP_COUNT; kind++)
        if (purge_excess_is_due(kind, now_ms))
            bytes += purge_heap(kind, UINT64_MAX,
                                smaller_of(purge_excess_units(kind), most_units), now_ms);
    return bytes;
}

static size_t purge_heap_idle(page_heap_kind_t kind, uint64_t delay_ms, uint64_t now_ms)
{
    size_t dirty = count_read(&page_heaps[kind].free.dirty_units);
    size_t low = smaller_of(page_heap_low_water(kind), dirty);
    size_t used = count_read(&page_heaps[kind].used_units) + dirty - low;
    if (kind == HEAP_OF_LARGE) /* what the span cache keeps is free */
        used -= smaller_of(used, (size_t)counter_read(&span_cache_told_units));
    keep_learn(kind, used, now_ms);
    low = smaller_of(low + idle_before[kind], dirty);
    idle_before[kind] = 0;
    size_t idle = budget_idle(&budgets[kind], low, dirty, now_ms, delay_ms,
                              smaller_of(delay_ms, keep_wait_ms(kind)));
    if (idle == 0 || keep_forever() || !purge_may_try(kind, now_ms))
        return 0;
    idle = smaller_of(idle, PURGE_MOST_AT_ONCE >> UNIT_SHIFT);
    size_t purged = purge_heap(kind, UINT64_MAX, idle, now_ms);
    budget_take(&budgets[kind], purged >> UNIT_SHIFT);
    return purged;
}

size_t purge_idle(uint64_t now_ms)
{
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    /* Without the cache of large blocks the pages of their heap are not kept warm either. */
    return purge_heap_idle(HEAP_OF_SMALL, delay_ms, now_ms) +
           purge_heap_idle(HEAP_OF_LARGE, options.bigcache_l25 ? delay_ms : 0, now_ms);
}

void purge_note_idle(page_heap_kind_t kind, size_t unit_count)
{
    budget_add(&budgets[kind], unit_count);
    idle_before[kind] += unit_count;
}

bool purge_has_work(void)
{
    size_t dirty = 0;
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        dirty += count_read(&page_heaps[kind].free.dirty_units);
    return dirty > HELPER_LEAVES >> UNIT_SHIFT;
}

size_t purge_everything(uint64_t now_ms)
{
    return purge_heap(HEAP_OF_SMALL, UINT64_MAX, SIZE_MAX, now_ms) +
           purge_heap(HEAP_OF_LARGE, UINT64_MAX, SIZE_MAX, now_ms);
}
