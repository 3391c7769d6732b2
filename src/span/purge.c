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

/* By number of page heap. */
uint64_t purge_retry_ms[NODES_MOST];
size_t purge_due_units;
static budget_t budgets[NODES_MOST];
static size_t idle_before[NODES_MOST]; /* units that were idle before they were free */
static uint64_t pause_ms[NODES_MOST]; /* written by any thread: a guess, each value is good alone */

static void set_pause(unsigned number, uint64_t pause, uint64_t retry_ms)
{
    /* relaxed: purge_may_try only wants to know the time */
    __atomic_store_n(&pause_ms[number], pause, __ATOMIC_RELAXED);
    __atomic_store_n(&purge_retry_ms[number], retry_ms, __ATOMIC_RELAXED);
}

static void note_refusal(unsigned number, uint64_t now_ms)
{
    uint64_t first = larger_of((size_t)options.purge_delay_ms, LEAST_PAUSE_MS);
    uint64_t before = counter_read(&pause_ms[number]);
    uint64_t pause = before == 0 ? first : 2 * before;
    pause = smaller_of(pause, LONGEST_PAUSE_MS);
    if (purge_may_try(number, now_ms)) /* else it was tried because the program wanted it */
        set_pause(number, pause, now_ms + pause);
}

/* Purges a piece of the oldest free pages of the heap, but not many more than `most_units`. Returns
 * the dirty units; 0: there are none, or the kernel refuses. A run that the kernel refuses does not
 * keep the others from going: one page of it may be locked. */
static size_t purge_oldest(unsigned number, size_t most_units, uint64_t now_ms)
{
    purge_piece_t piece;
    if (!page_heap_take_old(number, UINT64_MAX, most_units, &piece))
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
    else if (counter_read(&pause_ms[number]) != 0)
        set_pause(number, 0, 0);
    return purged;
}

/* Returns dirty units. */
static size_t purge_heap(unsigned number, size_t most_units, uint64_t now_ms)
{
    size_t sum = 0;
    size_t units = 1;
    while (units != 0 && sum < most_units) {
        units = purge_oldest(number, most_units - sum, now_ms);
        sum += units;
    }
    return sum;
}

size_t purge_oldest_units(size_t most_units, uint64_t since_ms, uint64_t now_ms)
{
    size_t units = 0;
    unsigned here = page_heap_here();
    unsigned count = page_heaps_now();
    for (unsigned step = 0; step < count && units < most_units; step++) {
        unsigned number = (here + step) % count;
        if (purge_may_try(number, now_ms))
            units += purge_heap(number, most_units - units, now_ms);
    }
    keep_note_gone(units, since_ms, now_ms);
    return units;
}

size_t purge_due(size_t most_units, uint64_t now_ms)
{
    size_t due = count_read(&purge_due_units);
    size_t claimed = smaller_of(due, most_units);
    /* relaxed: two threads may claim the same, which then goes a look earlier than it should */
    if (claimed == 0 || keep_forever())
        return 0;
    __atomic_store_n(&purge_due_units, due - claimed, __ATOMIC_RELAXED);
    uint64_t wait_ms = keep_wait_ms();
    size_t purged = purge_oldest_units(claimed, now_ms - smaller_of(wait_ms, now_ms), now_ms);
    if (purged == 0) /* refused; a look finds out what of it is idle then */
        __atomic_store_n(&purge_due_units, due, __ATOMIC_RELAXED);
    return purged;
}

/* Units of the heap that have been idle for as long as they are to wait. */
static size_t idle_units(unsigned number, size_t low, size_t dirty, uint64_t now_ms)
{
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    size_t idle = budget_idle(&budgets[number], low, dirty, now_ms, delay_ms, keep_wait_ms());
    return purge_may_try(number, now_ms) ? idle : 0;
}

/* What was due and has not gone is due no more as far as it was needed meanwhile. */
void purge_look(uint64_t now_ms)
{
    size_t before = count_read(&purge_due_units);
    size_t due = 0;
    for (unsigned number = 0; number < page_heaps_now(); number++) {
        size_t dirty = count_read(&page_heaps[number].free.dirty_units);
        size_t low = smaller_of(page_heap_low_water(number) + idle_before[number], dirty);
        size_t still_due = smaller_of(before, low);
        before -= still_due;
        size_t idle = idle_units(number, low - still_due, dirty - still_due, now_ms);
        idle_before[number] = 0;
        budget_take(&budgets[number], idle);
        due += still_due + idle;
    }
    /* relaxed: as in purge_due */
    __atomic_store_n(&purge_due_units, due, __ATOMIC_RELAXED);
}

void purge_note_idle(unsigned number, size_t unit_count)
{
    budget_add(&budgets[number], unit_count);
    idle_before[number] += unit_count;
}

size_t purge_everything(uint64_t now_ms)
{
    size_t units = 0;
    /* Not more than there is now: a hook of the program may free blocks meanwhile. */
    for (unsigned number = 0; number < page_heaps_now(); number++)
        units += purge_heap(number, count_read(&page_heaps[number].free.dirty_units), now_ms);
    return units << UNIT_SHIFT;
}
