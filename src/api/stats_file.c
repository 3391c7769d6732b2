/* Statistics for who looks at the process from outside. See stats_file.h.
 *
 * A file is overwritten in one piece and cut to length then, so that a reader finds an old text or
 * a new one, or at worst none that is whole, and reads again. It is written again STATS_PERIOD_MS
 * after it was, if calls of the program have missed since. Where the program makes no further call,
 * the helper thread writes it. */
#include "api/stats_file.h"

#include <signal.h>

#include "api/output_file.h"
#include "api/report.h"
#include "api/stats_text.h"
#include "base/text.h"
#include "cache/upkeep.h"
#include "harden/fatal.h"
#include "os/helper.h"
#include "os/os.h"
#include "policy/options.h"
#include "policy/tuning.h"

static stats_text_t *text; /* owned by the thread that has set `is_writing`; NULL: no file */
static bool is_writing;
static uint64_t written_ms;
static uint64_t started_ms;
static uint64_t first_process;
static bool has_complained;
static bool has_moved;    /* the program has missed since the helper wrote */
static bool is_asked_for; /* by the signal */

/* ---- a file ---- */

/* acquire, and release where the flag is cleared: who writes has the text to itself */
static bool take_text(void)
{
    return !__atomic_exchange_n(&is_writing, true, __ATOMIC_ACQUIRE);
}

/* The caller has the text. */
static void write_text(uint64_t now_ms)
{
    output_path_t path;
    output_path_make(&path, option_texts.stats);
    if (!path.has_process && os_process_id() != first_process)
        return;
    stats_text_make(text, now_ms - started_ms);
    int error = os_write_over(path.text, text->bytes, text->length);
    if (error != 0 && !has_complained)
        output_path_complain(&path, "statistics", error);
    has_complained |= error != 0;
}

static void write_now(uint64_t now_ms)
{
    if (!take_text()) /* somebody is at it */
        return;
    write_text(now_ms);
    __atomic_store_n(&is_writing, false, __ATOMIC_RELEASE);
}

/* Keeps the text, so that no helper is in the midst of writing when the process ends. */
static void write_last(void)
{
    for (unsigned turn = 0; !take_text() && turn < STATS_LAST_WAIT_MS; turn++)
        os_helper_sleep(1);
    write_text(os_clock_ms());
}

/* The helper comes again until it has written a period after the program's last miss: so what
 * happens between two looks is not lost. */
static bool watch_file(uint64_t now_ms)
{
    uint64_t last_ms = __atomic_load_n(&written_ms, __ATOMIC_RELAXED);
    bool is_helper = os_is_helper();
    if (!is_helper)
        __atomic_store_n(&has_moved, true, __ATOMIC_RELAXED);
    if (now_ms - last_ms < STATS_PERIOD_MS)
        return true;
    if (is_helper && !os_helper_has_rights())
        return false; /* the file would be somebody else's; the next miss starts another helper */
    bool is_last = is_helper && !__atomic_exchange_n(&has_moved, false, __ATOMIC_RELAXED);
    __atomic_store_n(&written_ms, now_ms, __ATOMIC_RELAXED);
    write_now(now_ms);
    return !is_last || __atomic_load_n(&has_moved, __ATOMIC_RELAXED);
}

static void prepare_file(void)
{
    text = os_map(sizeof *text + os_page_size() - sizeof *text % os_page_size());
    if (text == NULL)
        return;
    started_ms = os_clock_ms();
    upkeep_watcher = watch_file;
}

/* ---- messages ---- */

static void write_table(void)
{
    report_t report = report_make();
    report_write((int)options.report_fd, &report);
}

/* No more than that may be done in a signal handler: the thread may hold our locks. */
static void ask(int number)
{
    (void)number;
    __atomic_store_n(&is_asked_for, true, __ATOMIC_RELAXED);
}

/* The helper stays, for a program that makes no further call. */
static bool watch_signal(uint64_t now_ms)
{
    (void)now_ms;
    if (__atomic_exchange_n(&is_asked_for, false, __ATOMIC_RELAXED))
        write_table();
    return true;
}

static void prepare_signal(void)
{
    struct sigaction now;
    struct sigaction ours = {.sa_handler = ask, .sa_flags = SA_RESTART};
    if (sigaction(SIGUSR2, NULL, &now) != 0 || now.sa_handler != SIG_DFL ||
        sigaction(SIGUSR2, &ours, NULL) != 0) {
        complain("HAKMEM_STATS=signal is ignored: the process has another use for SIGUSR2");
        return;
    }
    upkeep_watcher = watch_signal;
}

/* ---- when ---- */

static bool wants(const char *word)
{
    return text_is(option_texts.stats, word);
}

void stats_file_prepare(void)
{
    first_process = os_process_id();
    if (wants("signal"))
        prepare_signal();
    else if (!wants("") && !wants("exit"))
        prepare_file();
}

void stats_file_at_fork_in_child(void)
{
    __atomic_store_n(&is_writing, false, __ATOMIC_RELAXED);
}

void stats_file_at_exit(void)
{
    if (text != NULL)
        write_last();
    else if (wants("exit") && os_process_id() == first_process)
        write_table();
}
