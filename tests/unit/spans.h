/* Spans of the page heap, allocated and freed: for tests of heap/. Included by one program each, so
 * the bodies are here. */
#ifndef HAKMEM_TESTS_SPANS_H
#define HAKMEM_TESTS_SPANS_H

#include "heap/page_heap.h"
#include "unit/fresh.h"

__attribute__((unused)) static page_heap_t *const heap = &page_heap;

/* What the last alloc said. */
static bool is_zero;

__attribute__((unused)) static span_t *alloc(size_t unit_count)
{
    span_t *span = page_heap_alloc(unit_count, UNIT_SIZE, &is_zero);
    check(span != NULL);
    check_eq(span->unit_count, unit_count);
    check_eq(span_state(span), SPAN_LARGE);
    check(page_heap_is_valid());
    return span;
}

__attribute__((unused)) static void release(span_t *span, uint64_t now_ms)
{
    page_heap_free(span, now_ms);
    check(page_heap_is_valid());
}

/* Free units, counted from what the heap says of itself. */
__attribute__((unused)) static size_t free_units(void)
{
    return heap->mapped_units - heap->used_units;
}

#endif
