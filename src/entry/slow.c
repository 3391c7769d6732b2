/* Why did an allocation miss? The one place that sorts it out, question by question. A free that
 * misses is sorted out in free_slow.c.
 *
 *   malloc_slow        the size is 0 or large, the bin is empty, or the hit path is closed
 *   ├─ counted_hit     closed for counting alone: the hit
 *   └─ malloc_sort     which detours are there (detour.h)?
 *      ├─ malloc_sited     policy rules alone: the class of the site; the hit, or a refill
 *      ├─ malloc_missed    none, or a sample that is not due: a refill, or the span cache
 *      └─ malloc_further   other detours, and what the two above leave
 *         ├─ take_detour     marks a sample, finds a group, or makes the hit
 *         └─ malloc_serve    initialises the process if nobody has; LD_SAFE: the C library's heap
 *            └─ allocate_any     a request of any kind
 *               ├─ try_allocate     a class: take_small ─▶ bin ─▶ thread_cache_refill, or
 *               │                   the slabs; none, or a sample: take_large ─▶ large_alloc
 *               └─ reclaim_and_allocate   the kernel refused: other groups, then idle memory
 *
 * calloc_sort asks the same questions itself, and goes on at allocate_any. The functions for
 * aligned blocks, private heaps and groups make a request, and call malloc_serve or allocate_any.
 * operator new has its own counted_hit, and begins at malloc_sort. */
#include "entry/slow.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "check/checked.h"
#include "entry/counted_hit.h"
#include "slab/detour.h"
#include "check/guard.h"
#include "entry/init.h"
#include "entry/libc_heap.h"
#include "report/profile.h"
#include "base/bits.h"
#include "cache/thread_cache.h"
#include "upkeep/reclaim.h"
#include "upkeep/upkeep.h"
#include "site/groups.h"
#include "site/site_rules.h"
#include "observe/sampler.h"
#include "os/os.h"
#include "options/options.h"
#include "base/route.h"
#include "slab/block_record.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "slab/size_class.h"
#include "check/zero_blocks.h"
#include "keep/pressure.h"
#include "large/huge.h"
#include "large/large.h"

void *out_of_memory(void)
{
    PROBE(out_of_memory);
    errno = ENOMEM;
    return NULL;
}

/* ---- allocation ---- */

/* What is asked for. */
typedef struct request {
    private_heap_t *heap; /* NULL: that of malloc */
    unsigned group;       /* in that of malloc; 0: none */
    size_t size;
    size_t alignment;
    bool is_zeroed;     /* of calloc */
    bool is_sample;     /* for the profile: a span of its own, so that its free misses */
    bool is_followed;   /* such a span, though it is no sample itself */
    const void *caller; /* the return address of the entry point */
    const char *stack;  /* for site rules: the stack pointer of the caller */
} request_t;

/* The bin is empty. */
static void *malloc_refill(thread_cache_t *cache, unsigned class)
{
    void *block = thread_cache_refill(cache, class);
    upkeep_miss(cache);
    return block;
}

/* Nearly every miss: the thread has a bin for the size, and nearly always it is empty; or the size
 * is large and the span cache has such a block. NULL: something else. Before initialisation neither
 * can be. */
static inline void *try_caches(size_t size)
{
    if (granule_of(size) >= GRANULE_COUNT)
        return large_from_cache(size);
    unsigned class = size_class_of(size);
    thread_cache_t *cache = thread_cache_own;
    if (UNLIKELY(!thread_cache_holds(cache, class)))
        return NULL;
    /* The bin has blocks where the hit path was closed a moment ago and is open again
     * (detour.h). */
    void *block = bin_pop(&cache->bins[class]);
    return LIKELY(block == NULL) ? malloc_refill(cache, class) : block;
}

/* A block of a class from 1 on, by way of the thread's bin if it has one. */
static void *take_class(unsigned class)
{
    thread_cache_t *cache = thread_cache_provide();
    if (!thread_cache_comes_to_hold(cache, class)) {
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
    return malloc_refill(cache, class);
}

/* As take_class; where frees are checked, the record of the block is written too. */
static void *allocate_class(unsigned class, const request_t *request)
{
    void *block = take_class(class);
    if (block != NULL && frees_are_checked())
        guard_hand_out(block, class, request->size);
    return block;
}

/* The class that serves the request (not of 0 bytes); 0: none, whole pages do. In the debug mode
 * one byte behind it is guarded at least. */
static unsigned class_to_serve(const request_t *request)
{
    size_t guarded = guard_bytes();
    if (request->size > MID_MAX - guarded)
        return 0;
    unsigned class = size_class_aligned(request->size + guarded, request->alignment);
    if (LIKELY(request->group == 0) || class == 0)
        return class;
    size_t served = align_up(request->size + guarded, request->alignment);
    return group_class(request->group, size_class_fixed_of(served));
}

/* Notes the block for the profile. If it is a huge one, its address alone tells. */
static COLD void note_sample(const request_t *request, void *block, unsigned class)
{
    span_t *span = span_of(block);
    if (span != NULL)
        span->sample = (uint8_t)(class != 0 ? class : SAMPLE_LARGE);
    if (!request->is_followed)
        profile_sample(block, request->size, request->caller);
}

/* In the debug mode every free comes to free_slow.c and looks whether the block is a sample.
 * Therefore a sample may be a block like others there, but not in a private heap, which goes
 * without a look at each block. */
static bool may_be_like_others(const request_t *request)
{
    return options.junk && frees_are_checked() && request->heap == NULL;
}

/* Notes a block of a slab for the profile. */
static COLD void *note_small_sample(const request_t *request, void *block)
{
    if (block != NULL && !request->is_followed)
        profile_sample(block, request->size, request->caller);
    return block;
}

static void *take_small(const request_t *request, unsigned class)
{
    if (request->heap == NULL)
        return allocate_class(class, request);
    /* A heap of its own has few blocks: slabs of few classes. */
    return private_heap_take(request->heap, size_class_fixed_of(size_classes[class].size));
}

/* A block that no slab serves. */
static void *take_large(const request_t *request, bool *is_zero)
{
    private_heap_t *heap = request->heap;
    size_t size = request->size;
    size_t alignment = request->alignment;
    if (heap != NULL)
        return private_heap_take_large(heap, size, alignment, is_zero);
    return request->is_zeroed ? large_alloc_zeroed(size, alignment, is_zero)
                              : large_alloc(size, alignment, is_zero);
}

static void *try_allocate(const request_t *request, bool *is_zero)
{
    unsigned class = class_to_serve(request);
    if (LIKELY(class != 0 && !request->is_sample))
        return take_small(request, class);
    if (class != 0 && may_be_like_others(request))
        return note_small_sample(request, take_small(request, class));
    uint64_t fresh = counter_read(&pressure_figures.fresh_units);
    void *block = take_large(request, is_zero);
    if (UNLIKELY(request->is_sample) && block != NULL)
        note_sample(request, block, class);
    else if (UNLIKELY(block == NULL) && class != 0) /* no span for a sample: a block like others */
        return take_small(request, class);
    /* upkeep runs where memory is freed, and where it is fresh. A huge request has to be noted too,
     * or the memory that is kept for such requests would seem to be unwanted. */
    if (counter_read(&pressure_figures.fresh_units) != fresh || request->size >= HUGE_MIN)
        upkeep(os_clock_ms());
    return block;
}

/* Step by step, so that nothing is given up early: idle memory serves as it is; then idle memory
 * goes back to the kernel, for a new mapping; then a cached huge block serves, of any length. */
static COLD void *reclaim_and_allocate(const request_t *request, bool *is_zero)
{
    request_t any_group = *request;
    size_t room = request->size + request->alignment;
    if (request->group != 0) { /* the slabs of others may have a block */
        any_group.group = 0;
        void *other = try_allocate(&any_group, is_zero);
        if (other != NULL)
            return other;
        request = &any_group;
    }
    if (room < request->size || !reclaim_gather(room))
        return NULL;
    void *block = try_allocate(request, is_zero);
    if (block == NULL && reclaim_unmap(room))
        block = try_allocate(request, is_zero);
    if (block != NULL || request->heap != NULL)
        return block;
    *is_zero = false;
    return huge_from_cache(request->size, request->alignment);
}

/* The one way from a size to a block, whatever the entry point. NULL: no memory, not even in what
 * lies idle. */
static void *allocate_any(request_t request, bool *is_zero)
{
    *is_zero = false;
    void *block = NULL;
    if (request.size == 0 && request.heap == NULL && frees_are_checked() &&
        request.alignment == BLOCK_ALIGNMENT)
        block = zero_block_alloc();
    request.size = larger_of(request.size, 1);
    if (LIKELY(block == NULL))
        block = try_allocate(&request, is_zero);
    return LIKELY(block != NULL) ? block : reclaim_and_allocate(&request, is_zero);
}

static void *malloc_finish(void *block, size_t size)
{
    if (block == NULL)
        return out_of_memory();
    guard_fill_fresh(block, size);
    return block;
}

/* For a request that is here although the bin may have a block: marks a sample, finds the group of
 * a site, or else pops the block as the hit path would. NULL: no block yet. */
static COLD void *take_detour(request_t *request, unsigned which)
{
    size_t size = request->size;
    request->is_sample = (which & DETOUR_SAMPLES) != 0 && sampler_is_due(size);
    if (granule_of(size) >= GRANULE_COUNT)
        return NULL;
    unsigned class = size_class_of(size);
    if ((which & DETOUR_SITES) != 0)
        request->group =
            site_rules_group(request->caller, request->stack, size_class_fixed_of(size));
    if (request->is_sample || request->group != 0)
        return NULL;
    if ((which & DETOUR_RECORDS) != 0)
        return checked_malloc_hit(size);
    return bin_pop(&thread_bins[class]);
}

/* A block for a request that no cache and no bin has served. */
static void *malloc_serve(const request_t *request)
{
    if (UNLIKELY(!ensure_init()))
        return out_of_memory();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return request->alignment == BLOCK_ALIGNMENT
                   ? libc_heap_malloc(request->size)
                   : libc_heap_memalign(request->alignment, request->size);
    }
    bool is_zero;
    return malloc_finish(allocate_any(*request, &is_zero), request->size);
}

static NOINLINE void *malloc_further(size_t size, const void *caller, const char *stack,
                                     unsigned which)
{
    request_t request = {
        .size = size, .alignment = BLOCK_ALIGNMENT, .caller = caller, .stack = stack};
    void *block = UNLIKELY(which != 0) ? take_detour(&request, which) : NULL;
    return block != NULL ? malloc_finish(block, size) : malloc_serve(&request);
}

/* The bin of the thread was empty, or the size is large. */
static NOINLINE void *malloc_missed(size_t size, const void *caller)
{
    void *block = try_caches(size);
    return LIKELY(block != NULL) ? malloc_finish(block, size)
                                 : malloc_further(size, caller, NULL, 0);
}

/* The bin of the class is empty. Class 0: it was not looked for. */
static NOINLINE void *malloc_sited_missed(size_t size, const void *caller, const char *stack,
                                          unsigned class)
{
    thread_cache_t *cache = thread_cache_own;
    return LIKELY(class != 0 && thread_cache_holds(cache, class))
               ? malloc_finish(malloc_refill(cache, class), size)
               : malloc_further(size, caller, stack, DETOUR_SITES);
}

/* A policy names sites, and nothing else holds. The class is closed, or its bin was empty. This is
 * the hit path of closed classes: a hit calls nothing, so that few registers are saved. */
static NOINLINE void *malloc_sited(size_t size, const void *caller, const char *stack)
{
    if (UNLIKELY(granule_of(size) >= GRANULE_COUNT || options.junk))
        return malloc_sited_missed(size, caller, stack, 0);
    unsigned class = site_rules_class(caller, stack, size_class_of(size));
    void *block = thread_bin_pop(thread_bin(offset_of_class(class)));
    return LIKELY(block != NULL) ? block : malloc_sited_missed(size, caller, stack, class);
}

static NOINLINE void *malloc_sort(size_t size, const void *caller, const char *stack)
{
    unsigned which = detours_now();
    if (which == DETOUR_SITES)
        return malloc_sited(size, caller, stack);
    if (which == DETOUR_SAMPLES && sampler_skips(size))
        which = 0; /* it is counted, and served as if there were no profile */
    return LIKELY(which == 0) ? malloc_missed(size, caller)
                              : malloc_further(size, caller, stack, which);
}

NOINLINE void *malloc_slow(size_t size, const void *caller)
{
    void *block = counted_hit(size);
    return LIKELY(block != NULL) ? block : malloc_sort(size, caller, STACK_OF_CALLER);
}

NOINLINE void *malloc_slow_from(size_t size, const void *caller, const char *stack)
{
    return malloc_sort(size, caller, stack);
}

/* What calloc gives: of a block that is known to be zero only what lies behind it is filled. */
static void *calloc_finish(void *block, size_t size, bool is_zero)
{
    if (block == NULL)
        return out_of_memory();
    guard_fill_slack(block, size);
    return is_zero || size == 0 ? block : memset(block, 0, size);
}

static NOINLINE void *calloc_sort(size_t count, size_t size, const void *caller, const char *stack)
{
    request_t request = {
        .alignment = BLOCK_ALIGNMENT, .is_zeroed = true, .caller = caller, .stack = stack};
    if (__builtin_mul_overflow(count, size, &request.size))
        return out_of_memory();
    unsigned which = detours_now();
    if (UNLIKELY(which == DETOUR_SAMPLES) && sampler_skips(request.size))
        which = 0; /* it is counted, and served as if there were no profile */
    void *block = NULL;
    bool is_zero = false;
    if (UNLIKELY(which == DETOUR_SITES) && granule_of(request.size) < GRANULE_COUNT)
        block = malloc_sited(request.size, caller, request.stack);
    else if (UNLIKELY(which != 0))
        block = take_detour(&request, which);
    else if (granule_of(request.size) < GRANULE_COUNT)
        block = try_caches(request.size);
    if (LIKELY(block != NULL))
        return calloc_finish(block, request.size, false);
    if (UNLIKELY(!ensure_init()))
        return out_of_memory();
    if (UNLIKELY(libc_heap_serves())) {
        route_note(ROUTE_malloc_libc);
        return libc_heap_calloc(count, size);
    }
    block = allocate_any(request, &is_zero);
    return calloc_finish(block, request.size, is_zero);
}

NOINLINE void *calloc_slow(size_t count, size_t size, const void *caller)
{
    size_t total;
    void *block = __builtin_mul_overflow(count, size, &total) ? NULL : counted_hit(total);
    return LIKELY(block != NULL) ? memset(block, 0, total)
                                 : calloc_sort(count, size, caller, STACK_OF_CALLER);
}

void *allocate_aligned(size_t alignment, size_t size)
{
    request_t request = {.size = size,
                         .alignment = larger_of(alignment, BLOCK_ALIGNMENT),
                         .is_sample = sampler_is_due(size),
                         .caller = __builtin_return_address(0)};
    return malloc_serve(&request);
}

void *allocate_private(private_heap_t *heap, size_t size, size_t alignment, bool is_zeroed)
{
    bool is_zero;
    request_t request = {.heap = heap,
                         .size = size,
                         .alignment = larger_of(alignment, BLOCK_ALIGNMENT),
                         .is_sample = sampler_is_due(size),
                         .caller = __builtin_return_address(0)};
    void *block = allocate_any(request, &is_zero);
    upkeep_call();
    if (block != NULL)
        route_note(ROUTE_malloc_uncached);
    return is_zeroed ? calloc_finish(block, size, is_zero) : malloc_finish(block, size);
}

void *allocate_followed(private_heap_t *heap, unsigned group, size_t size)
{
    bool is_zero;
    request_t request = {.heap = heap,
                         .group = group,
                         .size = size,
                         .alignment = BLOCK_ALIGNMENT,
                         .is_sample = true,
                         .is_followed = !sampler_is_due(size),
                         .caller = __builtin_return_address(0)};
    void *block = allocate_any(request, &is_zero);
    upkeep_call();
    return malloc_finish(block, size);
}

void *allocate_in_group(unsigned group, size_t size, size_t alignment)
{
    group = group <= SITE_GROUPS ? group : 0;
    if (LIKELY(granule_of(size) < GRANULE_COUNT && alignment <= BLOCK_ALIGNMENT &&
               (detours_now() & ~(unsigned)DETOUR_SITES) == 0 && !options.junk)) {
        void *block = bin_pop(&thread_bins[group_class_seen(group, size_class_fixed_of(size))]);
        if (LIKELY(block != NULL))
            return block;
    }
    request_t request = {.group = group,
                         .size = size,
                         .alignment = larger_of(alignment, BLOCK_ALIGNMENT),
                         .is_sample = sampler_is_due(size),
                         .caller = __builtin_return_address(0)};
    return malloc_serve(&request);
}
