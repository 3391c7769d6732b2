/* The purge: pages that were not wanted for a while go back to the kernel. See purge.h.
 *
 * The lock of the page heap is released meanwhile: madvise takes microseconds, and the run of pages
 * stands in no list. */
#include "upkeep/purge.h"

#include "base/bits.h"
#include "base/count.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"
#include "keep/budget.h"
#include "keep/keep.h"
#include "heap/page_heap.h"
#include "heap/sparse_chunks.h"

purge_shared_t purge_shared;

static struct {
    /* Of the one thread at a time that looks: */
    budget_t budget;
    size_t idle_before; /* units that were idle before they were free */
    uint64_t pause_ms;  /* written by any thread: a guess, each value is good alone */
} purge_state;

static void purge_set_pause(uint64_t pause, uint64_t retry_ms)
{
    /* relaxed: purge_may_try only wants to know the time */
    __atomic_store_n(&purge_state.pause_ms, pause, __ATOMIC_RELAXED);
    __atomic_store_n(&purge_shared.retry_ms, retry_ms, __ATOMIC_RELAXED);
}

static void purge_note_refusal(uint64_t now_ms)
{
    uint64_t first = larger_of((size_t)options.purge_delay_ms, PURGE_PERIOD_MS);
    uint64_t before = counter_read(&purge_state.pause_ms);
    uint64_t pause = before == 0 ? first : 2 * before;
    pause = smaller_of(pause, SELDOM_PERIOD_MS);
    if (purge_may_try(now_ms)) /* else it was tried because the program wanted it */
        purge_set_pause(pause, now_ms + pause);
}

/* Purges a piece of the oldest free pages of the heap, but not many more than `most_units`. Returns
 * the dirty units; 0: there are none, or the kernel refuses. A run that the kernel refuses does not
 * keep the others from going: one page of it may be locked. */
static size_t purge_oldest(size_t most_units, uint64_t now_ms)
{
    purge_piece_t piece;
    if (!page_heap_take_old(UINT64_MAX, most_units, &piece))
        return 0;
    for (unsigned index = 0; index < piece.run_count; index++) {
        dirty_run_t *run = &piece.runs[index];
        if (__atomic_load_n(&page_heap.is_advised, __ATOMIC_RELAXED))
            sparse_chunks_note(run->first_unit, run->unit_count);
        if (!os_purge(unit_address(run->first_unit), run->unit_count << UNIT_SHIFT))
            run->dirty_count = 0;
    }
    size_t purged = page_heap_purged(&piece, now_ms);
    if (purged == 0)
        purge_note_refusal(now_ms);
    else if (counter_read(&purge_state.pause_ms) != 0)
        purge_set_pause(0, 0);
    return purged;
}

/* Returns dirty units. */
static size_t purge_heap(size_t most_units, uint64_t now_ms)
{
    size_t sum = 0;
    size_t units = 1;
    while (units != 0 && sum < most_units) {
        units = purge_oldest(most_units - sum, now_ms);
        sum += units;
    }
    return sum;
}

size_t purge_oldest_units(size_t most_units, uint64_t since_ms, uint64_t now_ms)
{
    size_t units = purge_may_try(now_ms) ? purge_heap(most_units, now_ms) : 0;
    keep_note_gone(units, since_ms, now_ms);
    return units;
}

size_t purge_due(size_t most_units, uint64_t now_ms)
{
    size_t due = count_read(&purge_shared.due_units);
    size_t claimed = smaller_of(due, most_units);
    /* relaxed: two threads may claim the same, which then goes a look earlier than it should */
    if (claimed == 0 || keep_forever())
        return 0;
    __atomic_store_n(&purge_shared.due_units, due - claimed, __ATOMIC_RELAXED);
    /* Nothing is learnt from what was idle for so long, though the program may want it a moment
     * later: where it grows, say, in the call that gives this back. */
    size_t purged = purge_may_try(now_ms) ? purge_heap(claimed, now_ms) : 0;
    if (purged == 0) /* refused; a look finds out what of it is idle then */
        __atomic_store_n(&purge_shared.due_units, due, __ATOMIC_RELAXED);
    return purged;
}

/* Units that have been idle for as long as they are to wait. */
static size_t purge_idle_units(size_t low, size_t dirty, uint64_t now_ms)
{
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    size_t idle = budget_idle(&purge_state.budget, low, dirty, now_ms, delay_ms, keep_wait_ms());
    return purge_may_try(now_ms) ? idle : 0;
}

/* Units that were due and are still here stay due, except for those that the program has needed
 * since. */
void purge_look(uint64_t now_ms)
{
    size_t dirty = count_read(&page_heap.free.dirty_units);
    size_t low = smaller_of(page_heap_low_water() + purge_state.idle_before, dirty);
    size_t still_due = smaller_of(count_read(&purge_shared.due_units), low);
    size_t idle = purge_idle_units(low - still_due, dirty - still_due, now_ms);
    purge_state.idle_before = 0;
    budget_take(&purge_state.budget, idle);
    /* relaxed: as in purge_due */
    __atomic_store_n(&purge_shared.due_units, still_due + idle, __ATOMIC_RELAXED);
}

void purge_note_idle(size_t unit_count)
{
    budget_add(&purge_state.budget, unit_count);
    purge_state.idle_before += unit_count;
}

size_t purge_everything(uint64_t now_ms)
{
    /* Not more than there is now: a hook of the program may free blocks meanwhile. */
    return purge_heap(count_read(&page_heap.free.dirty_units), now_ms) << UNIT_SHIFT;
}
