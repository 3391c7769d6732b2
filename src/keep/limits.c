/* Limits on memory. See limits.h. */
#include "keep/limits.h"

#include "base/bits.h"
#include "base/text.h"
#include "options/tuning.h"

/* 2^60: an old group without a limit has one of nearly 2^63. */
#define TOO_LARGE ((uint64_t)1 << 60)

static uint64_t limits_near_room(uint64_t limit)
{
    return smaller_of(limit / LIMITS_NEAR_SHARE, LIMITS_NEAR_MOST);
}

static pressure_t limits_judge(uint64_t limit, uint64_t room)
{
    uint64_t near = limits_near_room(limit);
    if (room >= near && room != 0)
        return PRESSURE_NONE;
    return room >= near / LIMITS_FULL_SHARE && room != 0 ? PRESSURE_NEAR : PRESSURE_FULL;
}

void headroom_add(headroom_t *headroom, uint64_t limit, uint64_t used)
{
    if (limit == LIMIT_NONE)
        return;
    uint64_t room = limit - smaller_of(limit, used);
    headroom_t added = {limits_judge(limit, room), limit, room};
    headroom_join(headroom, &added);
}

void headroom_join(headroom_t *headroom, const headroom_t *other)
{
    if (headroom->pressure < other->pressure)
        headroom->pressure = other->pressure;
    headroom->limit = smaller_of(headroom->limit, other->limit);
    headroom->room = smaller_of(headroom->room, other->room);
}

void headroom_add_stall(headroom_t *headroom, unsigned hundredths)
{
    if (hundredths >= LIMITS_STALL_MUCH && headroom->pressure == PRESSURE_NONE)
        headroom->pressure = PRESSURE_NEAR;
}

size_t headroom_kept_bytes(const headroom_t *headroom)
{
    uint64_t share = headroom->limit == LIMIT_NONE ? SIZE_MAX : headroom->limit / LIMITS_KEPT_SHARE;
    if (headroom->pressure == PRESSURE_NEAR)
        share = smaller_of(share / LIMITS_FULL_SHARE, LIMITS_KEPT_NEAR);
    if (headroom->pressure == PRESSURE_FULL)
        share = smaller_of(share, LIMITS_KEPT_FULL);
    return share;
}

uint64_t headroom_missing(const headroom_t *headroom)
{
    uint64_t wanted = limits_near_room(headroom->limit) / 2;
    if (headroom->pressure != PRESSURE_FULL || headroom->room >= wanted)
        return 0;
    return wanted - headroom->room;
}

uint64_t pressure_delay_ms(pressure_t pressure, uint64_t delay_ms)
{
    if (pressure == PRESSURE_FULL)
        return 0;
    return pressure == PRESSURE_NEAR ? delay_ms / LIMITS_DELAY_SHARE : delay_ms;
}

/* ---- texts ---- */

/* The start of the next line, or the end of the text. */
static const char *limits_next_line(const char *text)
{
    while (*text != '\0' && *text != '\n')
        text++;
    return *text == '\n' ? text + 1 : text;
}

static bool is_digit(char letter)
{
    return letter >= '0' && letter <= '9';
}

bool limits_parse_number(const char **text, uint64_t *number)
{
    while (**text == ' ')
        ++*text;
    const char *rest = text_behind(*text, "max");
    *number = LIMIT_NONE;
    if (rest != NULL) {
        *text = rest;
        return true;
    }
    if (!is_digit(**text))
        return false;
    uint64_t sum = 0;
    for (; is_digit(**text); ++*text)
        sum = sum >= TOO_LARGE ? TOO_LARGE : sum * 10 + (uint64_t)(**text - '0');
    *number = sum >= TOO_LARGE ? LIMIT_NONE : sum;
    return true;
}

/* Is `memory` among the names up to the colon, which commas part? */
static bool names_memory(const char *names)
{
    while (*names != '\0' && *names != ':' && *names != '\n') {
        const char *rest = text_behind(names, "memory");
        if (rest != NULL && (*rest == ':' || *rest == ','))
            return true;
        while (*names != '\0' && *names != ',' && *names != ':' && *names != '\n')
            names++;
        names += *names == ',';
    }
    return false;
}

/* The path in a line NUMBER:NAMES:PATH; NULL: the line is no such line, or has no end. */
static const char *limits_path_of(const char *line)
{
    for (unsigned colons = 0; colons < 2; line++) {
        if (*line == '\0' || *line == '\n')
            return NULL;
        colons += *line == ':';
    }
    const char *end = line;
    while (*end != '\0' && *end != '\n')
        end++;
    return *line == '/' && *end == '\n' ? line : NULL;
}

bool limits_parse_group(const char *text, group_name_t *name)
{
    *name = (group_name_t){NULL, 0, false};
    for (const char *line = text; *line != '\0'; line = limits_next_line(line)) {
        const char *path = limits_path_of(line);
        const char *names = line;
        while (is_digit(*names))
            names++;
        bool is_v1 = *names == ':' && names_memory(names + 1);
        if (path == NULL || (!is_v1 && text_behind(line, "0::") == NULL))
            continue;
        *name = (group_name_t){path, (size_t)(limits_next_line(path) - path) - 1, is_v1};
        if (is_v1) /* the one that counts memory where there are both */
            return true;
    }
    return name->path != NULL;
}

uint64_t limits_parse_file_bytes(const char *text, bool is_v1)
{
    static const char *const names[2][2] = {{"inactive_file ", "active_file "},
                                            {"total_inactive_file ", "total_active_file "}};
    uint64_t sum = 0;
    for (const char *line = text; *line != '\0'; line = limits_next_line(line))
        for (unsigned index = 0; index < 2; index++) {
            const char *value = text_behind(line, names[is_v1][index]);
            uint64_t number;
            if (value != NULL && limits_parse_number(&value, &number) && number != LIMIT_NONE)
                sum += number;
        }
    return sum;
}

unsigned limits_parse_stall(const char *text)
{
    const char *value = text_behind(text, "some avg10=");
    uint64_t whole;
    if (value == NULL || !limits_parse_number(&value, &whole) || whole > 100)
        return 0;
    unsigned hundredths = (unsigned)whole * 100;
    if (value[0] == '.' && is_digit(value[1]) && is_digit(value[2]))
        hundredths += (unsigned)(value[1] - '0') * 10 + (unsigned)(value[2] - '0');
    return hundredths;
}

bool limits_parse_statm(const char *text, uint64_t *total_pages, uint64_t *data_pages)
{
    enum { TOTAL, DATA = 5 };
    uint64_t numbers[DATA + 1];
    for (unsigned index = 0; index <= DATA; index++)
        if (!limits_parse_number(&text, &numbers[index]))
            return false;
    *total_pages = numbers[TOTAL];
    *data_pages = numbers[DATA];
    return true;
}
