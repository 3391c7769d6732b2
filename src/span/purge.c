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
#include "span/huge.h"
#include "span/keep.h"
#include "span/page_heap.h"
#include "span/sparse_chunks.h"

/* By number of page heap. */
uint64_t purge_retry_ms[NODES_MOST];
static budget_t budgets[NODES_MOST];
static size_t idle_before[NODES_MOST]; /* units that were idle before they were free */
static uint64_t pause_ms[NODES_MOST];

static void set_pause(unsigned number, uint64_t pause, uint64_t retry_ms)
{
    pause_ms[number] = pause;
    /* relaxed: purge_may_try only wants to know the time */
    __atomic_store_n(&purge_retry_ms[number], retry_ms, __ATOMIC_RELAXED);
}

static void note_refusal(unsigned number, uint64_t now_ms)
{
    uint64_t first = larger_of((size_t)options.purge_delay_ms, LEAST_PAUSE_MS);
    uint64_t pause = pause_ms[number] == 0 ? first : 2 * pause_ms[number];
    pause = smaller_of(pause, LONGEST_PAUSE_MS);
    if (purge_may_try(number, now_ms)) /* else it was tried because the program wanted it */
        set_pause(number, pause, now_ms + pause);
}

/* Purges a piece of the oldest free pages of the heap, if they were freed before `before_ms`, but
 * not many more than `most_units`. Returns the dirty units; 0: there are none, or the kernel
 * refuses. A run that it refuses does not keep the others from going: one page of it may be
 * locked. */
static size_t purge_oldest(unsigned number, uint64_t before_ms, size_t most_units, uint64_t now_ms)
{
    purge_piece_t piece;
    if (!page_heap_take_old(number, before_ms, most_units, &piece))
        return 0;
    for (unsigned index = 0; index < piece.run_count; index++) {
        dirty_run_t *run = &piece.runs[index];
        if (__atomic_load_n(&page_heaps[number].is_advised, __ATOMIC_RELAXED))
            sparse_chunks_note(run->first_unit, run->unit_count);
        run->is_purged = os_purge(unit_address(run->first_unit), run->unit_count << UNIT_SHIFT);
    }
    size_t purged = page_heap_purged(&piece, now_ms);
    if (purged == 0)
        note_refusal(number, now_ms);
    else if (pause_ms[number] != 0)
        set_pause(number, 0, 0);
    return purged;
}

/* Returns bytes. */
static size_t purge_heap(unsigned number, uint64_t before_ms, size_t most_units, uint64_t now_ms)
{
    size_t sum = 0;
    size_t units = 1;
    while (units != 0 && sum < most_units) {
        units = purge_oldest(number, before_ms, most_units - sum, now_ms);
        sum += units;
    }
    return sum << UNIT_SHIFT;
}

size_t purge_excess(size_t most_units, uint64_t now_ms)
{
    size_t bytes = 0;
    for (unsigned number = 0; number < page_heaps_now(); number++)
        if (purge_excess_is_due(number, now_ms))
            bytes += purge_heap(number, UINT64_MAX,
                                smaller_of(purge_excess_units(number), most_units), now_ms);
    return bytes;
}

/* The most units that were in use since the last look, what the span cache keeps among them; *low
 * gets the fewest dirty ones. */
static size_t used_since(unsigned number, size_t *low)
{
    const page_heap_t *heap = &page_heaps[number];
    size_t dirty = count_read(&heap->free.dirty_units);
    *low = smaller_of(page_heap_low_water(number), dirty);
    return count_read(&heap->used_units) + dirty - *low;
}

static size_t purge_heap_idle(unsigned number, size_t low, uint64_t now_ms)
{
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    size_t dirty = count_read(&page_heaps[number].free.dirty_units);
    uint64_t wait_ms = keep_wait_ms();
    low = smaller_of(low + idle_before[number], dirty);
    idle_before[number] = 0;
    size_t idle = budget_idle(&budgets[number], low, dirty, now_ms, delay_ms,
                              smaller_of(delay_ms, wait_ms));
    if (idle == 0 || keep_forever() || !purge_may_try(number, now_ms))
        return 0;
    idle = smaller_of(idle, PURGE_MOST_AT_ONCE >> UNIT_SHIFT);
    size_t purged = purge_heap(number, UINT64_MAX, idle, now_ms);
    budget_take(&budgets[number], purged >> UNIT_SHIFT);
    return purged;
}

/* For how long memory is kept is learnt for all nodes together. */
size_t purge_idle(uint64_t now_ms)
{
    size_t lows[NODES_MOST];
    size_t used = huge_statistics().live_bytes >> UNIT_SHIFT;
    size_t purged = 0;
    unsigned count = page_heaps_now();
    for (unsigned number = 0; number < count; number++)
        used += used_since(number, &lows[number]);
    keep_learn(used - smaller_of(used, span_cache_low_water()), now_ms);
    for (unsigned number = 0; number < count; number++)
        purged += purge_heap_idle(number, lows[number], now_ms);
    return purged;
}

void purge_note_idle(unsigned number, size_t unit_count)
{
    budget_add(&budgets[number], unit_count);
    idle_before[number] += unit_count;
}

bool purge_has_work(void)
{
    size_t dirty = 0;
    for (unsigned number = 0; number < page_heaps_now(); number++)
        dirty += count_read(&page_heaps[number].free.dirty_units);
    return dirty > HELPER_LEAVES >> UNIT_SHIFT;
}

size_t purge_everything(uint64_t now_ms)
{
    size_t purged = 0;
    for (unsigned number = 0; number < page_heaps_now(); number++)
        purged += purge_heap(number, UINT64_MAX, SIZE_MAX, now_ms);
    return purged;
}
