/* A fuzzer of the options (src/options/options.c), for libFuzzer and tests/fuzz/replay.c.

   The input is an environment: entries end with a zero byte, and an entry's first byte says what is
   put in front of it: nothing, HAKMEM_, or the name of an option and =.

   Checked: every value lies within its row's bounds, every complaint is one printable line, what is
   not ours is not looked at, and reading the same environment again gives the same settings. */
#include "check.h"
#include "options/options.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ENTRY_COUNT = 16, ENTRY_BYTES = 512 };

typedef struct row {
    const char *name;
    int64_t min;
    int64_t max;
    int64_t preset;
} row_t;

static const row_t rows[] = {
#define OPTION(name, unit, min, max, preset, ...) {#name, min, max, preset},
#include "options/option_table.h"
#undef OPTION
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

static char entries[ENTRY_COUNT][ENTRY_BYTES];
static char *environment[ENTRY_COUNT + 1];
static size_t complaint_count;

static void note_complaint(const char *text)
{
    complaint_count++;
    check(*text != '\0');
    check(strlen(text) < 256);
    for (; *text != '\0'; text++) check((unsigned char)*text >= ' ' && *text != 0x7f);
}

/* What stands in front of an entry: chosen so that one byte reaches every option. */
static size_t put_prefix(char *entry, uint8_t choice)
{
    if (choice % 32 == 0) return 0;
    size_t length = (size_t)sprintf(entry, "HAKMEM_");
    if (choice % 32 == 1) return length;
    if (choice % 32 == 2) return length + (size_t)sprintf(entry + length, "MODE=");
    length += (size_t)sprintf(entry + length, "%s=", rows[choice % ROW_COUNT].name);
    for (char *letter = entry; *letter != '\0' && choice < 192; letter++) {
        if (*letter >= 'a' && *letter <= 'z') *letter = (char)(*letter - 'a' + 'A');
    }
    return length;
}

/* Returns the number of entries. */
static size_t build(const uint8_t *data, size_t size)
{
    size_t count = 0;
    for (size_t at = 0; at < size && count < ENTRY_COUNT; count++) {
        char *entry = entries[count];
        size_t length = put_prefix(entry, data[at++]);
        while (at < size && data[at] != 0) {
            if (length < ENTRY_BYTES - 1) entry[length++] = (char)data[at];
            at++;
        }
        at++;
        entry[length] = '\0';
        environment[count] = entry;
    }
    environment[count] = NULL;
    return count;
}

static void load(void)
{
    complaint_count = 0;
    options_load(environment, NULL, note_complaint);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static options_t presets;
    static bool has_presets;
    if (!has_presets) presets = options;
    has_presets = true;

    const size_t entry_count = build(data, size);
    bool is_ours = false;
    for (size_t i = 0; i < entry_count; i++) is_ours |= strncmp(entries[i], "HAKMEM_", 7) == 0;
    check_eq(options_are_named(environment), is_ours);

    options = presets;
    load();
    check(complaint_count <= entry_count);
    for (size_t i = 0; i < ROW_COUNT; i++) {
        int64_t value = INT64_MIN;
        check(option_find(rows[i].name, &value));
        check(value >= rows[i].min && value <= rows[i].max);
        check(is_ours || value == rows[i].preset);
    }
    check(is_ours || complaint_count == 0);
    const options_t first = options;
    const size_t complaints = complaint_count;
    load();
    check(memcmp(&first, &options, sizeof first) == 0);
    check_eq(complaint_count, complaints);
    return 0;
}
