/* The free spans of the page heap: found by length, joined with their free neighbours, cut in
 * parts, and held in the order of their age. Each lies in chunks of one kind, dense or not
 * (unit_is_dense). The caller holds the lock of the page heap. */
#ifndef HAKMEM_HEAP_FREE_SPANS_H
#define HAKMEM_HEAP_FREE_SPANS_H

#include "base/types.h"
#include "heap/span_bins.h"

typedef struct free_spans {
    list_node_t by_age;   /* dirty ones, youngest first; see free_spans_oldest */
    size_t dirty_units;   /* that still hold memory; read without the lock too */
    size_t low_units;     /* the least that dirty_units was since page_heap_low_water was asked */
    span_bins_t dirty;    /* those that hold memory somewhere */
    span_bins_t clean[2]; /* the others, by unit_is_dense */
    size_t
        looked_words; /* of window_tables.dirty; counted in checked builds, for tests of the cost */
} free_spans_t;

/* A span of at least `unit_count` units, one that holds memory rather than a clean one. A clean one
 * is in dense chunks, or in none. NULL: none was found. The span
 * stays where it is. */
span_t *free_spans_find(free_spans_t *spans, size_t unit_count, bool is_dense);

/* The free span that begins or ends at `unit`, and can be joined with the neighbour `of`; NULL:
 * there is none in a chunk of the same kind. */
span_t *free_spans_beside(const span_t *of, size_t unit);

/* Enters a span whose units, dirty count and (where it is dirty) stamp are set, joined with its
 * free neighbours, however long they are at the same cost. What is joined is as old as its oldest
 * part, or memory next to a busy place would never age. */
void free_spans_insert(free_spans_t *spans, span_t *span);

/* Cuts [skip, skip + unit_count) out of a free span; what is left over stays free and as old as it
 * was. The taken part keeps the descriptor and is in no list. The dirty units in front of its end
 * are counted, where they are not known to be clean. NULL: no memory to describe the rest; nothing
 * has changed. */
span_t *free_spans_carve(free_spans_t *spans, span_t *span, size_t skip, size_t unit_count);

/* Takes the last `unit_count` units off a free span; nothing describes them any more, so that no
 * memory is needed for it. Returns the first of them. */
size_t free_spans_cut_off(free_spans_t *spans, span_t *span, size_t unit_count);

/* The first of units [from, end) that is dirty, or clean; `end`: there is none. */
size_t free_spans_find_unit(free_spans_t *spans, size_t from, size_t end, bool is_dirty);

/* How many units of a free span lie before the first run of so many clean ones; all of them: there
 * is no such run. */
size_t free_spans_find_clean(free_spans_t *spans, const span_t *span, size_t unit_count);

/* How many of so many units (not none) are dirty. */
size_t free_spans_count_dirty(free_spans_t *spans, size_t first_unit, size_t unit_count);

/* Where an alignment is more than that of a unit: a span of at least `unit_count` units that begins
 * at a multiple of it, such as blocks of that alignment leave. NULL: the one that is looked at does
 * not. */
span_t *free_spans_find_aligned(free_spans_t *spans, size_t unit_count, size_t alignment);

/* The dirty span that is free for longest; NULL: none. */
span_t *free_spans_oldest(const free_spans_t *spans);

/* Gives a dirty free span another stamp and the place that goes with it. */
void free_spans_set_age(free_spans_t *spans, span_t *span, uint64_t freed_ms);

/* The dirty units of the span fill no whole page: it has no place in the order of age until it
 * joins one that has. */
void free_spans_forget_age(span_t *span);

/* The law: bins, neighbours, counts and the order of age agree. Adds up the units of all. */
bool free_spans_are_valid(free_spans_t *spans, size_t *unit_count);

#endif
