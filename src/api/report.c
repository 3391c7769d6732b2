/* Sums over all layers. See report.h. */
#include "api/report.h"

#include "api/init.h"
#include "base/count.h"
#include "cache/depot.h"
#include "cache/thread_cache.h"
#include "os/meta.h"
#include "os/os.h"
#include "slab/central_list.h"
#include "slab/slab.h"
#include "span/huge.h"
#include "span/page_heap.h"
#include "span/span_cache.h"

/* Blocks of the class that the program has. Counts taken one after the other need not fit. */
static size_t used_blocks(const central_statistics_t *central, size_t cached)
{
    size_t out = central->block_count - central->free_count;
    return out > cached ? out - cached : 0;
}

/* Bytes in so many units; another thread may be changing the number. */
static size_t units_in(const size_t *unit_count)
{
    return count_read(unit_count) << UNIT_SHIFT;
}

size_t report_used_blocks(unsigned class)
{
    central_statistics_t central = central_list_statistics(class);
    return used_blocks(&central, depot_block_count(class) + thread_caches_block_count(class));
}

/* Large blocks that the program has are what is left in the page heaps beside slabs and what the
 * span cache keeps; either heap may have some. A guess while other threads run. */
static size_t large_bytes(void)
{
    size_t used = 0;
    size_t others = span_cache_units();
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++) {
        used += count_read(&page_heaps[kind].used_units);
        others += count_read(&page_heaps[kind].slab_units);
    }
    return (used - smaller_of(used, others)) << UNIT_SHIFT;
}

static size_t large_count(void)
{
    size_t used = 0;
    size_t others = span_cache_count();
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        used += count_read(&page_heaps[kind].used_spans);
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        others += central_list_statistics(class).slab_count;
    return used - smaller_of(used, others);
}

used_t report_used_large(void)
{
    return (used_t){.count = large_count(), .bytes = large_bytes()};
}

used_t report_used_huge(void)
{
    huge_statistics_t huge = huge_statistics();
    return (used_t){.count = huge.live_count, .bytes = huge.live_bytes};
}

report_pieces_t report_pieces(void)
{
    report_pieces_t pieces = {.kept = 0};
    if (!ensure_init())
        return pieces;
    pieces.kept = span_cache_count();
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        pieces.cached += depot_block_count(class) + thread_caches_block_count(class);
        pieces.free_in_slabs += central_list_statistics(class).free_count;
    }
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        pieces.free_runs +=
            count_read(&page_heaps[kind].mapped_units) > count_read(&page_heaps[kind].used_units);
    return pieces;
}

hakmem_statistics_t report_statistics(void)
{
    hakmem_statistics_t sum = {0};
    if (!ensure_init()) /* this may be the first call of the process */
        return sum;
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        const size_class_t *shape = &size_classes[class];
        central_statistics_t central = central_list_statistics(class);
        size_t cached = depot_block_count(class) + thread_caches_block_count(class);
        sum.cached += cached * shape->size;
        sum.free_in_slabs += central.free_count * shape->size;
        sum.used += used_blocks(&central, cached) * shape->size;
    }
    huge_statistics_t huge = huge_statistics();
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++) {
        const page_heap_t *heap = &page_heaps[kind];
        sum.mapped += units_in(&heap->mapped_units);
        sum.free_pages += units_in(&heap->free.dirty_units);
        sum.purged += units_in(&heap->purged_units);
    }
    sum.mapped += huge.mapped_bytes;
    sum.free_pages += span_cache_units() << UNIT_SHIFT;
    sum.used += huge.live_bytes + large_bytes();
    sum.metadata = meta_size();
    sum.huge_used = huge.live_bytes;
    sum.huge_cached = huge.cached_bytes;
    os_calls_t calls = os_calls();
    sum.system_calls =
        calls.map + calls.unmap + calls.protect + calls.advise + calls.remap + calls.wait;
    return sum;
}
