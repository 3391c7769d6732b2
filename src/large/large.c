/* Large blocks. See large.h. */
#include "large/large.h"

#include <string.h>

#include "base/bits.h"
#include "os/os.h"
#include "options/tuning.h"
#include "base/route.h"
#include "large/huge.h"
#include "heap/page_heap.h"
#include "heap/span_cache.h"

static size_t large_units_for(size_t size)
{
    return (size + UNIT_SIZE - 1) >> UNIT_SHIFT;
}

/* The cache has nothing that serves. */
static NOINLINE span_t *large_take_from_heap(size_t unit_count, size_t alignment, bool *is_zero)
{
    span_cache_evict_for(unit_count);
    return page_heap_alloc(unit_count, alignment, is_zero);
}

static span_t *large_take_span(size_t unit_count, size_t alignment, bool *is_zero)
{
    bool may_be_cached = unit_count <= SPAN_LENGTH_COUNT;
    span_t *span = LIKELY(may_be_cached) ? span_cache_take(unit_count, alignment) : NULL;
    *is_zero = false;
    return LIKELY(span != NULL) ? span : large_take_from_heap(unit_count, alignment, is_zero);
}

/* Makes all of a span that was just allocated from the page heap read as zero. The dirty pages go
 * back to the kernel where they are whole and it takes them. */
static void large_clear_dirty(const span_t *span)
{
    size_t from = span->first_unit;
    size_t behind;
    for (; page_heap_next_dirty(span, &from, &behind); from = behind) {
        char *start = unit_address(from);
        size_t size = (behind - from) << UNIT_SHIFT;
        bool is_whole = is_aligned(start, os_page_size()) && size % os_page_size() == 0;
        if (!is_whole || !os_purge(start, size))
            memset(start, 0, size);
    }
}

/* For a long block whose owner wants zeros. Where such blocks are sparse, clean units serve; what
 * is dirty is left to others, for it saves them page faults. */
static COLD span_t *large_take_zeroed_span(size_t unit_count, size_t alignment, bool *is_zero)
{
    bool is_sparse = zeroed_are_sparse();
    span_t *span = is_sparse ? page_heap_alloc_zeroed(unit_count, alignment, is_zero)
                             : large_take_span(unit_count, alignment, is_zero);
    if (span == NULL)
        return NULL;
    span->is_zeroed = *is_zero || is_sparse;
    if (is_sparse && !*is_zero)
        large_clear_dirty(span);
    *is_zero |= is_sparse;
    return span;
}

void *large_from_cache(size_t size)
{
    if (size - 1 >= SPAN_CACHED_MAX)
        return NULL;
    span_t *span = span_cache_take(large_units_for(size), UNIT_SIZE);
    if (span == NULL)
        return NULL;
    route_note(ROUTE_malloc_large);
    PROBE(large_malloc, span_start(span), size);
    return span_start(span);
}

/* The kernel refuses: what is mapped serves. */
static COLD void *large_take_mapped(size_t size, size_t alignment, bool *is_zero)
{
    span_t *span = page_heap_alloc_mapped(large_units_for(size), alignment, is_zero);
    if (span == NULL)
        return NULL;
    route_note(ROUTE_malloc_large);
    PROBE(large_malloc, span_start(span), size);
    return span_start(span);
}

span_t *large_alloc_span(size_t size, size_t alignment, bool *is_zero)
{
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size)
        return NULL;
    return large_take_span(large_units_for(size), alignment, is_zero);
}

static void *large_alloc_any(size_t size, size_t alignment, bool is_zeroed, bool *is_zero)
{
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size)
        return NULL;
    if (size < HUGE_MIN && alignment < HUGE_MIN) {
        span_t *span = is_zeroed ? large_take_zeroed_span(large_units_for(size), alignment, is_zero)
                                 : large_take_span(large_units_for(size), alignment, is_zero);
        if (span != NULL) {
            route_note(ROUTE_malloc_large);
            PROBE(large_malloc, span_start(span), size);
            return span_start(span);
        }
    }
    /* Also when the window is full or obstructed: the rest of the address space is there. */
    void *block = is_zeroed ? huge_alloc_zeroed(size, alignment, is_zero)
                            : huge_alloc(size, alignment, is_zero);
    if (UNLIKELY(block == NULL))
        return large_take_mapped(size, alignment, is_zero);
    route_note(ROUTE_malloc_huge);
    PROBE(huge_malloc, block, size);
    return block;
}

void *large_alloc(size_t size, size_t alignment, bool *is_zero)
{
    return large_alloc_any(size, alignment, false, is_zero);
}

void *large_alloc_zeroed(size_t size, size_t alignment, bool *is_zero)
{
    return large_alloc_any(size, alignment, size >= ZEROED_LEAST, is_zero);
}

void *large_alloc_growing(size_t size)
{
    void *block = size > PTRDIFF_MAX ? NULL : huge_alloc_growing(size);
    if (block == NULL)
        return NULL;
    route_note(ROUTE_malloc_huge);
    PROBE(huge_malloc, block, size);
    return block;
}

bool large_resize(span_t *span, size_t size, uint64_t now_ms)
{
    if (size >= HUGE_MIN)
        return false;
    size_t wanted = large_units_for(size);
    if (wanted > span->unit_count && !page_heap_extend(span, wanted))
        return false;
    if (wanted < span->unit_count) {
        span->moves = 0;
        page_heap_shrink(span, wanted, now_ms);
    }
    span->asked_units = wanted;
    return true;
}

/* How often the block has been moved; 0 as well for one that no span of its own holds. */
static unsigned large_move_count(const span_t *span)
{
    return span != NULL && span_state(span) == SPAN_LARGE ? span->moves : 0;
}

size_t large_size_with_room(const span_t *span, size_t size)
{
    size_t moves = large_move_count(span);
    if (moves == 0 || size >= HUGE_MIN || size - span_size(span) > size / GROWTH_STEP_SHARE)
        return size;
    return size + size / GROWTH_ROOM_SHARE * moves;
}

void large_note_moved(const span_t *from, span_t *to, size_t size)
{
    to->moves = (uint16_t)smaller_of(large_move_count(from) + 1, GROWTH_MOVES_MOST);
    to->asked_units = large_units_for(size);
}

void large_note_stayed(span_t *span, size_t size, uint64_t now_ms)
{
    if (large_move_count(span) == 0)
        return;
    size_t units = large_units_for(size);
    if (units < span->asked_units && units < span->unit_count) {
        span->moves = 0;
        page_heap_shrink(span, units, now_ms);
    }
    span->asked_units = units;
}
