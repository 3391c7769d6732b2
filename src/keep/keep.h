/* How much free memory may be kept, and for how long. Every part that keeps some asks here:
 *
 *   page heap         free pages          purge.c
 *   the span cache    large blocks        span_cache.c
 *   huge blocks       their mappings      huge.c
 *   central lists     pages of slabs      central_list_pages.c
 *   upkeep            all of it together  upkeep/upkeep.c
 *
 * The answer depends on what is in use, on the price of memory (the purge delay), on what this
 * program wanted again after it had gone back (refaults.h), and on limits (pressure.h). Any thread
 * may ask. */
#ifndef HAKMEM_KEEP_KEEP_H
#define HAKMEM_KEEP_KEEP_H

#include "base/types.h"
#include "os/lock.h"
#include "options/options.h"
#include "options/tuning.h"
#include "keep/budget.h"
#include "keep/pressure.h"

/* Units that the calling thread has freed since it last gave memory back. */
extern HIDDEN _Thread_local size_t keep_freed_units;

static inline void keep_note_freed(size_t unit_count)
{
    keep_freed_units += unit_count;
}

/* Most units that a keeper of free memory may hold: as many as the program uses, and KEEP_ALWAYS
 * beside. Where limits leave little room it is less. */
static inline size_t keep_most_units(size_t used_units)
{
    return pressure_cap(used_units + (KEEP_ALWAYS >> UNIT_SHIFT));
}

/* Most units that all of them may hold when nobody makes a further call. */
size_t keep_allowed_units(size_t used_units);

/* How long free memory that may stay is to wait before it goes all the same, in milliseconds: the
 * purge delay, less where a limit is near. */
uint64_t keep_wait_ms(void);

/* Does free memory stay until somebody asks for it to go? */
static inline bool keep_forever(void)
{
    return UNLIKELY(options.free_policy == FREE_KEEP) && !pressure_is_near();
}

/* So many units went back that had been idle since `since_ms`. Any thread. */
void keep_note_gone(size_t unit_count, uint64_t since_ms, uint64_t now_ms);

/* So many bytes of slabs that had gone back are in use again. Any thread. */
void keep_note_slab_pages(size_t size);

/* Learns from what the program has taken afresh since the last call, and that it uses
 * `used_units` now. Cheap where nothing has gone back lately. Any thread. */
void keep_learn(size_t used_units, uint64_t now_ms);

void keep_at_fork(fork_phase_t phase);

#endif
