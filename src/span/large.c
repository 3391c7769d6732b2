/* Large blocks. See large.h. */
#include "span/large.h"

#include "base/bits.h"
#include "probe/route.h"
#include "span/huge.h"
#include "span/page_heap.h"

static size_t units_for(size_t size)
{
    return (size + UNIT_SIZE - 1) >> UNIT_SHIFT;
}

void *large_alloc(size_t size, size_t alignment, bool *is_zero)
{
    if (size > PTRDIFF_MAX || alignment > PTRDIFF_MAX - size)
        return NULL;
    if (size < HUGE_MIN && alignment < HUGE_MIN) {
        span_t *span = page_heap_alloc(HEAP_OF_LARGE, units_for(size), alignment, is_zero);
        if (span != NULL) {
            route_note(ROUTE_malloc_large);
            return span_start(span);
        }
    }
    /* Also when the window is full or in somebody's way: the rest of the address space is there. */
    route_note(ROUTE_malloc_huge);
    return huge_alloc(size, alignment, is_zero);
}

bool large_resize(span_t *span, size_t size, uint64_t now_ms)
{
    size_t wanted = units_for(size);
    if (size > PTRDIFF_MAX || size >= HUGE_MIN)
        return false;
    if (wanted > span->unit_count)
        return page_heap_extend(span, wanted);
    /* A block that shrank a little will grow a little: keep an eighth in hand. */
    if (span->unit_count - wanted > span->unit_count / 8)
        page_heap_shrink(span, wanted, now_ms);
    return true;
}
