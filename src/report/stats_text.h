/* The text that the option stats writes: one JSON object with all figures (docs/memory.md). */
#ifndef HAKMEM_REPORT_STATS_TEXT_H
#define HAKMEM_REPORT_STATS_TEXT_H

#include "base/types.h"

#define STATS_TEXT_ROOM (64 * KIB)

typedef struct stats_text {
    size_t length;
    bool wants_comma;
    char bytes[STATS_TEXT_ROOM];
} stats_text_t;

/* Makes the text anew. The callers come one at a time. */
void stats_text_make(stats_text_t *text, uint64_t running_ms);

#endif
