/* One line of text built in a fixed buffer: no allocation, no locale, safe in any state of the
 * process. Text that does not fit is cut. The text stays one line: control characters, which come
 * from the environment, become question marks. */
#ifndef HAKMEM_BASE_FORMAT_H
#define HAKMEM_BASE_FORMAT_H

#include "base/types.h"

typedef struct line {
    char text[256];
    size_t length;
} line_t;

static inline void line_add(line_t *line, const char *text)
{
    for (; *text != '\0' && line->length < sizeof line->text - 1; text++) {
        bool is_control = (unsigned char)*text < ' ' || *text == 0x7f;
        line->text[line->length++] = is_control ? '?' : *text;
    }
}

/* Adds a text in brackets, if the text is not empty. */
static inline void line_add_in_brackets(line_t *line, const char *text)
{
    if (*text == '\0')
        return;
    line_add(line, " (");
    line_add(line, text);
    line_add(line, ")");
}

/* The newline that ends it, for which line_add leaves room. */
static inline void line_end(line_t *line)
{
    line->text[line->length++] = '\n';
}

static inline void line_add_based(line_t *line, uint64_t value, unsigned base)
{
    char digits[24];
    size_t at = sizeof digits - 1;
    digits[at] = '\0';
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value != 0);
    line_add(line, digits + at);
}

static inline void line_add_number(line_t *line, uint64_t value)
{
    line_add_based(line, value, 10);
}

/* Bytes as two digits each, as build IDs are written. */
static inline void line_add_bytes(line_t *line, const unsigned char *bytes, size_t count)
{
    for (size_t at = 0; at < count; at++) {
        if (bytes[at] < 16)
            line_add(line, "0");
        line_add_based(line, bytes[at], 16);
    }
}

static inline void line_add_pointer(line_t *line, const void *ptr)
{
    line_add(line, "0x");
    line_add_based(line, (uint64_t)(uintptr_t)ptr, 16);
}

#endif
