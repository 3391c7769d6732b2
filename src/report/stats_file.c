/* Statistics for who looks at the process from outside. See stats_file.h.
 *
 * A file is overwritten in one piece and cut to length then, so that a reader finds an old text or
 * a new one, or at worst none that is whole, and reads again. The first miss STATS_PERIOD_MS after
 * the file was written writes the file again. */
#include "report/stats_file.h"

#include "report/output_file.h"
#include "report/report.h"
#include "report/stats_text.h"
#include "base/text.h"
#include "upkeep/upkeep.h"
#include "os/fatal.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"

static struct {
    bool is_writing; /* who has set it owns the next two fields */
    output_file_t file;
    stats_text_t *text;  /* NULL: no file */
    uint64_t written_ms; /* when the file was last written */
    uint64_t started_ms;
    uint64_t first_process; /* the process that was initialised; a child of a fork is another */
} stats_file_state;

/* acquire, and release where the flag is cleared: who writes has the text to itself */
static bool take_text(void)
{
    return !__atomic_exchange_n(&stats_file_state.is_writing, true, __ATOMIC_ACQUIRE);
}

/* The caller has the text. */
static void write_text(uint64_t now_ms)
{
    if (!output_file_begin(&stats_file_state.file))
        return;
    stats_text_make(stats_file_state.text, now_ms - stats_file_state.started_ms);
    if (output_file_append(&stats_file_state.file, stats_file_state.text->bytes,
                           stats_file_state.text->length))
        output_file_end(&stats_file_state.file);
}

/* Keeps the text, so that no other thread is in the midst of writing when the process ends. */
static void write_last(void)
{
    for (unsigned turn = 0; !take_text() && turn < LAST_WAIT_MS; turn++)
        os_sleep(1);
    write_text(os_clock_ms());
}

static void watch_file(uint64_t now_ms)
{
    if (now_ms - __atomic_load_n(&stats_file_state.written_ms, __ATOMIC_RELAXED) <
            STATS_PERIOD_MS ||
        !take_text())
        return;
    __atomic_store_n(&stats_file_state.written_ms, now_ms, __ATOMIC_RELAXED);
    write_text(now_ms);
    __atomic_store_n(&stats_file_state.is_writing, false, __ATOMIC_RELEASE);
}

static bool wants_table(void)
{
    return text_is(option_texts.stats, "exit");
}

void stats_file_prepare(void)
{
    if (option_texts.stats[0] == '\0')
        return;
    stats_file_state.first_process = os_process_id();
    if (wants_table() ||
        !output_file_open(&stats_file_state.file, option_texts.stats, "statistics"))
        return;
    stats_file_state.text = os_map(sizeof *stats_file_state.text + os_page_size() -
                                   sizeof *stats_file_state.text % os_page_size());
    if (stats_file_state.text == NULL)
        return;
    stats_file_state.started_ms = os_clock_ms();
    upkeep_watcher = watch_file;
}

void stats_file_at_fork_in_child(void)
{
    __atomic_store_n(&stats_file_state.is_writing, false, __ATOMIC_RELAXED);
    output_file_at_fork_in_child(&stats_file_state.file, true);
}

void stats_file_at_exit(void)
{
    if (stats_file_state.text != NULL)
        write_last();
    if (!wants_table() || os_process_id() != stats_file_state.first_process || !reports_are_read())
        return;
    report_t report = report_make(NULL, NULL);
    report_write((int)options.report_fd, &report);
}
