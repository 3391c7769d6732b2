/* glibc's reports on the heap: mallinfo2, mallinfo, malloc_info, malloc_stats. All are made from
 * one count (report.h), so that they agree with each other and with hakmem_get_statistics. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>

#include "entry/init.h"
#include "report/report.h"
#include "slab/size_class.h"
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
static report_t report_now(size_visitor_t visit, void *context)
{
    return ensure_init() ? report_make(visit, context) : (report_t){0};
}

PUBLIC struct mallinfo2 mallinfo2(void)
{
    report_t report = report_now(NULL, NULL);
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

/* Not on the stack, which may be a short one: to write to a stream may need some KiB of it. */
typedef struct info_text {
    FILE *stream;
    line_t line;
    report_t report;
    size_t free_counts[CLASS_COUNT]; /* blocks of each size, in caches and slabs */
} info_text_t;

/* Writes the line with each # replaced by the next value, and @ by the name. */
static void write_line(info_text_t *to, const char *text, const char *name, const size_t *values)
{
    line_t *line = &to->line;
    line->length = 0;
    for (; *text != '\0'; text++) {
        if (*text == '#')
            line_add_number(line, *values++);
        else
            line_add(line, *text == '@' ? name : (char[2]){*text});
    }
    line_end(line);
    (void)fwrite(line->text, 1, line->length, to->stream);
}

static void write_pair(info_text_t *to, const char *text, size_t first, size_t second)
{
    write_line(to, text, NULL, (size_t[]){first, second});
}

static void note_free(const size_report_t *size, void *counts)
{
    ((size_t *)counts)[size->class] = size->cached_count + size->free_count;
}

/* Free blocks of each size. */
static void write_sizes(info_text_t *to)
{
    for (unsigned class = 1; class < size_classes_made(); class++) {
        size_t size = size_classes[class].size;
        size_t count = to->free_counts[class];
        if (count != 0)
            write_line(to, "<size from=\"#\" to=\"#\" total=\"#\" count=\"#\"/>", NULL,
                       (size_t[]){size, size, count * size, count});
    }
}

static void write_totals(info_text_t *to)
{
    struct mallinfo2 info = info_of(&to->report);
    size_t cached_count = to->report.cached_count;
    size_t cached = to->report.bytes.cached;
    write_pair(to, "<total type=\"fast\" count=\"#\" size=\"#\"/>", cached_count, cached);
    write_pair(to, "<total type=\"rest\" count=\"#\" size=\"#\"/>", info.ordblks - cached_count,
               info.fordblks - smaller_of(info.fordblks, cached));
    write_pair(to, "<total type=\"mmap\" count=\"#\" size=\"#\"/>", info.hblks, info.hblkhd);
    write_pair(to, "<system type=\"current\" size=\"#\"/>", info.arena, 0);
    write_pair(to, "<system type=\"max\" size=\"#\"/>", info.arena, 0);
    write_pair(to, "<aspace type=\"total\" size=\"#\"/>", info.arena, 0);
    write_pair(to, "<aspace type=\"mprotect\" size=\"#\"/>", info.arena, 0);
}

/* XML as glibc's: consumers read <system> and <total>. The most that was ever taken is not kept: in
 * its place stands what is taken now. Behind it the fields of hakmem_get_statistics, by name. All
 * is counted before the first write: the stream may allocate. ENOMEM: there is no room for that. */
PUBLIC int malloc_info(int options, FILE *stream)
{
    if (options != 0)
        return EINVAL;
    size_t room = align_up(sizeof(info_text_t), os_page_size());
    info_text_t *to = os_map(room);
    if (to == NULL)
        return ENOMEM;
    to->stream = stream;
    to->report = report_now(note_free, to->free_counts);
    write_line(to, "<malloc version=\"1\">", NULL, NULL);
    write_line(to, "<heap nr=\"0\">", NULL, NULL);
    write_line(to, "<sizes>", NULL, NULL);
    write_sizes(to);
    write_line(to, "</sizes>", NULL, NULL);
    write_line(to, "</heap>", NULL, NULL);
    write_totals(to);
    for (size_t index = 0; index < report_row_count; index++) {
        size_t value = report_value(&report_rows[index], &to->report.bytes);
        write_line(to, "<hakmem type=\"@\" size=\"#\"/>", report_rows[index].field, &value);
    }
    write_line(to, "</malloc>", NULL, NULL);
    (void)os_release(to, room);
    return 0;
}

/* ---- malloc_stats ---- */

#define GLIBC_WIDTH 17

/* The rows of glibc in its words, which programs look for, then ours. The most that was ever mapped
 * is not kept: in its place stands what is mapped now. */
PUBLIC void malloc_stats(void)
{
    report_t report = report_now(NULL, NULL);
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
