/* Statistics as one JSON object. See stats_text.h. */
#include "report/stats_text.h"

#include "report/report.h"
#include "base/format.h"
#include "cache/thread_cache.h"
#include "os/os.h"
#include "site/policy_load.h"
#include "site/site_rules.h"
#include "slab/central_list.h"
#include "options/options.h"
#include "heap/page_map.h"

static stats_text_t *stats_text; /* the one that is made; there is one caller at a time */

/* ---- JSON ---- */

static void json_add_byte(char byte)
{
    if (stats_text->length < STATS_TEXT_ROOM)
        stats_text->bytes[stats_text->length++] = byte;
}

static void json_add_text(const char *more)
{
    while (*more != '\0')
        json_add_byte(*more++);
}

static void json_add_string(const char *value)
{
    json_add_byte('"');
    for (; *value != '\0'; value++) {
        bool is_plain = *value >= ' ' && *value <= '~'; /* what else there is may be no UTF-8 */
        if (*value == '"' || *value == '\\')
            json_add_byte('\\');
        json_add_byte(is_plain ? *value : '?');
    }
    json_add_byte('"');
}

static void json_begin_field(const char *name)
{
    if (stats_text->wants_comma)
        json_add_byte(',');
    stats_text->wants_comma = true;
    json_add_byte('\n');
    json_add_string(name);
    json_add_text(": ");
}

static void json_begin_object(const char *name)
{
    json_begin_field(name);
    json_add_byte('{');
    stats_text->wants_comma = false;
}

static void json_end_object(void)
{
    json_add_byte('}');
    stats_text->wants_comma = true;
}

static void json_add_number(const char *name, uint64_t value)
{
    line_t line = {.length = 0};
    line_add_number(&line, value);
    line.text[line.length] = '\0';
    json_begin_field(name);
    json_add_text(line.text);
}

/* A member of an object that stands for a list. */
static void json_begin_member(uint64_t number)
{
    line_t line = {.length = 0};
    line_add_number(&line, number);
    line.text[line.length] = '\0';
    json_begin_object(line.text);
}

/* ---- what is told ---- */

/* Of malloc's heap; blocks of heaps that the program has made are among those in use. */
static void stats_add_size(const size_report_t *size, void *nothing)
{
    (void)nothing;
    if (size->slab_count == 0 && size->used_count == 0)
        return;
    json_begin_member(size_classes[size->class].size);
    json_add_number("used", size->used_count);
    json_add_number("cached", size->cached_count);
    json_add_number("free", size->free_count);
    json_add_number("slabs", size->slab_count);
    json_end_object();
}

static NOINLINE void stats_add_statistics(void)
{
    json_begin_object("small_blocks"); /* by their size */
    report_t report = report_make(stats_add_size, NULL);
    json_end_object();
    json_begin_object("statistics");
    for (size_t index = 0; index < report_row_count; index++)
        json_add_number(report_rows[index].field,
                        report_value(&report_rows[index], &report.bytes));
    json_add_number("purged", report.bytes.purged);
    json_end_object();
    json_begin_object("blocks");
    json_add_number("large", report.used_large.count);
    json_add_number("huge", report.used_huge.count);
    json_add_number("cached", report.cached_count);
    json_add_number("free_in_slabs", report.free_in_slabs_count);
    json_end_object();
}

/* What the slabs of a group have, by the size of their blocks. */
static void stats_add_group(unsigned group)
{
    json_begin_member(group);
    for (unsigned class = FIXED_CLASS_COUNT; class < size_classes_made(); class++) {
        central_statistics_t central = central_list_statistics(class);
        if (size_classes[class].group != group || central.slab_count == 0)
            continue;
        json_begin_member(size_classes[class].size);
        json_add_number("slabs", central.slab_count);
        json_add_number("blocks", central.block_count);
        json_add_number("free", central.free_count);
        json_end_object();
    }
    json_end_object();
}

static void stats_add_groups(void)
{
    bool are_used[SITE_GROUPS + 1] = {false};
    for (unsigned class = FIXED_CLASS_COUNT; class < size_classes_made(); class++)
        are_used[size_classes[class].group] = true;
    json_begin_object("groups"); /* by number; their blocks are among the small ones above */
    for (unsigned group = 1; group <= SITE_GROUPS; group++)
        if (are_used[group])
            stats_add_group(group);
    json_end_object();
}

static void stats_add_policy(void)
{
    const policy_t *policy = policy_in_force();
    json_begin_object("policy");
    json_begin_field("state");
    json_add_string(policy_state_name());
    json_add_number("rules", policy == NULL ? 0 : policy->rule_count);
    json_add_number("rules_found", site_rules_found()); /* their calls are in the program's code */
    json_end_object();
}

static void stats_add_call(const char *name, const os_call_t *call)
{
    json_begin_object(name);
    json_add_number("calls", call->count);
    json_add_number("bytes", call->bytes);
    json_add_number("us", call->ns / 1000);
    json_end_object();
}

static void stats_add_system_calls(void)
{
    os_calls_t calls = os_calls();
    json_begin_object("system_calls");
    stats_add_call("mmap", &calls.map);
    stats_add_call("munmap", &calls.unmap);
    stats_add_call("mprotect", &calls.protect);
    stats_add_call("madvise_purge", &calls.purge);
    stats_add_call("madvise_huge_pages", &calls.advise);
    stats_add_call("mremap", &calls.remap);
    stats_add_call("futex_wait", &calls.wait);
    json_end_object();
}

/* Where slabs and large blocks lie; huge ones have mappings elsewhere. */
static void stats_add_window(void)
{
    /* acquire: as in span_at */
    size_t count = __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE);
    json_begin_object("window");
    json_add_number("start", count == 0 ? 0 : window_base);
    json_add_number("end", count == 0 ? 0 : window_base + (count << UNIT_SHIFT));
    json_end_object();
}

static void stats_add_options(void)
{
    json_begin_object("options");
#define OPTION(name, ...) json_add_number(#name, (uint64_t)options.name);
#include "options/option_table.h"
#undef OPTION
    json_end_object();
}

void stats_text_make(stats_text_t *to, uint64_t running_ms)
{
    stats_text = to;
    stats_text->length = 0;
    stats_text->wants_comma = false;
    json_add_byte('{');
    json_begin_field("version");
    json_add_string(report_version);
    json_begin_field("program");
    json_add_string(os_program_name());
    json_add_number("process", os_process_id());
    json_add_number("written_ms", os_calendar_ns() / 1000000);
    json_add_number("running_ms", running_ms);
    thread_cache_counts_t caches = thread_caches_count();
    json_add_number("thread_caches", caches.shared);
    json_add_number("thread_caches_left_by_forks", caches.left_by_forks);
    stats_add_statistics();
    stats_add_window();
    stats_add_groups();
    stats_add_policy();
    stats_add_system_calls();
    stats_add_options();
    json_add_text("}\n");
}
