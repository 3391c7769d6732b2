/* Large blocks. See large.h. */
#include "large/large.h"

#include "base/bits.h"
#include "base/count.h"
#include "os/os.h"
#include "base/route.h"
#include "large/huge.h"
#include "heap/page_heap.h"
#include "heap/span_cache.h"

static size_t units_for(size_t size)
{
    return (size + UNIT_SIZE - 1) >> UNIT_SHIFT;
}

/* The cache has nothing that serves. */
static NOINLINE span_t *take_from_heap(size_t unit_count, size_t alignment, bool *is_zero)
{
    span_cache_make_way(unit_count);
    return page_heap_alloc(unit_count, alignment, is_zero);
}

static span_t *take_span(size_t unit_count, size_t alignment, bool *is_zero)
{
    bool may_be_cached = alignment <= UNIT_SIZE && unit_count <= SPAN_LENGTH_COUNT;
    span_t *span = LIKELY(may_be_cached) ? span_cache_take(unit_count) : NULL;
    *is_zero = false;
    return LIKELY(span != NULL) ? span : take_from_heap(unit_count, alignment, is_zero);
}

void *large_from_cache(size_t size)
{
    if (size - 1 >= SPAN_CACHED_MAX)
        return NULL;
    span_t *span = span_cache_take(units_for(size));
    if (span == NULL)
        return NULL;
    route_note(ROUTE_malloc_large);
    PROBE(large_malloc, span_start(span), size);
    return span_start(span);
}

/* The kernel refuses: what is mapped serves. */
static COLD void *take_mapped(size_t size, size_t alignment, bool *is_zero)
{
    span_t *span = page_heap_alloc_mapped(units_for(size), alignment, is_zero);
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
    return take_span(units_for(size), alignment, is_zero);
}

void *large_alloc(size_t size, size_t alignment, bool *is_zero)
{
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size)
        return NULL;
    if (size < HUGE_MIN && alignment < HUGE_MIN) {
        span_t *span = take_span(units_for(size), alignment, is_zero);
        if (span != NULL) {
            route_note(ROUTE_malloc_large);
            PROBE(large_malloc, span_start(span), size);
            return span_start(span);
        }
    }
    /* Also when the window is full or obstructed: the rest of the address space is there. */
    void *block = huge_alloc(size, alignment, is_zero);
    if (UNLIKELY(block == NULL))
        return take_mapped(size, alignment, is_zero);
    route_note(ROUTE_malloc_huge);
    PROBE(huge_malloc, block, size);
    return block;
}

void *large_alloc_wished(size_t size, size_t alignment, unsigned wishes, bool *is_zero)
{
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size)
        return NULL;
    void *block = huge_alloc(size, alignment, is_zero);
    if (block == NULL)
        return NULL;
    huge_wish(block, wishes);
    route_note(ROUTE_malloc_huge);
    PROBE(huge_malloc, block, size);
    return block;
}

void *large_alloc_growing(size_t size)
{
    bool is_zero;
    void *block = size > PTRDIFF_MAX ? NULL : huge_alloc(size, BLOCK_ALIGNMENT, &is_zero);
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
    size_t wanted = units_for(size);
    if (wanted > span->unit_count)
        return page_heap_extend(span, wanted);
    if (span->unit_count > wanted)
        page_heap_shrink(span, wanted, now_ms);
    return true;
}
