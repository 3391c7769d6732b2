/* The purge: spans that nobody wanted for a while go back to the kernel. See purge.h.
 *
 * A span is purged whole, with the lock of the page heap released: madvise takes microseconds per
 * page, and meanwhile the span stands in no list. */
#include "span/purge.h"

#include "base/bitmap.h"
#include "os/os.h"
#include "policy/options.h"
#include "span/page_heap.h"

/* Purges the dirty units of a span, one call for each run of them. */
static bool purge_span(const span_t *span)
{
    size_t page = os_page_size();
    size_t end = span->first_unit + span->unit_count;
    bool purged = true;
    size_t first = bitmap_find(window_dirty, span->first_unit, end, true);
    while (first < end) {
        size_t behind = bitmap_find(window_dirty, first, end, false);
        /* With pages larger than a unit only whole pages can go. */
        uintptr_t from = align_up((uintptr_t)unit_address(first), page);
        uintptr_t to = align_down((uintptr_t)unit_address(behind), page);
        if (from != (uintptr_t)unit_address(first) || to != (uintptr_t)unit_address(behind))
            purged = false;
        if (from < to && !os_purge((void *)from, to - from))
            purged = false;
        first = bitmap_find(window_dirty, behind, end, true);
    }
    return purged;
}

static size_t purge_heap(page_heap_kind_t kind, uint64_t before_ms, uint64_t now_ms)
{
    size_t units = 0;
    span_t *span;
    while ((span = page_heap_take_old(kind, before_ms)) != NULL) {
        size_t dirty = span->dirty_count;
        bool purged = purge_span(span);
        page_heap_purged(span, purged, now_ms);
        if (!purged) /* the kernel refuses, or pages are large: do not go round in circles */
            break;
        units += dirty;
    }
    return units << UNIT_SHIFT;
}

static size_t purge_before(uint64_t before_ms, uint64_t now_ms)
{
    size_t bytes = 0;
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        bytes += purge_heap((page_heap_kind_t)kind, before_ms, now_ms);
    return bytes;
}

size_t purge_aged(uint64_t now_ms)
{
    /* Without the cache of large spans nothing is kept warm. */
    uint64_t delay = options.bigcache_l25 ? (uint64_t)options.purge_delay_ms : 0;
    return delay > now_ms ? 0 : purge_before(now_ms - delay, now_ms);
}

size_t purge_everything(uint64_t now_ms)
{
    return purge_before(UINT64_MAX, now_ms);
}
