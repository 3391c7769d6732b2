/* Sums and reports. See report.h. */
#include "api/report.h"

#include "base/config.h"
#include "base/format.h"
#include "cache/depot.h"
#include "cache/thread_cache.h"
#include "harden/fatal.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"
#include "probe/route.h"
#include "slab/central_list.h"
#include "span/huge.h"
#include "span/page_heap.h"

/* Blocks of the class that the program has. Counts taken one after the other need not fit. */
static size_t used_blocks(unsigned class, const central_statistics_t *central, size_t cached)
{
    (void)class;
    size_t out = central->block_count - central->free_count;
    return out > cached ? out - cached : 0;
}

hakmem_statistics_t report_statistics(void)
{
    hakmem_statistics_t sum = {0};
    size_t slab_units = 0;
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        const size_class_t *shape = &size_classes[class];
        central_statistics_t central = central_list_statistics(class);
        size_t cached = depot_block_count(class) + thread_caches_block_count(class);
        sum.cached += cached * shape->size;
        sum.free_in_slabs += central.free_count * shape->size;
        sum.used += used_blocks(class, &central, cached) * shape->size;
        slab_units += central.slab_count * shape->unit_count;
    }
    huge_statistics_t huge = huge_statistics();
    size_t used_units = __atomic_load_n(&page_heap.used_units, __ATOMIC_RELAXED);
    size_t large_units = used_units > slab_units ? used_units - slab_units : 0;
    sum.used += (large_units << UNIT_SHIFT) + huge.live_bytes;
    sum.mapped = (__atomic_load_n(&page_heap.mapped_units, __ATOMIC_RELAXED) << UNIT_SHIFT) +
                 huge.live_bytes + huge.cached_bytes;
    sum.free_pages = __atomic_load_n(&page_heap.dirty_free_units, __ATOMIC_RELAXED) << UNIT_SHIFT;
    sum.metadata = meta_size();
    sum.huge_used = huge.live_bytes;
    sum.huge_cached = huge.cached_bytes;
    sum.purged = __atomic_load_n(&page_heap.purged_units, __ATOMIC_RELAXED) << UNIT_SHIFT;
    os_calls_t calls = os_calls();
    sum.system_calls =
        calls.map + calls.unmap + calls.protect + calls.advise + calls.remap + calls.wait;
    return sum;
}

static void report_class(unsigned class)
{
    central_statistics_t central = central_list_statistics(class);
    size_t cached = depot_block_count(class) + thread_caches_block_count(class);
    size_t used = used_blocks(class, &central, cached);
    if (used == 0)
        return;
    line_t line = {.length = 0};
    line_add(&line, "hakmem: not freed: ");
    line_add_number(&line, used);
    line_add(&line, used == 1 ? " block of " : " blocks of ");
    line_add_number(&line, size_classes[class].size);
    line_add(&line, " bytes");
    line.text[line.length] = '\0';
    complain(line.text);
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
        for (unsigned class = 1; class < CLASS_COUNT; class++)
            report_class(class);
    if (options.free_route_trace)
        report_routes();
}
