/* The count over all layers. See report.h. Each layer is read under its own locks, one after the
 * other: what moves meanwhile is counted twice or not at all, so every difference stops at 0. */
#include "report/report.h"

#include "base/count.h"
#include "base/format.h"
#include "cache/depot.h"
#include "cache/thread_cache.h"
#include "os/meta.h"
#include "os/os.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "large/huge.h"
#include "heap/page_heap.h"
#include "heap/page_map.h"
#include "heap/span_cache.h"

#define TEXT_OF(value) #value
#define VERSION(major, minor, patch) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(patch)

const char report_version[] =
    VERSION(HAKMEM_VERSION_MAJOR, HAKMEM_VERSION_MINOR, HAKMEM_VERSION_PATCH);

#define ROW(field, text) {#field, text, offsetof(hakmem_statistics_t, field)}

const report_row_t report_rows[] = {
    ROW(mapped, "mapped"),
    ROW(used, "  in use"),
    ROW(huge_used, "    in huge blocks"),
    ROW(slab_ends, "  ends of slabs"),
    ROW(cached, "  cached"),
    ROW(cached_threads, "    by threads"),
    ROW(cached_depots, "    in depots"),
    ROW(free_in_slabs, "  free in slabs"),
    ROW(free_pages, "  free pages, dirty"),
    ROW(cached_large, "    kept large blocks"),
    ROW(huge_cached, "  kept huge blocks"),
    ROW(clean_pages, "  free pages, clean"),
    ROW(purged_in_slabs, "purged in slabs"),
    ROW(metadata, "own structures"),
    ROW(metadata_mapped, "  their addresses"),
    ROW(resident, "resident, at most"),
    ROW(purge_bytes, "given back so far"),
    ROW(purge_calls, "  in calls"),
    ROW(purge_us, "  in microseconds"),
};
const size_t report_row_count = sizeof report_rows / sizeof report_rows[0];

static size_t difference(size_t from, size_t less)
{
    return from - smaller_of(from, less);
}

/* Bytes in so many units; another thread may be changing the number. */
static size_t units_in(const size_t *unit_count)
{
    return count_read(unit_count) << UNIT_SHIFT;
}

/* Adds a class to what is known of its size, and to the sums. */
static void report_add_class(report_t *report, size_report_t *row, unsigned class,
                             size_t in_threads)
{
    hakmem_statistics_t *bytes = &report->bytes;
    const size_class_t *shape = &size_classes[class];
    central_statistics_t central = central_list_statistics(class);
    size_t in_depot = depot_block_count(class);
    size_t out = difference(central.block_count, central.free_count);
    size_t used = difference(out, in_threads + in_depot);
    row->used_count += used;
    row->cached_count += in_threads + in_depot;
    row->free_count += central.free_count;
    row->slab_count += central.slab_count;
    bytes->used += used * shape->size;
    bytes->cached_threads += in_threads * shape->size;
    bytes->cached_depots += in_depot * shape->size;
    bytes->free_in_slabs += central.free_count * shape->size;
    bytes->slab_ends +=
        ((size_t)central.unit_count << UNIT_SHIFT) - central.block_count * shape->size;
    bytes->purged_in_slabs += central.purged_bytes;
    bytes->purged += central.ever_purged_bytes;
}

/* Returns the number of slabs, of malloc's heap. */
static size_t report_add_sizes(report_t *report, size_visitor_t visit, void *context)
{
    uint32_t in_threads[CLASS_COUNT];
    unsigned end = size_classes_made();
    size_t slab_count = 0;
    thread_caches_count_blocks(in_threads);
    for (unsigned number = 1; number < end; number++) {
        size_report_t row = {.class = number, .used_count = private_heaps_used(number)};
        for (unsigned class = number; class < end;
             class = (unsigned)larger_of(class + 1, FIXED_CLASS_COUNT)) /* those of groups */
            if (size_class_as_counted(class) == number)
                report_add_class(report, &row, class, in_threads[class]);
        report->cached_count += row.cached_count;
        report->free_in_slabs_count += row.free_count;
        slab_count += row.slab_count;
        if (visit != NULL && size_class_as_counted(number) == number)
            visit(&row, context);
    }
    return slab_count;
}

/* Large blocks that the program has are what is left in the page heap beside slabs and what the
 * span cache keeps. */
static void report_add_page_heap(report_t *report)
{
    hakmem_statistics_t *bytes = &report->bytes;
    size_t mapped_bytes = units_in(&page_heap.mapped_units);
    size_t used_bytes = units_in(&page_heap.used_units);
    size_t dirty_bytes = units_in(&page_heap.free.dirty_units);
    size_t slab_bytes = units_in(&page_heap.slab_units);
    bytes->mapped += mapped_bytes;
    bytes->purged += units_in(&page_heap.purged_units);
    report->used_large.count += count_read(&page_heap.used_spans);
    report->free_runs += mapped_bytes > used_bytes;
    bytes->cached_large = span_cache_units() << UNIT_SHIFT;
    bytes->free_pages = dirty_bytes + bytes->cached_large;
    bytes->clean_pages = difference(bytes->mapped, used_bytes + dirty_bytes);
    report->used_large.bytes = difference(used_bytes, slab_bytes + bytes->cached_large);
    bytes->used += report->used_large.bytes;
}

static void report_add_private_heaps(report_t *report, const private_statistics_t *heaps)
{
    hakmem_statistics_t *bytes = &report->bytes;
    bytes->used += heaps->used_bytes;
    bytes->free_in_slabs += heaps->free_bytes;
    bytes->slab_ends += heaps->slab_bytes - heaps->used_bytes - heaps->free_bytes;
    report->free_in_slabs_count += heaps->free_count;
}

static void report_add_huge(report_t *report)
{
    hakmem_statistics_t *bytes = &report->bytes;
    huge_statistics_t huge = huge_statistics();
    report->used_huge = (used_t){.count = huge.live_count, .bytes = huge.live_bytes};
    bytes->mapped += huge.mapped_bytes;
    bytes->used += huge.live_bytes;
    bytes->huge_used = huge.live_bytes;
    bytes->huge_cached = huge.cached_bytes;
    bytes->clean_pages += difference(huge.mapped_bytes, huge.live_bytes + huge.cached_bytes);
}

static void report_add_system_calls(hakmem_statistics_t *bytes)
{
    os_calls_t calls = os_calls();
    bytes->system_calls = calls.map.count + calls.unmap.count + calls.protect.count +
                          calls.advise.count + calls.purge.count + calls.remap.count +
                          calls.wait.count;
    bytes->purge_calls = calls.purge.count;
    bytes->purge_bytes = calls.purge.bytes;
    bytes->purge_us = calls.purge.ns / 1000;
}

report_t report_make(size_visitor_t visit, void *context)
{
    report_t report = {0};
    hakmem_statistics_t *bytes = &report.bytes;
    size_t slab_count = report_add_sizes(&report, visit, context);
    private_statistics_t heaps = private_heaps_statistics();
    report_add_private_heaps(&report, &heaps);
    report_add_page_heap(&report);
    /* Of the spans in use some are slabs or are kept; the rest are the program's. */
    report.cached_large_count = span_cache_count();
    size_t others = slab_count + heaps.slab_count + report.cached_large_count;
    report.used_large.count = difference(report.used_large.count, others);
    report_add_huge(&report);
    bytes->cached = bytes->cached_threads + bytes->cached_depots;
    page_map_size_t tables = page_map_size();
    bytes->metadata = tables.resident + meta_touched_size();
    bytes->metadata_mapped = tables.mapped + meta_size();
    bytes->resident = difference(bytes->mapped + bytes->metadata,
                                 bytes->clean_pages + bytes->purged_in_slabs);
    report_add_system_calls(bytes);
    return report;
}

#define NAME_WIDTH 22

void report_write_head(int file, const char *head)
{
    line_t line = {.length = 0};
    line_add(&line, head);
    line_end(&line);
    os_write(file, line.text, line.length);
}

void report_write_figure(int file, const char *name, size_t width, size_t value)
{
    line_t line = {.length = 0};
    line_add(&line, name);
    while (line.length < width)
        line_add(&line, " ");
    line_add(&line, "= ");
    for (size_t power = 1000000000; power > value && power > 1; power /= 10)
        line_add(&line, " ");
    line_add_number(&line, value);
    line_end(&line);
    os_write(file, line.text, line.length);
}

void report_write(int file, const report_t *report)
{
    report_write_head(file, "Where it is, in bytes (docs/memory.md):");
    for (size_t index = 0; index < report_row_count; index++)
        report_write_figure(file, report_rows[index].text, NAME_WIDTH,
                            report_value(&report_rows[index], &report->bytes));
}
