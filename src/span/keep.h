/* How much free memory may be kept, and for how long. Every part that keeps some asks here:
 *
 *   page heaps        free pages          purge.c
 *   the span cache    large blocks        span_cache.c
 *   huge blocks       their mappings      huge.c
 *   central lists     pages of slabs      central_list_pages.c
 *   upkeep            thread caches and depots: what they gave up need not wait again
 *
 * The answer depends on three things: on what is in use, on the price of memory (break_even.h), and
 * on limits (pressure.h). Any thread may ask. */
#ifndef HAKMEM_SPAN_KEEP_H
#define HAKMEM_SPAN_KEEP_H

#include "base/types.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "span/budget.h"
#include "span/page_heap.h"
#include "span/pressure.h"

/* Most units that a keeper of free memory may hold: as many as the program uses, and KEEP_ALWAYS
 * beside. Where limits leave little room it is less. */
static inline size_t keep_most_units(size_t used_units)
{
    return pressure_cap(used_units + (KEEP_ALWAYS >> UNIT_SHIFT));
}

/* How long free memory is to wait, in milliseconds: the purge delay, less where a limit is near, or
 * where it has not been needed again within the delay. */
uint64_t keep_wait_ms(void);

/* The same for what has an age of its own. A wait of n slots of the budget is one of n to n + 1, so
 * that is what they get at least: else what is learnt would be true of others alone. */
static inline uint64_t keep_age_ms(void)
{
    uint64_t wait_ms = keep_wait_ms();
    uint64_t slot_ms = budget_slot_ms((uint64_t)options.purge_delay_ms);
    bool is_whole = wait_ms >= (uint64_t)options.purge_delay_ms;
    return is_whole ? wait_ms : wait_ms + smaller_of(slot_ms, wait_ms);
}

/* Does free memory stay until somebody asks for it to go? */
static inline bool keep_forever(void)
{
    return UNLIKELY(options.free_policy == FREE_KEEP) && !pressure_is_near();
}

/* Learns from the most units that were in use since the last call. The callers come one at a time.
 */
void keep_learn(size_t used_units, uint64_t now_ms);

#endif
