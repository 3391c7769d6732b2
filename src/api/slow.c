/* Why did an allocation miss? The one place that sorts it out, question by question. A free that
 * misses is sorted out in free_slow.c. */
#include "api/slow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/checked.h"
#include "api/guard.h"
#include "api/init.h"
#include "api/libc_heap.h"
#include "base/bits.h"
#include "cache/thread_cache.h"
#include "cache/upkeep.h"
#include "os/os.h"
#include "policy/options.h"
#include "probe/route.h"
#include "slab/block_record.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "slab/size_class.h"
#include "slab/zero_blocks.h"
#include "span/huge.h"
#include "span/large.h"

void *out_of_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

/* ---- allocation ---- */

/* The bin is empty. */
static void *refill(thread_cache_t *cache, unsigned class)
{
    void *block = thread_cache_refill(cache, class);
    upkeep_miss(cache);
    return block;
}

/* Nearly every miss: the thread has a bin for the size, and it is empty; or the size is large and
 * the span cache has such a block. NULL: something else. Before initialisation neither can be. */
static inline void *try_caches(size_t size)
{
    if (granule_of(size) >= GRANULE_COUNT)
        return large_from_cache(size);
    unsigned class = size_class_of(size); /* not from the table: another thread may be making it */
    thread_cache_t *cache = thread_cache_own;
    return LIKELY(thread_cache_holds(cache, class)) ? refill(cache, class) : NULL;
}

/* A block of a class from 1 on, by way of the thread's bin if it has one. */
static void *take_class(unsigned class)
{
    thread_cache_t *cache = thread_cache_provide();
    if (!thread_cache_holds(cache, class)) {
        route_note(ROUTE_malloc_uncached);
        void *only = central_list_take_one(class);
        upkeep(os_clock_ms());
        return only;
    }
    void *block = bin_pop(&cache->bins[class]);
    if (block != NULL) {
        route_note(ROUTE_malloc_bin);
        return block;
    }
    return refill(cache, class);
}

/* The same, and where frees are checked its record is written. */
static void *allocate_class(unsigned class, size_t size)
{
    void *block = take_class(class);
    if (block != NULL && records_are_kept()) {
        uint8_t *record = block_record(block);
        if (*record == RECORD_FILLED)
            guard_check_filled(block, size_classes[class].size);
        record_set(record, class, size);
    }
    return block;
}

/* The class that serves `size` (not 0) at `alignment`; 0: none, whole pages do. */
static unsigned class_to_serve(size_t size, size_t alignment)
{
    if (size > MID_MAX)
        return 0;
    if (size <= TINY_MAX && !options.tiny_pool)
        size = TINY_MAX + 1;
    unsigned class = size_class_aligned(size, alignment);
    return options.pool || size_classes[class].size <= TINY_MAX ? class : 0;
}

/* From a private heap, or from that of malloc: NULL. */
static void *try_allocate(private_heap_t *heap, size_t size, size_t alignment, bool *is_zero)
{
    unsigned class = class_to_serve(size, alignment);
    if (class != 0)
        return heap == NULL ? allocate_class(class, size) : private_heap_take(heap, class);
    void *block = heap == NULL ? large_alloc(size, alignment, is_zero)
                               : private_heap_take_large(heap, size, alignment, is_zero);
    if (*is_zero) /* what is due is looked after by those who free, and where memory is fresh */
        upkeep(os_clock_ms());
    return block;
}

/* Step by step, so that nothing is given up early: what is idle serves as it is; it goes back to
 * the kernel for something else; a cached huge block serves, however long it is. */
static COLD void *reclaim_and_allocate(private_heap_t *heap, size_t size, size_t alignment,
                                       bool *is_zero)
{
    size_t room = size + alignment;
    if (room < size || !upkeep_gather(room))
        return NULL;
    void *block = try_allocate(heap, size, alignment, is_zero);
    if (block == NULL && upkeep_unmap(room))
        block = try_allocate(heap, size, alignment, is_zero);
    if (block != NULL || heap != NULL)
        return block;
    *is_zero = false;
    return huge_from_cache(size, alignment);
}

/* The one way from a size to a block, whatever the entry point. NULL: no memory, not even in what
 * lies idle. */
static void *allocate_any(private_heap_t *heap, size_t size, size_t alignment, bool *is_zero)
{
    *is_zero = false;
    void *block = NULL;
    if (size == 0 && heap == NULL && records_are_kept() && alignment == BLOCK_ALIGNMENT)
        block = zero_block_alloc();
    size = larger_of(size, 1);
    if (LIKELY(block == NULL))
        block = try_allocate(heap, size, alignment, is_zero);
    return LIKELY(block != NULL) ? block : reclaim_and_allocate(heap, size, alignment, is_zero);
}

static void *finish(void *block, size_t size)
{
    if (block == NULL)
        return out_of_memory();
    if (options.junk)
        guard_fill_fresh(block, size);
    return block;
}

NOINLINE void *malloc_slow(size_t size)
{
    void *block = UNLIKELY(records_are_kept()) ? checked_malloc_hit(size) : try_caches(size);
    if (LIKELY(block != NULL))
        return finish(block, size);
    if (UNLIKELY(!ensure_init()))
        return out_of_memory();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return libc_heap_malloc(size);
    }
    bool is_zero;
    return finish(allocate_any(NULL, size, BLOCK_ALIGNMENT, &is_zero), size);
}

NOINLINE void *calloc_slow(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return out_of_memory();
    if (UNLIKELY(!ensure_init()))
        return out_of_memory();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return libc_heap_calloc(count, size);
    }
    bool is_zero;
    void *block = allocate_any(NULL, total, BLOCK_ALIGNMENT, &is_zero);
    if (block == NULL)
        return out_of_memory();
    if (options.junk)
        guard_fill_slack(block, total);
    return is_zero || total == 0 ? block : memset(block, 0, total);
}

void *allocate_aligned(size_t alignment, size_t size)
{
    if (UNLIKELY(!ensure_init()))
        return out_of_memory();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return libc_heap_memalign(alignment, size);
    }
    bool is_zero;
    return finish(allocate_any(NULL, size, larger_of(alignment, BLOCK_ALIGNMENT), &is_zero), size);
}

void *allocate_private(private_heap_t *heap, size_t size, size_t alignment, bool is_zeroed)
{
    bool is_zero;
    void *block = allocate_any(heap, size, larger_of(alignment, BLOCK_ALIGNMENT), &is_zero);
    upkeep_call();
    if (block == NULL)
        return out_of_memory();
    route_note(ROUTE_malloc_uncached);
    if (!is_zeroed)
        return finish(block, size);
    if (options.junk)
        guard_fill_slack(block, size);
    return is_zero || size == 0 ? block : memset(block, 0, size);
}
