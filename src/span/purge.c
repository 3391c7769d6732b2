/* The purge: pages that nobody wanted for a while go back to the kernel. See purge.h.
 *
 * The lock of the page heap is released meanwhile: madvise takes microseconds, and the run of pages
 * stands in no list. */
#include "span/purge.h"

#include "os/os.h"
#include "policy/options.h"
#include "span/page_heap.h"

static size_t purge_heap(page_heap_kind_t kind, uint64_t before_ms, uint64_t now_ms)
{
    size_t purged_bytes = 0;
    span_t *span;
    while ((span = page_heap_take_old(kind, before_ms)) != NULL) {
        size_t size = span_size(span);
        bool purged = os_purge(span_start(span), size);
        page_heap_purged(span, purged, now_ms);
        if (!purged) /* the kernel refuses: another time */
            break;
        purged_bytes += size;
    }
    return purged_bytes;
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
