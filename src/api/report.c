/* Sums and reports. See report.h. */
#include "api/report.h"

#include "base/config.h"
#include "base/count.h"
#include "base/format.h"
#include "cache/depot.h"
#include "cache/thread_cache.h"
#include "harden/fatal.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"
#include "probe/route.h"
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

/* Bytes in so many units; somebody may be changing the number. */
static size_t units_in(const size_t *unit_count)
{
    return count_read(unit_count) << UNIT_SHIFT;
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

hakmem_statistics_t report_statistics(void)
{
    hakmem_statistics_t sum = {0};
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

static void report_not_freed(size_t count, size_t size, const char *what)
{
    if (count == 0)
        return;
    line_t line = {.length = 0};
    line_add(&line, "hakmem: not freed: ");
    line_add_number(&line, count);
    line_add(&line, count == 1 ? " block" : " blocks");
    line_add(&line, what);
    line_add_number(&line, size);
    line_add(&line, " bytes");
    line.text[line.length] = '\0';
    complain(line.text);
}

static void report_leaks(void)
{
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        central_statistics_t central = central_list_statistics(class);
        size_t cached = depot_block_count(class) + thread_caches_block_count(class);
        report_not_freed(used_blocks(&central, cached), size_classes[class].size, " of ");
    }
    report_not_freed(large_count(), large_bytes(), " above 32 KiB, together ");
    huge_statistics_t huge = huge_statistics();
    report_not_freed(huge.live_count, huge.live_bytes, " of 4 MiB or more, together ");
}

static void report_routes(void)
{
    if (!config_checked) {
        complain("hakmem: free_route_trace needs a diagnostic build (cmake --preset checked)");
        return;
    }
    for (unsigned route = 0; route < ROUTE_COUNT; route++) {
        line_t line = {.length = 0};
        line_add(&line, "hakmem: route ");
        line_add(&line, route_names[route]);
        line_add(&line, " ");
        line_add_number(&line, route_counts[route]);
        line.text[line.length] = '\0';
        complain(line.text);
    }
}

void report_at_exit(void)
{
    if (options.leak_report)
        report_leaks();
    if (options.free_route_trace)
        report_routes();
}
