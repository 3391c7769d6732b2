/*
 * The command line of the benchmark programs: positional arguments in the order of the table, or
 * the same by name (`--slots=256` or `--slots 256`), each at most once; all by position or none.
 * Whatever else is refused with one line. `--echo` prints what was understood, and no more. Linked
 * into every program of this folder; entered through bench_open.
 */
#include "bench.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_NUMBER = 18 };

_Noreturn void bench_refuse(const char *program, const char *format, ...)
{
    va_list details;
    fprintf(stderr, "%s: ", program);
    va_start(details, format);
    vfprintf(stderr, format, details);
    va_end(details);
    fprintf(stderr, " (--help lists the arguments)\n");
    exit(2);
}

/* Digits only: no sign, no blank, no suffix. */
static bool read_digits(const char *text, size_t length, uint64_t *value)
{
    if (length == 0 || length > LONGEST_NUMBER) return false;
    *value = 0;
    for (size_t index = 0; index < length; index++) {
        if (text[index] < '0' || text[index] > '9') return false;
        *value = *value * 10 + (uint64_t)(text[index] - '0');
    }
    return true;
}

/* Seconds with up to nine decimals. */
static bool read_seconds(const char *text, uint64_t *value_ns)
{
    size_t whole_length = strcspn(text, ".");
    uint64_t fraction = 0;
    if (!read_digits(text, whole_length, value_ns)) return false;
    if (*value_ns > LIMIT_SECONDS_NS / NS_PER_SECOND) return false;
    *value_ns *= NS_PER_SECOND;
    if (text[whole_length] == '\0') return true;
    const char *decimals = text + whole_length + 1;
    size_t digits = strlen(decimals);
    if (digits > 9 || !read_digits(decimals, digits, &fraction)) return false;
    for (size_t index = digits; index < 9; index++) fraction *= 10;
    *value_ns += fraction;
    return true;
}

static bool read_choice(const char *text, const char *choices, uint64_t *value)
{
    const char *word = choices;
    for (*value = 0; word != NULL; *value += 1) {
        size_t length = strcspn(word, "|");
        if (strlen(text) == length && strncmp(text, word, length) == 0) return true;
        word = word[length] == '|' ? word + length + 1 : NULL;
    }
    return false;
}

void bench_print_value(FILE *file, const parameter_t *parameter)
{
    if (parameter->kind == KIND_COUNT) {
        fprintf(file, "%" PRIu64, parameter->value);
    } else if (parameter->kind == KIND_SECONDS) {
        fprintf(file, "%.9g", (double)parameter->value / (double)NS_PER_SECOND);
    } else {
        const char *word = parameter->choices;
        for (uint64_t index = 0; index < parameter->value; index++) word = strchr(word, '|') + 1;
        fprintf(file, "%.*s", (int)strcspn(word, "|"), word);
    }
}

static void set_parameter(const char *program, parameter_t *parameter, const char *text)
{
    bool is_read = false;
    if (parameter->is_given) bench_refuse(program, "%s is given twice", parameter->name);
    if (parameter->kind == KIND_COUNT)
        is_read = read_digits(text, strlen(text), &parameter->value);
    else if (parameter->kind == KIND_SECONDS)
        is_read = read_seconds(text, &parameter->value);
    else if (!read_choice(text, parameter->choices, &parameter->value))
        bench_refuse(program, "%s is one of %s, not '%s'", parameter->name, parameter->choices,
                     text);
    else
        is_read = true;
    if (!is_read) bench_refuse(program, "%s is a number, not '%s'", parameter->name, text);
    parameter->is_given = true;
    if (parameter->kind == KIND_CHOICE) return;
    if (parameter->value >= parameter->least && parameter->value <= parameter->most) return;
    uint64_t unit = parameter->kind == KIND_SECONDS ? NS_PER_SECOND : 1;
    bench_refuse(program, "%s is from %.9g to %.9g, not '%s'", parameter->name,
                 (double)parameter->least / (double)unit, (double)parameter->most / (double)unit,
                 text);
}

static void print_usage(const bench_t *bench)
{
    printf("usage: %s", bench->program);
    for (size_t index = 0; index < bench->parameter_count; index++)
        if (bench->parameters[index].place == POSITIONAL)
            printf(" [%s]", bench->parameters[index].name);
    printf(" [--name=value]... [--json] [--echo]\n");
    for (size_t index = 0; index < bench->parameter_count; index++) {
        const parameter_t *parameter = &bench->parameters[index];
        printf("  --%s=", parameter->name);
        bench_print_value(stdout, parameter);
        printf("%s%s\n", parameter->choices != NULL ? "  one of " : "",
               parameter->choices != NULL ? parameter->choices : "");
    }
    printf("One operation is %s.\n", bench->operation);
}

/* Reads `--name=value` or `--name value`; returns how many words it took. */
static int read_named(bench_t *bench, char **words, int word_count)
{
    const char *name = words[0] + 2;
    size_t name_length = strcspn(name, "=");
    for (size_t index = 0; index < bench->parameter_count; index++) {
        parameter_t *parameter = &bench->parameters[index];
        if (strlen(parameter->name) != name_length) continue;
        if (strncmp(parameter->name, name, name_length) != 0) continue;
        if (name[name_length] == '=') {
            set_parameter(bench->program, parameter, name + name_length + 1);
            return 1;
        }
        if (word_count < 2) bench_refuse(bench->program, "%s has no value", words[0]);
        set_parameter(bench->program, parameter, words[1]);
        return 2;
    }
    bench_refuse(bench->program, "unknown option '%s'", words[0]);
}

static void read_positional(bench_t *bench, size_t *next, const char *text)
{
    while (*next < bench->parameter_count && bench->parameters[*next].place != POSITIONAL)
        *next += 1;
    if (*next == bench->parameter_count)
        bench_refuse(bench->program, "one argument too many: '%s'", text);
    set_parameter(bench->program, &bench->parameters[*next], text);
    *next += 1;
}

/* All by position or none: of `bench_random_mixed 256`, who knows what the 256 is meant to be? */
static void refuse_some_positional(const bench_t *bench, size_t next)
{
    if (next == 0) return;
    for (; next < bench->parameter_count; next++) {
        const parameter_t *parameter = &bench->parameters[next];
        if (parameter->place == POSITIONAL && !parameter->is_given)
            bench_refuse(bench->program,
                         "%s is missing: give all arguments by position, or name those you mean, "
                         "as --%s=VALUE",
                         parameter->name, parameter->name);
    }
}

void bench_check_order(const bench_t *bench, size_t least, size_t most)
{
    const parameter_t *lower = &bench->parameters[least];
    const parameter_t *upper = &bench->parameters[most];
    if (lower->value > upper->value)
        bench_refuse(bench->program, "%s is above %s", lower->name, upper->name);
}

static bool only_echoes; /* --echo was given */

void bench_open(bench_t *bench, int argument_count, char **arguments)
{
    size_t next = 0;
    for (int index = 1; index < argument_count;) {
        if (strcmp(arguments[index], "--help") == 0) {
            print_usage(bench);
            exit(0);
        }
        if (strcmp(arguments[index], "--json") == 0) {
            bench->has_json = true;
            index += 1;
        } else if (strcmp(arguments[index], "--echo") == 0) {
            only_echoes = true;
            index += 1;
        } else if (strncmp(arguments[index], "--", 2) == 0) {
            index += read_named(bench, arguments + index, argument_count - index);
        } else {
            read_positional(bench, &next, arguments[index]);
            index += 1;
        }
    }
    refuse_some_positional(bench, next);
}

void bench_begin(const bench_t *bench)
{
    printf("%s:", bench->program);
    for (size_t index = 0; index < bench->parameter_count; index++) {
        printf(" %s=", bench->parameters[index].name);
        bench_print_value(stdout, &bench->parameters[index]);
    }
    printf("\n");
    fflush(stdout);
    if (only_echoes) exit(0);
}
