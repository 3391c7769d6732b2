/* options/options.h: what the environment may say, what it may not, and the exact complaints. */
#include "options/options.h"

#include "options/tuning.h"
#include "unit/fresh.h"

/* The mode columns of the table, read a second time. */
static const options_t balanced = {
#define OPTION(name, unit, min, max, balanced, ...) .name = balanced,
#include "options/option_table.h"
#undef OPTION
};

static const options_t checked = {
#define OPTION(name, unit, min, max, balanced, minimal, checked, ...) .name = checked,
#include "options/option_table.h"
#undef OPTION
};

static const options_t debug = {
#define OPTION(name, unit, min, max, balanced, minimal, checked, debug, ...) .name = debug,
#include "options/option_table.h"
#undef OPTION
};

static const options_t minimal = {
#define OPTION(name, unit, min, max, balanced, minimal, ...) .name = minimal,
#include "options/option_table.h"
#undef OPTION
};

static char complaints[4096];
static unsigned complaint_count;
static int64_t complained_to; /* report_fd at the time of the last complaint */

static void note_complaint(const char *text)
{
    complaint_count++;
    complained_to = options.report_fd;
    size_t length = strlen(complaints);
    (void)snprintf(complaints + length, sizeof complaints - length, "%s\n", text);
}

/* Loads an environment that begins from the presets of `balanced`. */
static void load(char *const *environment)
{
    options = balanced;
    complaint_count = 0;
    complaints[0] = '\0';
    options_load(environment, NULL, note_complaint);
}

static void load_one(const char *text)
{
    char copy[512];
    (void)snprintf(copy, sizeof copy, "%s", text);
    load((char *[]){copy, NULL});
}

static void check_ignored(const char *text, const char *complaint)
{
    load_one(text);
    check(memcmp(&options, &balanced, sizeof options) == 0);
    if (strcmp(complaints, complaint) != 0)
        (void)fprintf(stderr, "said: %sexpected: %s", complaints, complaint);
    check(strcmp(complaints, complaint) == 0);
}

static void check_sets(const char *text, const char *name, int64_t expected)
{
    int64_t value = -1;
    load_one(text);
    check_eq(complaint_count, 0);
    check(option_find(name, &value));
    check_eq(value, expected);
}

test(without_an_environment_the_presets_of_balanced_hold)
{
    check(memcmp(&options, &balanced, sizeof options) == 0);
    load(NULL);
    check(memcmp(&options, &balanced, sizeof options) == 0);
    load((char *[]){NULL});
    check(memcmp(&options, &balanced, sizeof options) == 0);
    check_eq(complaint_count, 0);
}

test(other_programs_variables_are_not_ours)
{
    load((char *[]){"PATH=/bin", "HAKME=1", "XHAKMEM_JUNK=1", "hakmem_junk=1", "HAKMEMJUNK=1", "",
                    "=", "HAKMEM", NULL});
    check(memcmp(&options, &balanced, sizeof options) == 0);
    check_eq(complaint_count, 0);
}

test(whether_there_are_options_is_known_without_reading_them)
{
    char *none[] = {"HAKMEM=1", "HOME=/", "XHAKMEM_MODE=debug", NULL};
    char *some[] = {"HOME=/", "HAKMEM_WHATEVER=1", NULL};
    check(!options_are_named(NULL) && !options_are_named(none) && options_are_named(some));
}

test(a_mode_sets_every_option)
{
    load_one("HAKMEM_MODE=debug");
    check(memcmp(&options, &debug, sizeof options) == 0);
    options = debug;
    options_load((char *[]){"HAKMEM_MODE=minimal", NULL}, NULL, note_complaint);
    check(memcmp(&options, &minimal, sizeof options) == 0);
    load_one("HAKMEM_MODE=DeBuG");
    check(memcmp(&options, &debug, sizeof options) == 0);
    check_eq(complaint_count, 0);
}

test(a_variable_beats_the_mode_wherever_it_stands)
{
    load((char *[]){"HAKMEM_JUNK=0", "HAKMEM_MODE=debug", NULL});
    check_eq(options.junk, 0);
    check_eq(options.leak_report, debug.leak_report);
    load((char *[]){"HAKMEM_MODE=debug", "HAKMEM_JUNK=0", NULL});
    check_eq(options.junk, 0);
}

test(the_last_of_two_equal_variables_counts)
{
    load((char *[]){"HAKMEM_PURGE_DELAY_MS=5", "HAKMEM_PURGE_DELAY_MS=7", NULL});
    check_eq(options.purge_delay_ms, 7);
    load((char *[]){"HAKMEM_MODE=checked", NULL});
    check(memcmp(&options, &checked, sizeof options) == 0);
    load((char *[]){"HAKMEM_MODE=debug", "HAKMEM_MODE=minimal", NULL});
    check(memcmp(&options, &minimal, sizeof options) == 0);
}

test(what_is_understood_is_set)
{
    static const struct { const char *option, *name; int64_t is; const char *texts[8]; } rows[] = {
        {"JUNK", "junk", 1, {"1", "on", "yes", "true", "ON", "Yes", "tRuE"}},
        {"BIGCACHE", "bigcache", 0, {"0", "off", "no", "false", "OFF", "No", "fAlSe"}},
        {"TINY_FAST_CAP", "tiny_fast_cap", 1, {"1"}},
        {"TINY_FAST_CAP", "tiny_fast_cap", 124, {"124"}},
        {"TINY_FAST_CAP", "tiny_fast_cap", 7, {"0007"}},
        {"BIGCACHE_MAX_MB", "bigcache_max_mb", 0, {"0"}},
        {"BIGCACHE_MAX_MB", "bigcache_max_mb", 65536, {"65536"}},
        {"PURGE_DELAY_MS", "purge_delay_ms", 0, {"0"}},
        {"PURGE_DELAY_MS", "purge_delay_ms", 3600000, {"3600000"}},
        {"PURGE_DELAY_MS", "purge_delay_ms", 987654, {"987654"}},
        {"PURGE_DELAY_MS", "purge_delay_ms", 3210, {"3210"}},
        {"THP_MIN_HEAP_MB", "thp_min_heap_mb", 1048576, {"1048576", "off"}},
        {"REPORT_FD", "report_fd", 7, {"7"}},
        {"FREE_POLICY", "free_policy", FREE_KEEP, {"keep"}},
        {"FREE_POLICY", "free_policy", FREE_BATCH, {"BATCH"}},
        {"FREE_POLICY", "free_policy", FREE_ADAPTIVE, {"adaptive"}},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (const char *const *text = rows[row].texts; *text != NULL; text++) {
            char variable[64];
            (void)snprintf(variable, sizeof variable, "HAKMEM_%s=%s", rows[row].option, *text);
            check_sets(variable, rows[row].name, rows[row].is);
        }
}

/* Neighbours of the digits, of the range, of the words; a complaint has the name in capitals. */
test(what_is_not_understood_is_ignored_with_a_line)
{
    static const struct { const char *option, *expected, *texts[9]; } rows[] = {
        {"JUNK", "on or off", {"2", "onn", "o", " on", "on ", "01", "maybe", "-1"}},
        {"TINY_FAST_CAP", "1 to 124 blocks", {"0", "125"}},
        {"BIGCACHE_MAX_MB", "0 to 65536 MiB", {"-1", "+1"}},
        {"PURGE_DELAY_MS",
         "0 to 3600000 milliseconds",
         {"1s", " 1", "0x10", "1/", "1:", "18446744073709551617",
          "9999999999999999999999999999999999999999"}},
        {"REPORT_FD", "0 to 2147483647 as a file descriptor", {"-1"}},
        {"PRICE",
         "1 to 1000000 milliseconds of processor time, lean, balanced or fast",
         {"0", "cheap"}},
        {"FREE_POLICY", "keep, batch or adaptive", {"1", "on"}},
        {"MODE", "balanced, minimal, checked or debug", {"quick", "debugger"}},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++)
        for (const char *const *text = rows[row].texts; *text != NULL; text++) {
            char variable[128];
            char complaint[256];
            (void)snprintf(variable, sizeof variable, "HAKMEM_%s=%s", rows[row].option, *text);
            (void)snprintf(complaint, sizeof complaint, "%s is ignored: expected %s\n", variable,
                           rows[row].expected);
            check_ignored(variable, complaint);
        }
    check_ignored("HAKMEM_jUnK=7", "HAKMEM_JUNK=7 is ignored: expected on or off\n");
}

test(what_is_no_option_is_ignored_with_a_line)
{
    static const char *const unknown = "and is ignored; hakmem-options(7) and docs/options.md list "
                                       "them";
    const struct { const char *name, *what; } rows[] = {
        {"SPEED", unknown},
        {"JUN", unknown},
        {"", unknown},
        {"TRAC", unknown},
        {"TRACE", "since 0.1 and is ignored; hakmem trace records what a program allocates and "
                  "frees"},
        {"FIT_CLASSES", "since 0.1 and is ignored; remove it: no class is fitted any more"},
        {"PROCESSOR_GROUPS", "since 0.1 and is ignored; remove it: all processors share the lists"},
    };
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        char text[64];
        char complaint[256];
        (void)snprintf(text, sizeof text, "HAKMEM_%s=1", rows[row].name);
        (void)snprintf(complaint, sizeof complaint, "HAKMEM_%s is not an option %s\n",
                       rows[row].name, rows[row].what);
        check_ignored(text, complaint);
    }
}

test(names_are_found_in_any_case)
{
    check_sets("HAKMEM_junk=1", "junk", 1);
    check_sets("HAKMEM_Junk=1", "JUNK", 1);
    int64_t value = 0;
    check(!option_find("jun", &value));
    check(!option_find("junky", &value));
    check(!option_find("", &value));
    check(!option_find("mode", &value));
}

/* So a shell takes back for one command what it exports. */
test(an_empty_value_is_as_good_as_none)
{
    check_ignored("HAKMEM_MODE=", "");
    check_ignored("HAKMEM_JUNK=", "");
    check_ignored("HAKMEM_TINY_FAST_CAP=", "");
    check_ignored("HAKMEM_NO_SUCH_OPTION=", "");
    load((char *[]){"HAKMEM_PURGE_DELAY_MS=7", "HAKMEM_PURGE_DELAY_MS=", NULL});
    check_eq(options.purge_delay_ms, 7);
}

test(filling_comparing_and_safe_mode_want_every_call)
{
    static char *const wanting[] = {"HAKMEM_JUNK=1", "HAKMEM_SIZE_CHECK=1", "HAKMEM_LD_SAFE=1",
                                    "HAKMEM_MODE=debug"};
    for (unsigned index = 0; index < 4; index++) {
        load((char *[]){wanting[index], NULL});
        check(options_want_every_call());
        check_eq(complaint_count, 0);
    }
    load((char *[]){"HAKMEM_JUNK=1", "HAKMEM_JUNK=0", NULL});
    check(!options_want_every_call());
    load((char *[]){"HAKMEM_SIZE_CHECK=1", "HAKMEM_CHECK_FREES=1", NULL});
    check(!options_want_every_call());
}

test(a_warning_goes_where_a_later_variable_sends_it)
{
    load((char *[]){"HAKMEM_NONE=1", "HAKMEM_MODE=none", "HAKMEM_REPORT_FD=7", NULL});
    check_eq(complaint_count, 2);
    check_eq(complained_to, 7);
}

/* Either it is understood, as every other name is in any case, or somebody is told. */
test(a_mode_in_small_letters_is_not_ignored_in_silence)
{
    load_one("HAKMEM_mode=debug");
    check(complaint_count == 1 || memcmp(&options, &debug, sizeof options) == 0);
}

test(a_text_without_a_value_is_no_variable)
{
    load((char *[]){"HAKMEM_JUNK", "HAKMEM_NONE", "HAKMEM_", NULL});
    check(memcmp(&options, &balanced, sizeof options) == 0);
    check_eq(complaint_count, 0);
}

test(a_very_long_value_is_cut_in_the_complaint)
{
    char text[512] = "HAKMEM_JUNK=";
    memset(text + strlen(text), 'x', 400);
    load_one(text);
    check_eq(complaint_count, 1);
    check_eq(strlen(complaints), 255 + 1);
    check(strncmp(complaints, "HAKMEM_JUNK=xxxxx", 17) == 0);
}

test(every_complaint_is_made)
{
    load((char *[]){"HAKMEM_JUNK=7", "HAKMEM_MODE=quick", "HAKMEM_NONE=1", NULL});
    check_eq(complaint_count, 3);
}

test(each_option_is_found_by_its_name)
{
    int64_t found;
    load_one("HAKMEM_PURGE_DELAY_MS=77");
#define OPTION(name, ...)                                                                          \
    found = INT64_MIN;                                                                             \
    check(option_find(#name, &found));                                                             \
    check_eq(found, options.name);
#include "options/option_table.h"
#undef OPTION
    check_eq(options.purge_delay_ms, 77);
}

test(every_preset_lies_in_its_range)
{
#define OPTION(name, unit, min, max, balanced, minimal, checked, debug, sentence)                  \
    check((min) <= (minimal) && (minimal) <= (max) && (min) <= (debug) && (debug) <= (max));       \
    check((min) <= (checked) && (checked) <= (max));                                               \
    check((min) <= (balanced) && (balanced) <= (max));                                             \
    check(strcmp(#unit, "SWITCH") != 0 || ((min) == 0 && (max) == 1));
#include "options/option_table.h"
#undef OPTION
}

static const char *const modes[] = {"minimal", "balanced", "checked", "debug"};

test(in_every_mode_the_delay_is_what_the_price_says)
{
    for (unsigned mode = 0; mode < sizeof modes / sizeof *modes; mode++) {
        char text[64];
        (void)snprintf(text, sizeof text, "HAKMEM_MODE=%s", modes[mode]);
        load_one(text);
        check_eq(options.purge_delay_ms, REFAULT_GIB_MS * 1000 / options.price);
    }
    check_eq(balanced.purge_delay_ms, REFAULT_GIB_MS * 1000 / balanced.price);
}

test(a_price_sets_the_delay_and_a_delay_beats_it)
{
    check_sets("HAKMEM_PRICE=lean", "price", 3500);
    check_sets("HAKMEM_PRICE=lean", "purge_delay_ms", 100);
    check_sets("HAKMEM_PRICE=Balanced", "purge_delay_ms", 500);
    check_sets("HAKMEM_PRICE=fast", "purge_delay_ms", 5000);
    check_sets("HAKMEM_PRICE=350", "purge_delay_ms", 1000);
    check_sets("HAKMEM_PRICE=1000000", "purge_delay_ms", 0);
    load((char *[]){"HAKMEM_PURGE_DELAY_MS=7", "HAKMEM_PRICE=fast", NULL});
    check_eq(options.purge_delay_ms, 7);
    check_eq(complaint_count, 0);
}

test(a_delay_changes_no_other_option)
{
    load_one("HAKMEM_PURGE_DELAY_MS=7");
    check_eq(options.free_policy, FREE_ADAPTIVE);
    load((char *[]){"HAKMEM_FREE_POLICY=keep", "HAKMEM_PURGE_DELAY_MS=7", NULL});
    check_eq(options.free_policy, FREE_KEEP);
    load((char *[]){"HAKMEM_MODE=minimal", "HAKMEM_FREE_POLICY=adaptive", NULL});
    check_eq(options.free_policy, FREE_ADAPTIVE);
}

check_main()
