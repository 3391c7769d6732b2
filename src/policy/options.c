/* Reads the settings. No allocation, no locale, no library call that could come back to us. */
#include "policy/options.h"

#include "base/format.h"

typedef enum unit { SWITCH, BLOCKS, MEBIBYTES, MS, UNIT_COUNT } unit_t;

enum { MODE_MINIMAL, MODE_CHECKED, MODE_DEBUG, MODE_COUNT };

static const char *const mode_names[MODE_COUNT] = {"minimal", "checked", "debug"};

typedef struct option_row {
    const char *name;
    unit_t unit;
    int64_t min;
    int64_t max;
    int64_t preset[MODE_COUNT];
    size_t offset;
} option_row_t;

static const option_row_t rows[] = {
#define OPTION(name, unit, min, max, minimal, checked, debug, sentence)                            \
    {#name, unit, min, max, {minimal, checked, debug}, offsetof(options_t, name)},
#include "policy/option_table.h"
#undef OPTION
};

enum { ROW_COUNT = sizeof rows / sizeof rows[0] };

options_t options = {
#define OPTION(name, unit, min, max, minimal, checked, debug, sentence) .name = minimal,
#include "policy/option_table.h"
#undef OPTION
};

static const char *const unit_names[UNIT_COUNT] = {
    [SWITCH] = "on or off", [BLOCKS] = "blocks", [MEBIBYTES] = "MiB", [MS] = "milliseconds"};

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

static size_t text_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

static bool parse_switch(const char *text, int64_t *value)
{
    static const char *const words[2][4] = {{"0", "off", "no", "false"},
                                            {"1", "on", "yes", "true"}};
    for (int64_t answer = 0; answer < 2; answer++)
        for (unsigned word = 0; word < 4; word++)
            if (spells(text, text_length(text), words[answer][word])) {
                *value = answer;
                return true;
            }
    return false;
}

static bool parse_number(const char *text, int64_t max, int64_t *value)
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

static void complain_value(const option_row_t *row, const char *value, option_complaint_t complain)
{
    line_t line = {.length = 0};
    line_add(&line, "hakmem: HAKMEM_");
    for (const char *letter = row->name; *letter != '\0'; letter++) {
        char capital[2] = {*letter >= 'a' && *letter <= 'z' ? (char)(*letter - 'a' + 'A')
                                                            : *letter};
        line_add(&line, capital);
    }
    line_add(&line, "=");
    line_add(&line, value);
    line_add(&line, " is ignored: expected ");
    if (row->unit != SWITCH) {
        line_add_number(&line, (uint64_t)row->min);
        line_add(&line, " to ");
        line_add_number(&line, (uint64_t)row->max);
        line_add(&line, " ");
    }
    line_add(&line, unit_names[row->unit]);
    line.text[line.length] = '\0';
    complain(line.text);
}

static void complain_name(const char *variable, size_t length, option_complaint_t complain)
{
    line_t line = {.length = 0};
    line_add(&line, "hakmem: ");
    for (size_t at = 0; at < length; at++) {
        char letter[2] = {variable[at]};
        line_add(&line, letter);
    }
    line_add(&line, " is not an option and is ignored; docs/options.md lists them");
    line.text[line.length] = '\0';
    complain(line.text);
}

static void set_option(const char *name, size_t name_length, const char *value,
                       const char *variable, option_complaint_t complain)
{
    for (unsigned index = 0; index < ROW_COUNT; index++) {
        const option_row_t *row = &rows[index];
        if (!spells(name, name_length, row->name))
            continue;
        int64_t number = 0;
        bool understood = row->unit == SWITCH ? parse_switch(value, &number)
                                              : parse_number(value, row->max, &number);
        if (understood && number >= row->min)
            *option_place(row) = number;
        else
            complain_value(row, value, complain);
        return;
    }
    complain_name(variable, (size_t)(name + name_length - variable), complain);
}

static void set_mode(const char *value, option_complaint_t complain)
{
    for (unsigned mode = 0; mode < MODE_COUNT; mode++) {
        if (!spells(value, text_length(value), mode_names[mode]))
            continue;
        for (unsigned index = 0; index < ROW_COUNT; index++)
            *option_place(&rows[index]) = rows[index].preset[mode];
        return;
    }
    line_t line = {.length = 0};
    line_add(&line, "hakmem: HAKMEM_MODE=");
    line_add(&line, value);
    line_add(&line, " is ignored: expected minimal, checked or debug");
    line.text[line.length] = '\0';
    complain(line.text);
}

/* The text behind `prefix`, or NULL. */
static const char *behind(const char *text, const char *prefix)
{
    while (*prefix != '\0')
        if (*text++ != *prefix++)
            return NULL;
    return text;
}

/* Reads one variable: the mode in the first pass, the options, which override it, in the second. */
static void read_variable(const char *entry, bool is_first_pass, option_complaint_t complain)
{
    const char *name = behind(entry, "HAKMEM_");
    size_t length = 0;
    while (name != NULL && name[length] != '\0' && name[length] != '=')
        length++;
    if (name == NULL || name[length] == '\0')
        return;
    const char *value = name + length + 1;
    bool is_mode = spells(name, length, "mode");
    if (is_mode && is_first_pass)
        set_mode(value, complain);
    if (!is_mode && !is_first_pass)
        set_option(name, length, value, entry, complain);
}

bool options_are_named(char *const *environment)
{
    bool found = false;
    for (char *const *entry = environment; entry != NULL && *entry != NULL && !found; entry++)
        found = behind(*entry, "HAKMEM_") != NULL;
    return found;
}

void options_load(char *const *environment, option_complaint_t complain)
{
    if (environment == NULL)
        return;
    for (char *const *entry = environment; *entry != NULL; entry++)
        read_variable(*entry, true, complain);
    for (char *const *entry = environment; *entry != NULL; entry++)
        read_variable(*entry, false, complain);
}

bool option_find(const char *name, int64_t *value)
{
    for (unsigned index = 0; index < ROW_COUNT; index++)
        if (spells(name, text_length(name), rows[index].name)) {
            *value = *option_place(&rows[index]);
            return true;
        }
    return false;
}
