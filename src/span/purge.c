/* The purge: pages that nobody wanted for a while go back to the kernel. See purge.h.
 *
 * The lock of the page heap is released meanwhile: madvise takes microseconds, and the run of pages
 * stands in no list. */
#include "span/purge.h"

#include "base/count.h"
#include "os/os.h"
#include "policy/options.h"
#include "span/page_heap.h"

/* Purges a piece of the oldest free pages of the heap, if they were freed before `before_ms`, but
 * not many more than `most_units`. Returns the dirty units; 0: there are none, or the kernel
 * refuses. */
static size_t purge_oldest(page_heap_kind_t kind, uint64_t before_ms, size_t most_units,
                           uint64_t now_ms)
{
    purge_piece_t piece;
    if (!page_heap_take_old(kind, before_ms, most_units, &piece))
        return 0;
    for (unsigned index = 0; index < piece.run_count; index++) {
        dirty_run_t *run = &piece.runs[index];
        run->is_purged = os_purge(unit_address(run->first_unit), run->unit_count << UNIT_SHIFT);
    }
    return page_heap_purged(&piece, now_ms);
}

static size_t purge_heap(page_heap_kind_t kind, uint64_t before_ms, uint64_t now_ms)
{
    size_t sum = 0;
    size_t units;
    while ((units = purge_oldest(kind, before_ms, SIZE_MAX, now_ms)) != 0)
        sum += units;
    return sum << UNIT_SHIFT;
}

size_t purge_excess(uint64_t now_ms)
{
    size_t sum = 0;
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++) {
        size_t excess;
        size_t units = 1;
        while (units != 0 && (excess = purge_excess_units((page_heap_kind_t)kind)) != 0) {
            units = purge_oldest((page_heap_kind_t)kind, UINT64_MAX, excess, now_ms);
            sum += units;
        }
    }
    return sum << UNIT_SHIFT;
}

size_t purge_aged(uint64_t now_ms)
{
    size_t bytes = 0;
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    if (delay <= now_ms)
        bytes += purge_heap(HEAP_OF_SMALL, now_ms - delay, now_ms);
    /* Without the cache of large blocks the pages of their heap are not kept warm either. */
    delay = options.bigcache_l25 ? delay : 0;
    if (delay <= now_ms)
        bytes += purge_heap(HEAP_OF_LARGE, now_ms - delay, now_ms);
    return bytes;
}

size_t purge_everything(uint64_t now_ms)
{
    return purge_heap(HEAP_OF_SMALL, UINT64_MAX, now_ms) +
           purge_heap(HEAP_OF_LARGE, UINT64_MAX, now_ms);
}
