/* Free spans by length, for a search that looks at a few of them at most. The caller locks. */
#ifndef HAKMEM_HEAP_SPAN_BINS_H
#define HAKMEM_HEAP_SPAN_BINS_H

#include "base/types.h"
#include "heap/span.h"

/* Exact bins up to 64 units, then four to each doubling. */
#define EXACT_BINS 64
#define BIN_COUNT (EXACT_BINS + 4 * 40)
#define BIN_WORDS ((BIN_COUNT + 63) / 64)

typedef struct span_bins {
    uint64_t occupied[BIN_WORDS];
    list_node_t heads[BIN_COUNT];
} span_bins_t;

static inline span_t *span_in_bin(list_node_t *node)
{
    return LIST_ITEM(node, span_t, bin_node);
}

/* The bin that spans of so many units stand in. */
unsigned span_bin_of(size_t unit_count);

void span_bins_insert(span_bins_t *bins, span_t *span);
void span_bins_remove(span_bins_t *bins, span_t *span);

/* A span of at least `unit_count` units, not much longer if there is one; NULL: none was found. */
span_t *span_bins_find(span_bins_t *bins, size_t unit_count);

#endif
