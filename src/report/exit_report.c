/* The reports at exit. See exit_report.h. */
#include "report/exit_report.h"

#include "os/cxx_runtime.h"
#include "report/report.h"
#include "observe/stack_text.h"
#include "base/config.h"
#include "base/format.h"
#include "os/fatal.h"
#include "observe/sampler.h"
#include "observe/samples.h"
#include "os/os.h"
#include "options/options.h"
#include "base/route.h"
#include "check/gate.h"
#include "slab/size_class.h"

/* ---- blocks that were never freed ---- */

/* A size class each, then large and huge blocks. Class 0 is none. */
enum { LARGE_ROW = CLASS_COUNT, HUGE_ROW, ROW_COUNT };

/* The number of sizes that are named, those that hold most: enough to see what leaks. */
#define ROWS_SHOWN 10

typedef struct leaks {
    used_t rows[ROW_COUNT];
} leaks_t;

static void leaks_leave_out_of(used_t *row, size_t size)
{
    if (row->count == 0 || row->bytes < size)
        return;
    row->count--;
    row->bytes -= size;
}

/* The C library frees the buffer of a stream after us, when it has written what is in it. */
static void leaks_leave_out(const void *block, void *context)
{
    leaks_t *leaks = context;
    gate_t gate = gate_look(block);
    if (gate.verdict == VERDICT_SMALL)
        leaks_leave_out_of(&leaks->rows[size_class_as_counted(gate.class)], gate.size);
    else if (gate.verdict == VERDICT_LARGE)
        leaks_leave_out_of(&leaks->rows[LARGE_ROW], gate.size);
    else if (gate.verdict == VERDICT_HUGE)
        leaks_leave_out_of(&leaks->rows[HUGE_ROW], gate.size);
}

static void leaks_add_size(const size_report_t *size, void *context)
{
    leaks_t *leaks = context;
    leaks->rows[size->class] = (used_t){
        .count = size->used_count, .bytes = size->used_count * size_classes[size->class].size};
}

static void count_leaks(leaks_t *leaks)
{
    report_t report = report_make(leaks_add_size, leaks);
    leaks->rows[LARGE_ROW] = report.used_large;
    leaks->rows[HUGE_ROW] = report.used_huge;
    os_visit_stream_buffers(leaks_leave_out, leaks);
}

static void say_not_freed(const used_t *used, const char *which)
{
    line_t line = {.length = 0};
    line_add(&line, "not freed: ");
    line_add_number(&line, used->count);
    line_add(&line, used->count == 1 ? " block" : " blocks");
    line_add(&line, which);
    line_add(&line, ", ");
    line_add_number(&line, used->bytes);
    line_add(&line, " bytes");
    line.text[line.length] = '\0';
    complain(line.text);
}

static void say_row(const leaks_t *leaks, unsigned row)
{
    line_t which = {.length = 0};
    if (row == LARGE_ROW) {
        line_add(&which, " above 32 KiB");
    } else if (row == HUGE_ROW) {
        line_add(&which, " with mappings of their own");
    } else {
        line_add(&which, " of ");
        line_add_number(&which, size_classes[row].size);
        line_add(&which, " bytes");
    }
    which.text[which.length] = '\0';
    say_not_freed(&leaks->rows[row], which.text);
}

/* The row that holds most; 0: none holds anything. */
static unsigned largest_row(const leaks_t *leaks)
{
    unsigned largest = 0;
    for (unsigned row = 1; row < ROW_COUNT; row++)
        if (leaks->rows[row].bytes > leaks->rows[largest].bytes)
            largest = row;
    return largest;
}

/* ---- the same by the code that has allocated them ---- */

typedef struct leaking_site {
    used_t held;
    const uintptr_t *frames;
    unsigned depth;
} leaking_site_t;

typedef struct leaking_sites {
    leaking_site_t rows[ROWS_SHOWN]; /* by bytes, the most first */
} leaking_sites_t;

static used_t held_by(const site_t *site)
{
    return (used_t){.count = (site->allocated.count - site->freed.count) / WEIGHT_ONE,
                    .bytes = site->allocated.bytes - site->freed.bytes};
}

/* Threads and libraries are the loader's, and it frees what it has for them when it likes. */
static bool is_loaders(const site_t *site, const uintptr_t *frames)
{
    return site->depth != 0 && os_is_loader(frames[0]);
}

static void leaks_leave_out_loader(const site_t *site, const uintptr_t *frames, void *context)
{
    leaks_t *leaks = context;
    if (!is_loaders(site, frames))
        return;
    unsigned row = site->block_size <= MID_MAX ? size_class_of(site->block_size) : LARGE_ROW;
    for (size_t count = held_by(site).count; count != 0; count--)
        leaks_leave_out_of(&leaks->rows[row], site->block_size);
}

static void keep_if_large(const site_t *site, const uintptr_t *frames, void *context)
{
    leaking_sites_t *sites = context;
    leaking_site_t found = {.held = held_by(site), .frames = frames, .depth = site->depth};
    if (found.held.count == 0 || is_loaders(site, frames))
        return;
    for (unsigned row = 0; row < ROWS_SHOWN; row++) {
        leaking_site_t *place = &sites->rows[row];
        if (found.held.bytes < place->held.bytes)
            continue;
        leaking_site_t smaller = *place;
        *place = found;
        found = smaller;
    }
}

static void say_site(const leaking_site_t *site)
{
    line_t line = {.length = 0};
    line_add(&line, "not freed: ");
    line_add_number(&line, site->held.count);
    line_add(&line, site->held.count == 1 ? " block, " : " blocks, ");
    line_add_number(&line, site->held.bytes);
    line_add(&line, " bytes, from ");
    stack_text_add(&line, site->frames, site->depth);
    line.text[line.length] = '\0';
    complain(line.text);
}

static void leaks_forget(const void *buffer, void *nothing)
{
    (void)nothing;
    samples_remove(buffer, 0);
}

static void report_leaking_sites(void)
{
    static leaking_sites_t sites SPARSE; /* likewise */
    samples_visit(keep_if_large, &sites);
    for (unsigned row = 0; row < ROWS_SHOWN && sites.rows[row].held.count != 0; row++)
        say_site(&sites.rows[row]);
    if (samples_left_out() != 0)
        complain("not freed: there was no room for the stacks of some blocks");
}

static void report_leaks(void)
{
    static leaks_t leaks SPARSE; /* exit comes here once, maybe on a short stack */
    used_t all = {0};
    cxx_free_pool();
    count_leaks(&leaks);
    if (options.leak_report == LEAKS_BY_STACK)
        samples_visit(leaks_leave_out_loader, &leaks);
    os_visit_stream_buffers(leaks_forget, NULL); /* for a profile that is written now as well */
    for (unsigned row = 1; row < ROW_COUNT; row++) {
        all.count += leaks.rows[row].count;
        all.bytes += leaks.rows[row].bytes;
    }
    bool profile_says_it = options.leak_report == LEAKS_BY_STACK && option_texts.profile[0] != '\0';
    if (all.count == 0 || profile_says_it)
        return;
    say_not_freed(&all, " in all");
    unsigned row;
    for (unsigned shown = 0; shown < ROWS_SHOWN && (row = largest_row(&leaks)) != 0; shown++) {
        say_row(&leaks, row);
        leaks.rows[row] = (used_t){0};
    }
    if (options.leak_report == LEAKS_BY_STACK)
        report_leaking_sites();
}

/* ---- routes ---- */

static void report_routes(void)
{
    if (!config_checked) {
        complain("free_route_trace needs a diagnostic build (cmake --preset checked)");
        return;
    }
    for (unsigned route = 0; route < ROUTE_COUNT; route++) {
        line_t line = {.length = 0};
        line_add(&line, "route ");
        line_add(&line, route_names[route]);
        line_add(&line, " ");
        line_add_number(&line, route_counts[route]);
        line.text[line.length] = '\0';
        complain(line.text);
    }
}

static uint64_t reporting_process;

void report_prepare(void)
{
    if (options.leak_report)
        reporting_process = os_process_id();
}

void report_at_exit(void)
{
    if (options.leak_report && os_process_id() == reporting_process)
        report_leaks();
    if (options.free_route_trace)
        report_routes();
}
