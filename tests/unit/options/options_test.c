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

test(a_switch_understands_eight_words_in_any_case)
{
    static const char *const on[] = {"1", "on", "yes", "true", "ON", "Yes", "tRuE"};
    static const char *const off[] = {"0", "off", "no", "false", "OFF", "No", "fAlSe"};
    char text[64];
    for (unsigned index = 0; index < 7; index++) {
        (void)snprintf(text, sizeof text, "HAKMEM_JUNK=%s", on[index]);
        check_sets(text, "junk", 1);
        (void)snprintf(text, sizeof text, "HAKMEM_BIGCACHE=%s", off[index]);
        check_sets(text, "bigcache", 0);
    }
}

test(numbers_reach_from_the_least_to_the_most)
{
    check_sets("HAKMEM_TINY_FAST_CAP=1", "tiny_fast_cap", 1);
    check_sets("HAKMEM_TINY_FAST_CAP=124", "tiny_fast_cap", 124);
    check_sets("HAKMEM_TINY_FAST_CAP=0007", "tiny_fast_cap", 7);
    check_sets("HAKMEM_BIGCACHE_MAX_MB=0", "bigcache_max_mb", 0);
    check_sets("HAKMEM_BIGCACHE_MAX_MB=65536", "bigcache_max_mb", 65536);
    check_sets("HAKMEM_PURGE_DELAY_MS=0", "purge_delay_ms", 0);
    check_sets("HAKMEM_PURGE_DELAY_MS=3600000", "purge_delay_ms", 3600000);
    check_sets("HAKMEM_THP_MIN_HEAP_MB=1048576", "thp_min_heap_mb", 1048576);
    check_sets("HAKMEM_THP_MIN_HEAP_MB=off", "thp_min_heap_mb", 1048576);
}

test(a_number_has_the_digits_from_zero_to_nine_and_no_neighbours_of_theirs)
{
    check_sets("HAKMEM_PURGE_DELAY_MS=987654", "purge_delay_ms", 987654);
    check_sets("HAKMEM_PURGE_DELAY_MS=3210", "purge_delay_ms", 3210);
    check_ignored("HAKMEM_PURGE_DELAY_MS=1/", "HAKMEM_PURGE_DELAY_MS=1/ is ignored: "
                                              "expected 0 to 3600000 milliseconds\n");
    check_ignored("HAKMEM_PURGE_DELAY_MS=1:", "HAKMEM_PURGE_DELAY_MS=1: is ignored: "
                                              "expected 0 to 3600000 milliseconds\n");
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

test(a_malformed_switch_is_ignored_with_a_line)
{
    static const char *const wrong[] = {"2", "onn", "o", " on", "on ", "01", "maybe", "-1"};
    for (unsigned index = 0; index < sizeof wrong / sizeof wrong[0]; index++) {
        char text[64];
        char complaint[128];
        (void)snprintf(text, sizeof text, "HAKMEM_JUNK=%s", wrong[index]);
        (void)snprintf(complaint, sizeof complaint,
                       "HAKMEM_JUNK=%s is ignored: expected on or off\n", wrong[index]);
        check_ignored(text, complaint);
    }
}

test(a_malformed_number_is_ignored_with_a_line)
{
    check_ignored("HAKMEM_TINY_FAST_CAP=0",
                  "HAKMEM_TINY_FAST_CAP=0 is ignored: expected 1 to 124 blocks\n");
    check_ignored("HAKMEM_TINY_FAST_CAP=125",
                  "HAKMEM_TINY_FAST_CAP=125 is ignored: expected 1 to 124 blocks\n");
    check_ignored("HAKMEM_BIGCACHE_MAX_MB=-1",
                  "HAKMEM_BIGCACHE_MAX_MB=-1 is ignored: expected 0 to 65536 MiB\n");
    check_ignored("HAKMEM_BIGCACHE_MAX_MB=+1",
                  "HAKMEM_BIGCACHE_MAX_MB=+1 is ignored: expected 0 to 65536 MiB\n");
    check_ignored("HAKMEM_PURGE_DELAY_MS=1s", "HAKMEM_PURGE_DELAY_MS=1s is ignored: "
                                              "expected 0 to 3600000 milliseconds\n");
    check_ignored("HAKMEM_PURGE_DELAY_MS= 1", "HAKMEM_PURGE_DELAY_MS= 1 is ignored: "
                                              "expected 0 to 3600000 milliseconds\n");
    check_ignored("HAKMEM_PURGE_DELAY_MS=0x10", "HAKMEM_PURGE_DELAY_MS=0x10 is ignored: "
                                                "expected 0 to 3600000 milliseconds\n");
}

test(a_number_that_overflows_is_ignored)
{
    check_ignored("HAKMEM_PURGE_DELAY_MS=18446744073709551617",
                  "HAKMEM_PURGE_DELAY_MS=18446744073709551617 is ignored: "
                  "expected 0 to 3600000 milliseconds\n");
    check_ignored("HAKMEM_PURGE_DELAY_MS=9999999999999999999999999999999999999999",
                  "HAKMEM_PURGE_DELAY_MS=9999999999999999999999999999999999999999 is "
                  "ignored: expected 0 to 3600000 milliseconds\n");
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
    check_sets("HAKMEM_REPORT_FD=7", "report_fd", 7);
    check_ignored("HAKMEM_REPORT_FD=-1", "HAKMEM_REPORT_FD=-1 is ignored: expected 0 to 2147483647 "
                                         "as a file descriptor\n");
    load((char *[]){"HAKMEM_NONE=1", "HAKMEM_MODE=none", "HAKMEM_REPORT_FD=7", NULL});
    check_eq(complaint_count, 2);
    check_eq(complained_to, 7);
}

test(a_complaint_spells_the_name_in_capitals)
{
    check_ignored("HAKMEM_jUnK=7", "HAKMEM_JUNK=7 is ignored: expected on or off\n");
}

test(an_unknown_option_is_ignored_with_a_line)
{
    check_ignored("HAKMEM_SPEED=fast", "HAKMEM_SPEED is not an option and is ignored; "
                                       "hakmem-options(7) and docs/options.md list them\n");
    check_ignored("HAKMEM_JUN=1", "HAKMEM_JUN is not an option and is ignored; "
                                  "hakmem-options(7) and docs/options.md list them\n");
    check_ignored("HAKMEM_=1", "HAKMEM_ is not an option and is ignored; "
                               "hakmem-options(7) and docs/options.md list them\n");
}

test(an_option_that_is_gone_names_what_does_the_same)
{
    check_ignored("HAKMEM_TRACE=a", "HAKMEM_TRACE is not an option since 0.1 and is ignored; "
                                    "hakmem trace records what a program allocates and frees\n");
    check_ignored("HAKMEM_FIT_CLASSES=0", "HAKMEM_FIT_CLASSES is not an option since 0.1 and is "
                                          "ignored; remove it: no class is fitted any more\n");
    check_ignored("HAKMEM_PROCESSOR_GROUPS=4",
                  "HAKMEM_PROCESSOR_GROUPS is not an option since 0.1 and is ignored; remove it: "
                  "all processors share the lists\n");
    check_ignored("HAKMEM_TRAC=1", "HAKMEM_TRAC is not an option and is ignored; "
                                   "hakmem-options(7) and docs/options.md list them\n");
}

test(an_unknown_mode_is_ignored_with_a_line)
{
    check_ignored("HAKMEM_MODE=quick",
                  "HAKMEM_MODE=quick is ignored: expected balanced, minimal, checked or debug\n");
    check_ignored("HAKMEM_MODE=debugger",
                  "HAKMEM_MODE=debugger is ignored: "
                  "expected balanced, minimal, checked or debug\n");
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
    load_one("HAKMEM_PRICE=lean");
    check_eq(options.price, 3500);
    check_eq(options.purge_delay_ms, 100);
    load_one("HAKMEM_PRICE=Balanced");
    check_eq(options.purge_delay_ms, 500);
    load_one("HAKMEM_PRICE=fast");
    check_eq(options.purge_delay_ms, 5000);
    load_one("HAKMEM_PRICE=350");
    check_eq(options.purge_delay_ms, 1000);
    load_one("HAKMEM_PRICE=1000000");
    check_eq(options.purge_delay_ms, 0);
    load((char *[]){"HAKMEM_PURGE_DELAY_MS=7", "HAKMEM_PRICE=fast", NULL});
    check_eq(options.purge_delay_ms, 7);
    check_eq(complaint_count, 0);
    check_ignored("HAKMEM_PRICE=0",
                  "HAKMEM_PRICE=0 is ignored: expected 1 to 1000000 milliseconds of processor "
                  "time, lean, balanced or fast\n");
    check_ignored("HAKMEM_PRICE=cheap",
                  "HAKMEM_PRICE=cheap is ignored: expected 1 to 1000000 milliseconds of processor "
                  "time, lean, balanced or fast\n");
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

test(a_policy_is_a_word)
{
    check_sets("HAKMEM_FREE_POLICY=keep", "free_policy", FREE_KEEP);
    check_sets("HAKMEM_FREE_POLICY=BATCH", "free_policy", FREE_BATCH);
    check_sets("HAKMEM_FREE_POLICY=adaptive", "free_policy", FREE_ADAPTIVE);
    check_ignored("HAKMEM_FREE_POLICY=1",
                  "HAKMEM_FREE_POLICY=1 is ignored: expected keep, batch or adaptive\n");
    check_ignored("HAKMEM_FREE_POLICY=on",
                  "HAKMEM_FREE_POLICY=on is ignored: expected keep, batch or adaptive\n");
}

check_main()
