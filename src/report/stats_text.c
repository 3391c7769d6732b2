/* Statistics as one JSON object. See stats_text.h. */
#include "report/stats_text.h"

#include "report/report.h"
#include "base/format.h"
#include "cache/thread_cache.h"
#include "os/os.h"
#include "os/processors.h"
#include "options/options.h"
#include "heap/page_heap.h"
#include "heap/page_map.h"

static stats_text_t *text; /* the one that is made; there is one caller at a time */

/* ---- JSON ---- */

static void add_byte(char byte)
{
    if (text->length < STATS_TEXT_ROOM)
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

/* A member of an object that stands for a list. */
static void begin_member(uint64_t number)
{
    line_t line = {.length = 0};
    line_add_number(&line, number);
    line.text[line.length] = '\0';
    begin_object(line.text);
}

/* ---- what is told ---- */

/* Of malloc's heap; blocks of heaps that the program has made are among those in use. */
static void add_class(const report_t *report, unsigned class)
{
    if (report->slab_counts[class] == 0 && report->used_counts[class] == 0)
        return;
    begin_member(size_classes[class].size);
    add_number("used", report->used_counts[class]);
    add_number("cached", report->cached_counts[class]);
    add_number("free", report->free_counts[class]);
    add_number("slabs", report->slab_counts[class]);
    end_object();
}

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
    begin_object("small_blocks"); /* by their size */
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        add_class(report, class);
    end_object();
}

static void add_call(const char *name, const os_call_t *call)
{
    begin_object(name);
    add_number("calls", call->count);
    add_number("bytes", call->bytes);
    add_number("us", call->ns / 1000);
    end_object();
}

static void add_system_calls(void)
{
    os_calls_t calls = os_calls();
    begin_object("system_calls");
    add_call("mmap", &calls.map);
    add_call("munmap", &calls.unmap);
    add_call("mprotect", &calls.protect);
    add_call("madvise_purge", &calls.purge);
    add_call("madvise_huge_pages", &calls.advise);
    add_call("mremap", &calls.remap);
    add_call("futex_wait", &calls.wait);
    end_object();
}

/* Where slabs and large blocks lie; huge ones have mappings elsewhere. */
static void add_window(void)
{
    /* acquire: as in span_at */
    size_t count = __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE);
    begin_object("window");
    add_number("start", count == 0 ? 0 : window_base);
    add_number("end", count == 0 ? 0 : window_base + (count << UNIT_SHIFT));
    end_object();
}

static void add_options(void)
{
    begin_object("options");
#define OPTION(name, ...) add_number(#name, (uint64_t)options.name);
#include "options/option_table.h"
#undef OPTION
    end_object();
}

void stats_text_make(stats_text_t *to, uint64_t running_ms)
{
    report_t report = report_make();
    text = to;
    text->length = 0;
    text->wants_comma = false;
    add_byte('{');
    begin_field("version");
    add_string(report_version);
    begin_field("program");
    add_string(os_program_name());
    add_number("process", os_process_id());
    add_number("written_ms", os_calendar_ns() / 1000000);
    add_number("running_ms", running_ms);
    add_number("thread_caches", thread_caches_count());
    add_number("processor_groups", processor_groups_now());
    add_statistics(&report);
    add_window();
    add_system_calls();
    add_options();
    add_text("}\n");
}
