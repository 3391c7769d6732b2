/* Blocks above the largest size class: whole units from the page heap, or a mapping of their own.
 */
#ifndef HAKMEM_LARGE_LARGE_H
#define HAKMEM_LARGE_LARGE_H

#include "base/types.h"
#include "heap/page_heap.h"
#include "heap/span.h"
#include "heap/span_cache.h"

/* A block of at least `size` bytes (1 to PTRDIFF_MAX) at a multiple of `alignment`, a power of two.
 * *is_zero says whether it surely reads as zero. NULL: no memory. */
void *large_alloc(size_t size, size_t alignment, bool *is_zero);

/* The same as a span of the page heap, however long; for a block that has to be found by its span.
 */
span_t *large_alloc_span(size_t size, size_t alignment, bool *is_zero);

/* As large_alloc, a mapping of its own with the wishes (huge_wish_t) noted; for at least
 * SITE_LARGE_LEAST bytes. */
void *large_alloc_wished(size_t size, size_t alignment, unsigned wishes, bool *is_zero);

/* A block of `size` bytes (at least HUGE_GROWN_MIN) for one that grows: a mapping of its own. NULL:
 * the kernel refuses. */
void *large_alloc_growing(size_t size);

/* The same as large_alloc from what was freed a moment ago, if the span cache has it, for any size
 * whatever. */
void *large_from_cache(size_t size);

/* Takes a LARGE span back. */
static inline void large_free(span_t *span, uint64_t now_ms)
{
    if (!span_cache_give(span, now_ms))
        page_heap_free(span, now_ms);
}

/* Tries to make a LARGE span hold `size` bytes where it is. */
bool large_resize(span_t *span, size_t size, uint64_t now_ms);

#endif
