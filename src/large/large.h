/* Blocks above the largest size class: whole units from the page heap, or a mapping of their own.
 */
#ifndef HAKMEM_LARGE_LARGE_H
#define HAKMEM_LARGE_LARGE_H

#include "base/types.h"
#include "heap/page_heap.h"
#include "heap/span.h"
#include "heap/span_cache.h"
#include "large/zeroed.h"

/* A block of at least `size` bytes (1 to PTRDIFF_MAX) at a multiple of `alignment`, a power of two.
 * *is_zero says whether it surely reads as zero. NULL: no memory. */
void *large_alloc(size_t size, size_t alignment, bool *is_zero);

/* The same for a block whose owner wants zeros: with what reads as zero, or is cheap to make so. */
void *large_alloc_zeroed(size_t size, size_t alignment, bool *is_zero);

/* The same as a span of the page heap, however long; for a block that has to be found by its span.
 */
span_t *large_alloc_span(size_t size, size_t alignment, bool *is_zero);

/* A block of `size` bytes (at least HUGE_GROWN_MIN) for one that grows: a mapping of its own. NULL:
 * the kernel refuses. */
void *large_alloc_growing(size_t size);

/* The same as large_alloc from what was freed a moment ago, if the span cache has it, for any size
 * whatever. */
void *large_from_cache(size_t size);

/* Takes a LARGE span back. */
static inline void large_free(span_t *span, uint64_t now_ms)
{
    if (UNLIKELY(span->is_zeroed) && zeroed_note_freed(span_start(span), span_size(span)))
        span_cache_bypass_purged(span, now_ms);
    else if (!span_cache_give(span, now_ms))
        page_heap_free(span, now_ms);
}

/* Tries to make a LARGE span hold `size` bytes where it is. */
bool large_resize(span_t *span, size_t size, uint64_t now_ms);

/* The length (at least `size` bytes) that the block in `span`, which is too short for `size`, shall
 * get where it moves to: with room where it grows by small steps and has been moved for that
 * before. */
size_t large_size_with_room(const span_t *span, size_t size);

/* Notes that the block of `from` (any span, or NULL) has moved to the LARGE span `to`, which was
 * asked to hold `size` bytes. */
void large_note_moved(const span_t *from, span_t *to, size_t size);

/* Notes that realloc leaves the block where it is, with `size` bytes. If that is less than it was
 * asked to hold before, it grows no more, and its room is freed. */
void large_note_stayed(span_t *span, size_t size, uint64_t now_ms);

#endif
