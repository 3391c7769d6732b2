/* Why did the hit path miss? The one place that sorts it out, question by question. */
#include "api/slow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/birth.h"
#include "api/libc_heap.h"
#include "base/bits.h"
#include "cache/thread_cache.h"
#include "cache/upkeep.h"
#include "harden/fatal.h"
#include "os/os.h"
#include "policy/options.h"
#include "probe/route.h"
#include "slab/central_list.h"
#include "slab/size_class.h"
#include "slab/slab.h"
#include "span/huge.h"
#include "span/large.h"

/* Patterns that make use of fresh and of freed memory show. */
#define JUNK_FRESH 0xa5
#define JUNK_FREED 0xdf

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
 * the span cache has such a block. NULL: something else. Before birth neither can be. */
static inline void *try_caches(size_t size)
{
    size_t granule = granule_of(size);
    if (granule >= GRANULE_COUNT)
        return large_from_cache(size);
    unsigned class = size_class_of_granule[granule] >> CLASS_OFFSET_SHIFT;
    thread_cache_t *cache = thread_cache_current;
    return LIKELY(thread_cache_holds(cache, class)) ? refill(cache, class) : NULL;
}

/* A block of a class from 1 on, by way of the thread's bin if it has one. */
static void *allocate_class(unsigned class)
{
    thread_cache_t *cache = thread_cache_provide();
    void *block = NULL;
    if (!thread_cache_holds(cache, class)) {
        route_note(ROUTE_malloc_uncached);
        central_list_take(class, &block + 1, 1);
        upkeep(os_clock_ms());
        return block;
    }
    block = bin_pop(&cache->bins[class]);
    if (block != NULL) {
        route_note(ROUTE_malloc_bin);
        return block;
    }
    return refill(cache, class);
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

static void *try_allocate(size_t size, size_t alignment, bool *is_zero)
{
    unsigned class = class_to_serve(size, alignment);
    if (class != 0)
        return allocate_class(class);
    void *block = large_alloc(size, alignment, is_zero);
    if (*is_zero) /* what is due is looked after by those who free, and where memory is fresh */
        upkeep(os_clock_ms());
    return block;
}

/* Step by step, so that nothing is given up in vain: what is idle serves as it is; it goes back to
 * the kernel for something else; a cached huge block serves, however long it is. */
static COLD void *reclaim_and_allocate(size_t size, size_t alignment, bool *is_zero)
{
    size_t room = size + alignment;
    if (room < size || !upkeep_gather(room))
        return NULL;
    void *block = try_allocate(size, alignment, is_zero);
    if (block == NULL && upkeep_unmap(room))
        block = try_allocate(size, alignment, is_zero);
    if (block != NULL)
        return block;
    *is_zero = false;
    return huge_from_cache(size, alignment);
}

/* The one way from a size to a block, whatever the entry point. NULL: no memory, not even in what
 * lies idle. */
static void *allocate_any(size_t size, size_t alignment, bool *is_zero)
{
    *is_zero = false;
    size = larger_of(size, 1);
    void *block = try_allocate(size, alignment, is_zero);
    return LIKELY(block != NULL) ? block : reclaim_and_allocate(size, alignment, is_zero);
}

static void *finish(void *block)
{
    if (block == NULL)
        return out_of_memory();
    if (options.junk)
        memset(block, JUNK_FRESH, block_size(block, "malloc"));
    return block;
}

NOINLINE void *malloc_slow(size_t size)
{
    void *block = try_caches(size);
    if (LIKELY(block != NULL))
        return finish(block);
    ensure_birth();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return libc_heap_malloc(size);
    }
    bool is_zero;
    return finish(allocate_any(size, BLOCK_ALIGNMENT, &is_zero));
}

NOINLINE void *calloc_slow(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        return out_of_memory();
    ensure_birth();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return libc_heap_calloc(count, size);
    }
    bool is_zero;
    void *block = allocate_any(total, BLOCK_ALIGNMENT, &is_zero);
    if (block == NULL)
        return out_of_memory();
    return is_zero ? block : memset(block, 0, total);
}

void *allocate_aligned(size_t alignment, size_t size)
{
    ensure_birth();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return libc_heap_memalign(alignment, size);
    }
    bool is_zero;
    return finish(allocate_any(size, larger_of(alignment, BLOCK_ALIGNMENT), &is_zero));
}

/* ---- release ---- */

/* The bin is full, or has the block on top already. */
static void flush(thread_cache_t *cache, unsigned class, void *ptr)
{
    if (UNLIKELY(bin_has_at_an_end(&cache->bins[class], ptr)))
        fatal_already_free("free", ptr, size_classes[class].size);
    thread_cache_flush(cache, class, ptr);
    upkeep_miss(cache);
}

static void free_block(void *ptr, unsigned class)
{
    thread_cache_t *cache = thread_cache_provide();
    if (!thread_cache_holds(cache, class)) {
        route_note(ROUTE_free_uncached);
        if (options.junk) {
            central_list_check(class, ptr, "free");
            memset(ptr, JUNK_FREED, size_classes[class].size);
        }
        central_list_give(class, &ptr, 1);
        upkeep(os_clock_ms());
        return;
    }
    if (bin_push(&cache->bins[class], ptr)) { /* the cache was born just now */
        route_note(ROUTE_free_bin);
        return;
    }
    flush(cache, class, ptr);
}

/* Ends the program unless a large block in use begins at `ptr`. */
static void check_large(const span_t *span, const void *ptr, const char *verb)
{
    if (span == NULL)
        fatal_free_memory(verb, ptr);
    if (ptr != span_start(span))
        fatal_inside_block(verb, ptr, span_size(span));
    if (span_state(span) == SPAN_CACHED)
        fatal_already_free(verb, ptr, span_size(span));
}

/* `is_outgrown`: realloc has copied the block to a longer one. */
static void free_large(span_t *span, void *ptr, bool is_outgrown)
{
    check_large(span, ptr, is_outgrown ? "realloc" : "free");
    route_note(ROUTE_free_large);
    if (options.junk)
        memset(ptr, JUNK_FREED, span_size(span));
    uint64_t now_ms = os_clock_ms();
    if (is_outgrown)
        span_cache_pass_by(span, now_ms);
    else
        large_free(span, now_ms);
    upkeep(now_ms);
}

static void free_outside_window(void *ptr)
{
    uint64_t now_ms = os_clock_ms();
    if (huge_free(ptr, now_ms)) {
        route_note(ROUTE_free_huge);
        upkeep(now_ms);
        return;
    }
    if (libc_heap_owns(ptr)) {
        route_note(ROUTE_free_libc);
        libc_heap_free(ptr);
        return;
    }
    (void)block_size(ptr, "free"); /* says what is wrong with it */
}

static void free_in_window(void *ptr)
{
    unsigned class = class_of_unit(unit_of(ptr));
    thread_cache_t *cache = thread_cache_current;
    if (LIKELY(thread_cache_holds(cache, class)))
        flush(cache, class, ptr);
    else if (class != 0)
        free_block(ptr, class);
    else
        free_large(span_of(ptr), ptr, false);
}

NOINLINE void free_slow(void *ptr)
{
    if (LIKELY(window_has(ptr))) {
        free_in_window(ptr);
    } else if (ptr != NULL) {
        ensure_birth();
        free_outside_window(ptr);
    }
}

COLD void free_sized_slow(void *ptr, size_t size)
{
    ensure_birth();
    if (ptr != NULL && options.size_check) {
        size_t length = block_size(ptr, "free");
        if (size > length)
            fatal_wrong_size("free", ptr, size, length);
    }
    free_slow(ptr);
}

void free_outgrown(void *ptr)
{
    if (window_has(ptr) && class_of_unit(unit_of(ptr)) == 0)
        free_large(span_of(ptr), ptr, true);
    else
        free(ptr);
}

/* ---- what lies there ---- */

static size_t size_outside_window(const void *ptr, const char *verb)
{
    size_t size = 0;
    switch (huge_find(ptr, &size)) {
    case HUGE_LIVE:
        return size;
    case HUGE_CACHED:
        fatal_already_free(verb, ptr, size);
    case HUGE_INSIDE:
        fatal_inside_block(verb, ptr, size);
    case HUGE_NONE:
        break;
    }
    if (libc_heap_owns(ptr))
        return SIZE_MAX;
    fatal_not_ours(verb, ptr);
}

/* No block of a slab, or there is something wrong with it. */
static NOINLINE size_t size_otherwise(const void *ptr, const char *verb)
{
    ensure_birth();
    if (!window_has(ptr))
        return size_outside_window(ptr, verb);
    unsigned class = class_of_unit(unit_of(ptr));
    if (class != 0) {
        central_list_check(class, ptr, verb);
        return size_classes[class].size;
    }
    const span_t *span = span_of(ptr);
    check_large(span, ptr, verb);
    return span_size(span);
}

size_t block_size(const void *ptr, const char *verb)
{
    size_t size = slab_block_size(ptr);
    return LIKELY(size != 0) ? size : size_otherwise(ptr, verb);
}
