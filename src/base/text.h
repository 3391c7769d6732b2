/* Texts that end in a NUL, for code that may not call the C library. */
#ifndef HAKMEM_BASE_TEXT_H
#define HAKMEM_BASE_TEXT_H

#include "base/types.h"

static inline size_t text_length(const char *text)
{
    size_t length = 0;
    while (text[length] != '\0')
        length++;
    return length;
}

/* The text behind `prefix`, or NULL: it does not begin so. */
static inline const char *text_behind(const char *text, const char *prefix)
{
    while (*prefix != '\0')
        if (*text++ != *prefix++)
            return NULL;
    return text;
}

static inline bool text_is(const char *text, const char *other)
{
    const char *rest = text_behind(text, other);
    return rest != NULL && *rest == '\0';
}

#endif
