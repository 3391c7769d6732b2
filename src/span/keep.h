/* How much free memory may be kept, and for how long. Every part that keeps some asks here:
 *
 *   page heaps        free pages          purge.c
 *   the span cache    large blocks        span_cache.c
 *   huge blocks       their mappings      huge.c
 *   upkeep            for thread caches, depots and slabs: what they gave up need not wait again
 *
 * The answer depends on three things: on what is in use, on the price of memory (break_even.h), and
 * on limits (pressure.h). Any thread may ask. */
#ifndef HAKMEM_SPAN_KEEP_H
#define HAKMEM_SPAN_KEEP_H

#include "base/types.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "span/page_heap.h"
#include "span/pressure.h"

typedef enum keeper { KEEP_PAGES, KEEP_PAGES_OF_LARGE, KEEP_SPANS, KEEP_HUGE } keeper_t;

/* Most units that a part may keep free where the program uses so many of the kind: as many again,
 * and some. Where limits leave little room it is less. */
static inline size_t keep_most_units(keeper_t keeper, size_t used_units)
{
    size_t always = keeper == KEEP_PAGES            ? PURGE_ALWAYS_ALLOWED
                    : keeper == KEEP_PAGES_OF_LARGE ? PURGE_ALWAYS_ALLOWED_LARGE
                    : keeper == KEEP_SPANS          ? SPAN_CACHE_ALWAYS
                                                    : (size_t)options.bigcache_max_mb * MIB;
    return pressure_cap(used_units + (always >> UNIT_SHIFT));
}

/* How long free memory of the kind is to wait, in milliseconds: the purge delay, less where a limit
 * is near, or where it has not been needed again within the delay. */
uint64_t keep_wait_ms(page_heap_kind_t kind);

/* The same for huge blocks, of whose use no curve is kept. */
static inline uint64_t keep_huge_ms(void)
{
    return pressure_wait_ms((uint64_t)options.purge_delay_ms);
}

/* Does free memory stay until somebody asks for it to go? */
static inline bool keep_forever(void)
{
    return UNLIKELY(options.free_policy == FREE_KEEP) && !pressure_is_near();
}

/* Learns from the most units of the kind that were in use since the last call. The callers come one
 * at a time. */
void keep_learn(page_heap_kind_t kind, size_t used_units, uint64_t now_ms);

#endif
