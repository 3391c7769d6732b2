/* Reads the settings. No allocation, no locale, no library call that could come back to us. */
#include "options/options.h"

#include "base/format.h"
#include "base/text.h"
#include "options/policy_file.h"
#include "options/tuning.h"

typedef enum unit {
    SWITCH,
    POLICY,
    LEAKS,
    PRICE, /* from here on numbers are taken */
    BLOCKS,
    KIBIBYTES,
    MEBIBYTES,
    HEAP_SIZE,
    MS,
    DESCRIPTOR,
    UNIT_COUNT
} unit_t;

enum { MODE_BALANCED, MODE_MINIMAL, MODE_CHECKED, MODE_DEBUG, MODE_COUNT };

static const char *const mode_names[MODE_COUNT] = {"balanced", "minimal", "checked", "debug"};

typedef struct option_row {
    const char *name;
    unit_t unit;
    int64_t min;
    int64_t max;
    int64_t preset[MODE_COUNT];
    size_t offset;
} option_row_t;

static const option_row_t option_rows[] = {
#define OPTION(name, unit, min, max, balanced, minimal, checked, debug, sentence)                  \
    {#name,                                                                                        \
     unit,                                                                                         \
     min,                                                                                          \
     max,                                                                                          \
     {balanced, minimal, checked, debug},                                                          \
     offsetof(options_t, name)},
#include "options/option_table.h"
#undef OPTION
};

enum { ROW_COUNT = sizeof option_rows / sizeof option_rows[0] };

options_t options = {
#define OPTION(name, unit, min, max, balanced, ...) .name = balanced,
#include "options/option_table.h"
#undef OPTION
};

option_texts_t option_texts;

static const struct text_row {
    const char *name;
    size_t offset;
} text_rows[] = {
#define TEXT(name, sentence) {#name, offsetof(option_texts_t, name)},
#include "options/text_table.h"
#undef TEXT
};

enum { TEXT_COUNT = sizeof text_rows / sizeof text_rows[0] };

static const struct word {
    unit_t unit;
    const char *text;
    int64_t value;
} option_words[] = {
#define WORD(unit, text, value) {unit, text, value},
#include "options/option_words.h"
#undef WORD
};

enum { WORD_COUNT = sizeof option_words / sizeof option_words[0] };

/* What a complaint says that is expected, behind the range where numbers are. */
static const char *const unit_names[UNIT_COUNT] = {
    [SWITCH] = "on or off",
    [POLICY] = "keep, batch or adaptive",
    [LEAKS] = "off, sizes or stacks",
    [PRICE] = "milliseconds of processor time, lean, balanced or fast",
    [BLOCKS] = "blocks",
    [KIBIBYTES] = "KiB",
    [MEBIBYTES] = "MiB",
    [HEAP_SIZE] = "MiB, or off",
    [MS] = "milliseconds",
    [DESCRIPTOR] = "as a file descriptor",
};

static bool takes_numbers(const option_row_t *row)
{
    return row->unit >= PRICE;
}

static int64_t *option_place(const option_row_t *row)
{
    return (int64_t *)(void *)((char *)&options + row->offset);
}

static char to_lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

/* Does `text` spell `name`, whatever the case, up to the `length` given? */
static bool spells(const char *text, size_t length, const char *name)
{
    size_t at = 0;
    while (at < length && name[at] != '\0' && to_lower(text[at]) == name[at])
        at++;
    return at == length && name[at] == '\0';
}

static bool option_parse_word(unit_t unit, const char *text, int64_t *value)
{
    for (unsigned index = 0; index < WORD_COUNT; index++)
        if (option_words[index].unit == unit &&
            spells(text, text_length(text), option_words[index].text)) {
            *value = option_words[index].value;
            return true;
        }
    return false;
}

static bool option_parse_number(const char *text, int64_t max, int64_t *value)
{
    int64_t number = 0;
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = number * 10 + (*text - '0');
        if (number > max)
            return false;
    }
    *value = number;
    return true;
}

typedef enum kind {
    FOREIGN,
    MODE,
    OPTION_VALUE,
    OPTION_TEXT,
    UNKNOWN_MODE, /* from here on it is complained of */
    UNKNOWN_OPTION,
    WRONG_VALUE,
    LONG_TEXT
} kind_t;

/* What one variable of the environment says. */
typedef struct reading {
    kind_t kind;
    const char *name; /* the whole text NAME=value */
    size_t name_length;
    const char *value;
    const option_row_t *row; /* OPTION_VALUE, WRONG_VALUE */
    int64_t number;          /* OPTION_VALUE */
    unsigned mode;           /* MODE */
    const struct text_row *text_row; /* OPTION_TEXT, LONG_TEXT */
} reading_t;

static const option_row_t *find_option_row(const char *name, size_t length)
{
    for (unsigned index = 0; index < ROW_COUNT; index++)
        if (spells(name, length, option_rows[index].name))
            return &option_rows[index];
    return NULL;
}

static const struct text_row *find_text_row(const char *name, size_t length)
{
    for (unsigned index = 0; index < TEXT_COUNT; index++)
        if (spells(name, length, text_rows[index].name))
            return &text_rows[index];
    return NULL;
}

static void option_read_mode(reading_t *reading)
{
    reading->kind = UNKNOWN_MODE;
    for (unsigned mode = 0; mode < MODE_COUNT; mode++)
        if (spells(reading->value, text_length(reading->value), mode_names[mode])) {
            reading->kind = MODE;
            reading->mode = mode;
        }
}

static bool option_parse_value(const option_row_t *row, const char *text, int64_t *value)
{
    bool is_understood = option_parse_word(row->unit, text, value);
    if (!is_understood && takes_numbers(row))
        is_understood = option_parse_number(text, row->max, value);
    return is_understood && *value >= row->min;
}

static void option_read_value(reading_t *reading)
{
    bool is_understood = option_parse_value(reading->row, reading->value, &reading->number);
    reading->kind = is_understood ? OPTION_VALUE : WRONG_VALUE;
}

/* An empty value counts as none: with it a shell takes a variable back for one command. */
static reading_t read_variable(const char *entry)
{
    reading_t reading = {.kind = FOREIGN, .name = entry};
    const char *name = text_behind(entry, "HAKMEM_");
    size_t length = 0;
    while (name != NULL && name[length] != '\0' && name[length] != '=')
        length++;
    if (name == NULL || name[length] == '\0' || name[length + 1] == '\0')
        return reading;
    reading.name_length = (size_t)(name + length - entry);
    reading.value = name + length + 1;
    reading.row = find_option_row(name, length);
    reading.text_row = find_text_row(name, length);
    if (spells(name, length, "mode"))
        option_read_mode(&reading);
    else if (reading.row != NULL)
        option_read_value(&reading);
    else if (reading.text_row != NULL)
        reading.kind = text_length(reading.value) < OPTION_TEXT_ROOM ? OPTION_TEXT : LONG_TEXT;
    else
        reading.kind = UNKNOWN_OPTION;
    return reading;
}

/* ---- what is said about it ---- */

static void add_capitals(line_t *line, const char *text, size_t length)
{
    for (size_t at = 0; at < length; at++) {
        char letter[2] = {text[at] >= 'a' && text[at] <= 'z' ? (char)(text[at] - 'a' + 'A')
                                                             : text[at]};
        line_add(line, letter);
    }
}

static void add_expected(line_t *line, const option_row_t *row)
{
    if (takes_numbers(row)) {
        line_add_number(line, (uint64_t)row->min);
        line_add(line, " to ");
        line_add_number(line, (uint64_t)row->max);
        line_add(line, " ");
    }
    line_add(line, unit_names[row->unit]);
}

static void add_modes(line_t *line)
{
    for (unsigned mode = 0; mode < MODE_COUNT; mode++) {
        if (mode != 0)
            line_add(line, mode + 1 == MODE_COUNT ? " or " : ", ");
        line_add(line, mode_names[mode]);
    }
}

/* Options that there were, and what to do instead. */
static const struct removed_option {
    const char *name;
    const char *instead;
} removed_options[] = {
    {"fit_classes", "remove it: no class is fitted any more"},
    {"processor_groups", "remove it: all processors share the lists"},
    {"trace", "hakmem trace records what a program allocates and frees"},
};

enum { REMOVED_COUNT = sizeof removed_options / sizeof removed_options[0] };

static void add_what_is_unknown(line_t *line, const reading_t *reading)
{
    const char *name = text_behind(reading->name, "HAKMEM_");
    size_t length = reading->name_length - (size_t)(name - reading->name);
    for (unsigned index = 0; index < REMOVED_COUNT; index++)
        if (spells(name, length, removed_options[index].name)) {
            line_add(line, " is not an option since 0.1 and is ignored; ");
            line_add(line, removed_options[index].instead);
            return;
        }
    line_add(line, " is not an option and is ignored; hakmem-options(7) and docs/options.md list "
                   "them");
}

static void option_complain_of(const reading_t *reading, option_complaint_t complain)
{
    line_t line = {.length = 0};
    if (reading->kind == UNKNOWN_OPTION) {
        for (size_t at = 0; at < reading->name_length; at++)
            line_add(&line, (char[2]){reading->name[at]});
        add_what_is_unknown(&line, reading);
    } else if (reading->kind == LONG_TEXT) {
        add_capitals(&line, reading->name, reading->name_length);
        line_add(&line, " is ignored: its text has more than ");
        line_add_number(&line, OPTION_TEXT_ROOM - 1);
        line_add(&line, " bytes");
    } else {
        add_capitals(&line, reading->name, reading->name_length);
        line_add(&line, "=");
        line_add(&line, reading->value);
        line_add(&line, " is ignored: expected ");
        if (reading->kind == UNKNOWN_MODE)
            add_modes(&line);
        else
            add_expected(&line, reading->row);
    }
    line.text[line.length] = '\0';
    complain(line.text);
}

bool options_are_named(char *const *environment)
{
    bool found = false;
    for (char *const *entry = environment; entry != NULL && *entry != NULL && !found; entry++)
        found = text_behind(*entry, "HAKMEM_") != NULL;
    return found;
}

/* ---- what they mean for one another ---- */

bool options_want_every_call(void)
{
    /* Safe mode: blocks of the C library must not meet those of the bins. */
    if (options.ld_safe)
        return true;
    /* Filling and comparing are done in the slow path; the hit path reads no option. Where frees
     * are checked, every sized delete comes there as it is. */
    return options.junk || (options.size_check && !options.check_frees);
}

/* Milliseconds after which a page that is held has cost as much as the page fault that it saves. */
static int64_t break_even_ms(int64_t price)
{
    return REFAULT_GIB_MS * 1000 / price;
}

static void option_set_text(const reading_t *reading)
{
    char *place = (char *)&option_texts + reading->text_row->offset;
    for (const char *from = reading->value; (*place++ = *from) != '\0';)
        from++;
}

static void option_set_mode(unsigned mode)
{
    for (unsigned index = 0; index < ROW_COUNT; index++)
        *option_place(&option_rows[index]) = option_rows[index].preset[mode];
}

/* Does the mode set this option otherwise than the default mode does? A policy does not change such
 * an option, so that it takes back no check. */
static bool option_is_of_mode(const option_row_t *row, unsigned mode)
{
    return row->preset[mode] != row->preset[MODE_BALANCED];
}

/* Sets the mode first, then the policy and the variables, which override the mode wherever they
 * stand in the environment. Complaints come last, so that they go where report_fd says. */
void options_load(char *const *environment, const policy_t *policy, option_complaint_t complain)
{
    bool is_delay_wanted = false;
    unsigned mode = MODE_BALANCED;
    if (environment == NULL)
        return;
    for (char *const *entry = environment; *entry != NULL; entry++) {
        reading_t reading = read_variable(*entry);
        if (reading.kind != MODE)
            continue;
        mode = reading.mode;
        option_set_mode(mode);
    }
    for (unsigned index = 0; policy != NULL && index < policy->option_count; index++) {
        const option_row_t *row = &option_rows[policy->options[index].row];
        if (option_is_of_mode(row, mode))
            continue;
        *option_place(row) = policy->options[index].value;
        is_delay_wanted |= row->offset == offsetof(options_t, purge_delay_ms);
    }
    for (char *const *entry = environment; *entry != NULL; entry++) {
        reading_t reading = read_variable(*entry);
        if (reading.kind == OPTION_TEXT)
            option_set_text(&reading);
        if (reading.kind != OPTION_VALUE)
            continue;
        *option_place(reading.row) = reading.number;
        is_delay_wanted |= reading.row->offset == offsetof(options_t, purge_delay_ms);
    }
    if (options.plain_syscalls)
        options.watch_limits = options.background = options.thp_adaptive = 0;
    if (!is_delay_wanted)
        options.purge_delay_ms = break_even_ms(options.price);
    for (char *const *entry = environment; *entry != NULL; entry++) {
        reading_t reading = read_variable(*entry);
        if (reading.kind >= UNKNOWN_MODE)
            option_complain_of(&reading, complain);
    }
}

const char *options_policy_path(char *const *environment)
{
    const char *path = NULL;
    for (char *const *entry = environment; entry != NULL && *entry != NULL; entry++) {
        reading_t reading = read_variable(*entry);
        if (reading.kind == OPTION_TEXT &&
            reading.text_row->offset == offsetof(option_texts_t, policy))
            path = reading.value;
        if (path == NULL && reading.kind == OPTION_VALUE && reading.number != 0 &&
            reading.row->offset == offsetof(options_t, plain_syscalls))
            path = "none";
    }
    return path;
}

bool option_find_row(const char *name, unsigned *row)
{
    const option_row_t *found = find_option_row(name, text_length(name));
    if (found != NULL)
        *row = (unsigned)(found - option_rows);
    return found != NULL;
}

bool option_parse(unsigned row, const char *text, int64_t *value)
{
    return option_parse_value(&option_rows[row], text, value);
}

bool option_find(const char *name, int64_t *value)
{
    const option_row_t *row = find_option_row(name, text_length(name));
    if (row != NULL)
        *value = *option_place(row);
    return row != NULL;
}
