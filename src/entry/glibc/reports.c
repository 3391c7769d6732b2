/* glibc's reports on the heap: mallinfo2, mallinfo, malloc_info, malloc_stats. All are made from
 * one count (report.h), so that they agree with each other and with hakmem_get_statistics. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "entry/init.h"
#include "report/report.h"
#include "base/bits.h"
#include "base/format.h"
#include "os/os.h"

/* ---- mallinfo ---- */

/* What the fields mean here; where and field names are those of include/hakmem.h:
 *
 *   hblkhd    large and huge blocks in use          arena     mapped, but for those
 *   uordblks  used, but for those                   fordblks  the rest of arena: all that is free
 *   keepcost  of that, what malloc_trim would give back: free_pages and huge_cached
 *   ordblks   pieces of free memory: blocks in caches and slabs, kept large blocks, one for each
 *             page heap with free pages, and one for all kept huge blocks
 *   hblks     number of large and huge blocks in use: glibc gives these mappings of their own
 *   smblks, fsmblks   0: there are no fastbins, whatever M_MXFAST asks for
 *   usmblks           0, as in glibc */
static struct mallinfo2 info_of(const report_t *report)
{
    const hakmem_statistics_t *bytes = &report->bytes;
    size_t large = report->used_large.bytes + bytes->huge_used;
    size_t arena = bytes->mapped - smaller_of(bytes->mapped, large);
    size_t used = smaller_of(bytes->used - smaller_of(bytes->used, large), arena);
    return (struct mallinfo2){
        .arena = arena,
        .ordblks = report->cached_count + report->free_in_slabs_count +
                   report->cached_large_count + report->free_runs + (bytes->huge_cached != 0),
        .hblks = report->used_large.count + report->used_huge.count,
        .hblkhd = large,
        .uordblks = used,
        .fordblks = arena - used,
        .keepcost = smaller_of(bytes->free_pages + bytes->huge_cached, arena - used),
    };
}

/* This may be the first call of the process. */
static report_t report_now(void)
{
    return ensure_init() ? report_make() : (report_t){0};
}

PUBLIC struct mallinfo2 mallinfo2(void)
{
    report_t report = report_now();
    return info_of(&report);
}

static int narrow(size_t value)
{
    return value > INT32_MAX ? INT32_MAX : (int)value;
}

PUBLIC struct mallinfo mallinfo(void)
{
    struct mallinfo2 wide = mallinfo2();
    return (struct mallinfo){
        .arena = narrow(wide.arena),
        .ordblks = narrow(wide.ordblks),
        .hblks = narrow(wide.hblks),
        .hblkhd = narrow(wide.hblkhd),
        .uordblks = narrow(wide.uordblks),
        .fordblks = narrow(wide.fordblks),
        .keepcost = narrow(wide.keepcost),
    };
}

/* ---- malloc_info ---- */

/* Free blocks of a size class. */
static void write_size(FILE *stream, unsigned class, size_t count)
{
    size_t size = size_classes[class].size;
    if (count != 0)
        fprintf(stream, "<size from=\"%zu\" to=\"%zu\" total=\"%zu\" count=\"%zu\"/>\n", size, size,
                count * size, count);
}

/* XML as glibc's: consumers read <system> and <total>. The most that was ever taken is not kept: in
 * its place stands what is taken now. Behind it the fields of hakmem_get_statistics, by name. */
PUBLIC int malloc_info(int options, FILE *stream)
{
    if (options != 0)
        return EINVAL;
    report_t report = report_now();
    struct mallinfo2 info = info_of(&report);
    size_t cached = report.bytes.cached;
    fprintf(stream,
            "<malloc version=\"1\">\n"
            "<heap nr=\"0\">\n"
            "<sizes>\n");
    for (unsigned class = 1; class < size_classes_made(); class++)
        write_size(stream, class, report.cached_counts[class] + report.free_counts[class]);
    fprintf(stream,
            "</sizes>\n"
            "</heap>\n"
            "<total type=\"fast\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"rest\" count=\"%zu\" size=\"%zu\"/>\n"
            "<total type=\"mmap\" count=\"%zu\" size=\"%zu\"/>\n"
            "<system type=\"current\" size=\"%zu\"/>\n"
            "<system type=\"max\" size=\"%zu\"/>\n"
            "<aspace type=\"total\" size=\"%zu\"/>\n"
            "<aspace type=\"mprotect\" size=\"%zu\"/>\n",
            report.cached_count, cached, info.ordblks - report.cached_count,
            info.fordblks - smaller_of(info.fordblks, cached), info.hblks, info.hblkhd, info.arena,
            info.arena, info.arena, info.arena);
    for (size_t index = 0; index < report_row_count; index++)
        fprintf(stream, "<hakmem type=\"%s\" size=\"%zu\"/>\n", report_rows[index].field,
                report_value(&report_rows[index], &report.bytes));
    fprintf(stream, "</malloc>\n");
    return 0;
}

/* ---- malloc_stats ---- */

#define GLIBC_WIDTH 17

/* The rows of glibc in its words, which programs look for, then ours. The most that was ever mapped
 * is not kept: in its place stands what is mapped now. */
PUBLIC void malloc_stats(void)
{
    report_t report = report_now();
    struct mallinfo2 info = info_of(&report);
    const int file = OS_STANDARD_ERROR;
    report_write_head(file, "Arena 0:");
    report_write_figure(file, "system bytes", GLIBC_WIDTH, info.arena);
    report_write_figure(file, "in use bytes", GLIBC_WIDTH, info.uordblks);
    report_write_head(file, "Total (incl. mmap):");
    report_write_figure(file, "system bytes", GLIBC_WIDTH, info.arena + info.hblkhd);
    report_write_figure(file, "in use bytes", GLIBC_WIDTH, info.uordblks + info.hblkhd);
    report_write_figure(file, "max mmap regions", GLIBC_WIDTH, info.hblks);
    report_write_figure(file, "max mmap bytes", GLIBC_WIDTH, info.hblkhd);
    report_write(file, &report);
}
