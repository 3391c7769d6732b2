/* Statistics in a file. See stats_file.h. One JSON object, which is written again about once in
 * STATS_PERIOD_MS while calls of the program miss or the helper runs, and at exit. docs/memory.md
 * explains the figures.
 *
 * The file is overwritten in one piece and cut to length then, so that a reader finds an old text
 * or a new one, or at worst none that is whole, and reads again. */
#include "api/stats_file.h"

#include "api/output_path.h"
#include "api/report.h"
#include "base/format.h"
#include "cache/thread_cache.h"
#include "cache/upkeep.h"
#include "os/os.h"
#include "os/processors.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "span/page_heap.h"

#define TEXT_ROOM (32 * KIB)

typedef struct text {
    size_t length;
    bool wants_comma;
    char bytes[TEXT_ROOM];
} text_t;

static text_t *text; /* owned by the thread that has set `is_writing` */
static bool is_writing;
static uint64_t written_ms;
static uint64_t started_ms;
static uint64_t first_process;
static bool has_complained;

/* ---- JSON ---- */

static void add_byte(char byte)
{
    if (text->length < TEXT_ROOM)
        text->bytes[text->length++] = byte;
}

static void add_text(const char *more)
{
    while (*more != '\0')
        add_byte(*more++);
}

static void add_string(const char *value)
{
    add_byte('"');
    for (; *value != '\0'; value++) {
        bool is_plain = *value >= ' ' && *value <= '~'; /* what else there is may be no UTF-8 */
        if (*value == '"' || *value == '\\')
            add_byte('\\');
        add_byte(is_plain ? *value : '?');
    }
    add_byte('"');
}

static void begin_field(const char *name)
{
    if (text->wants_comma)
        add_byte(',');
    text->wants_comma = true;
    add_byte('\n');
    add_string(name);
    add_text(": ");
}

static void begin_object(const char *name)
{
    begin_field(name);
    add_byte('{');
    text->wants_comma = false;
}

static void end_object(void)
{
    add_byte('}');
    text->wants_comma = true;
}

static void add_number(const char *name, uint64_t value)
{
    line_t line = {.length = 0};
    line_add_number(&line, value);
    line.text[line.length] = '\0';
    begin_field(name);
    add_text(line.text);
}

/* ---- what is told ---- */

static void add_statistics(const report_t *report)
{
    begin_object("statistics");
    for (size_t index = 0; index < report_row_count; index++)
        add_number(report_rows[index].field,
                   report_value(&report_rows[index], &report->bytes));
    add_number("purged", report->bytes.purged);
    end_object();
    begin_object("blocks");
    add_number("large", report->used_large.count);
    add_number("huge", report->used_huge.count);
    add_number("cached", report->cached_count);
    add_number("free_in_slabs", report->free_in_slabs_count);
    end_object();
    begin_object("used_by_size"); /* small blocks that the program has */
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        line_t size = {.length = 0};
        line_add_number(&size, size_classes[class].size);
        size.text[size.length] = '\0';
        if (report->used_counts[class] != 0)
            add_number(size.text, report->used_counts[class]);
    }
    end_object();
}

static void add_system_calls(void)
{
    os_calls_t calls = os_calls();
    begin_object("system_calls");
    add_number("mmap", calls.map);
    add_number("munmap", calls.unmap);
    add_number("mprotect", calls.protect);
    add_number("madvise_purge", calls.purge);
    add_number("madvise_huge_pages", calls.advise);
    add_number("mremap", calls.remap);
    add_number("futex_wait", calls.wait);
    end_object();
}

static void add_options(void)
{
    begin_object("options");
#define OPTION(name, ...) add_number(#name, (uint64_t)options.name);
#include "policy/option_table.h"
#undef OPTION
    end_object();
}

static void compose(uint64_t now_ms)
{
    report_t report = report_make();
    text->length = 0;
    text->wants_comma = false;
    add_byte('{');
    begin_field("version");
    add_string(hakmem_version());
    begin_field("program");
    add_string(os_program_name());
    add_number("process", os_process_id());
    add_number("written_ms", os_calendar_ns() / 1000000);
    add_number("running_ms", now_ms - started_ms);
    add_number("thread_caches", thread_caches_count());
    add_number("processor_groups", processor_groups_now());
    add_number("numa_nodes", page_heaps_now() / HEAP_KINDS);
    add_statistics(&report);
    add_system_calls();
    add_options();
    add_text("}\n");
}

/* ---- when ---- */

static void write_now(uint64_t now_ms)
{
    output_path_t path;
    output_path_make(&path, option_texts.stats);
    if (!path.has_process && os_process_id() != first_process)
        return;
    /* acquire, and release below: who writes has the text to itself; others leave it out */
    if (__atomic_exchange_n(&is_writing, true, __ATOMIC_ACQUIRE))
        return;
    compose(now_ms);
    int error = os_write_over(path.text, text->bytes, text->length);
    __atomic_store_n(&is_writing, false, __ATOMIC_RELEASE);
    if (error != 0 && !has_complained)
        output_path_complain(&path, "statistics", error);
    has_complained |= error != 0;
}

static void watch(uint64_t now_ms)
{
    uint64_t last_ms = __atomic_load_n(&written_ms, __ATOMIC_RELAXED);
    if (now_ms - last_ms < STATS_PERIOD_MS)
        return;
    __atomic_store_n(&written_ms, now_ms, __ATOMIC_RELAXED);
    write_now(now_ms);
}

void stats_file_prepare(void)
{
    if (option_texts.stats[0] == '\0')
        return;
    text = os_map(sizeof *text + os_page_size() - sizeof *text % os_page_size());
    if (text == NULL)
        return;
    started_ms = os_clock_ms();
    first_process = os_process_id();
    upkeep_watcher = watch;
}

void stats_file_at_fork_in_child(void)
{
    __atomic_store_n(&is_writing, false, __ATOMIC_RELAXED);
}

void stats_file_at_exit(void)
{
    if (text != NULL)
        write_now(os_clock_ms());
}
