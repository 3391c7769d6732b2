/* How much free memory may be kept, and for how long. The parts that keep free memory ask here:
 *
 *   the page heap     free pages          upkeep/purge.c
 *   the span cache    large blocks        heap/span_cache.c
 *   central lists     pages of slabs      slab/central_list_pages.c
 *   upkeep            all of it together  upkeep/upkeep.c
 *
 * Huge blocks have a cap of their own (option bigcache_max_mb): large/huge.c asks pressure.h, and
 * only notes here what has gone back.
 *
 * The answer depends on what is in use, on the price of memory (the purge delay), on what this
 * program wanted again after it had gone back (refaults.h, rounds.h), and on limits (pressure.h).
 * Any thread may ask. */
#ifndef HAKMEM_KEEP_KEEP_H
#define HAKMEM_KEEP_KEEP_H

#include "base/types.h"
#include "os/lock.h"
#include "options/options.h"
#include "options/tuning.h"
#include "keep/pressure.h"

/* Units that the calling thread has freed since it last gave memory back. */
extern HIDDEN _Thread_local size_t keep_freed_units;

static inline void keep_note_freed(size_t unit_count)
{
    keep_freed_units += unit_count;
}

/* Most units that one part that keeps free memory may hold: as many as the program uses, and
 * KEEP_ALWAYS in addition. Less where limits leave little room. */
static inline size_t keep_most_units(size_t used_units)
{
    return pressure_cap(used_units + (KEEP_ALWAYS >> UNIT_SHIFT));
}

/* Most units that all of these parts together may hold while the program makes no further call. */
size_t keep_allowed_units(size_t used_units);

/* The law of the peak: free units and those in use together are little more than the most that ever
 * was in use. Returns the most units that may be free while `used_units` are in use. */
size_t keep_units_below_peak(size_t used_units);

/* Are `free_units` in the page heap and the span cache, with what was in use a moment ago, so much
 * more than the most that ever was in use that they had better serve other lengths? */
bool keep_is_beyond_peak(size_t free_units);

/* Of those allowed, the units that stay whatever the program was seen to need again: a share of
 * what is in use, and KEEP_LEAST; or as much as is in use, KEEP_SMALL, and a share of the most that
 * ever was in use, if that is less. */
size_t keep_rest_units(size_t used_units);

/* And the units that are kept because the program took as many again after they had gone, and
 * the page faults of that would cost more than their memory (rounds.h). */
size_t keep_wanted_units(void);

/* Milliseconds that idle free memory waits before it goes back, although there is room for it: the
 * purge delay, or less where a limit is near. */
uint64_t keep_wait_ms(void);

/* Does free memory stay until somebody asks for it to go? */
static inline bool keep_forever(void)
{
    return UNLIKELY(options.free_policy == FREE_KEEP) && !pressure_is_near();
}

/* Notes that `unit_count` units, idle since `since_ms`, went back to the kernel. Any thread. */
void keep_note_gone(size_t unit_count, uint64_t since_ms, uint64_t now_ms);

/* Notes that `size` bytes of slabs, which had gone back to the kernel, are in use again. Any
 * thread. */
void keep_note_slab_pages(size_t size);

/* Learns from what the program has taken afresh since the last call, and that it uses
 * `used_units` now. Cheap where nothing has gone back lately. Any thread. Returns whether what was
 * kept for this use is no longer worth it, so that all that is more than may stay should go. */
bool keep_learn(size_t used_units, uint64_t now_ms);

void keep_at_fork(fork_phase_t phase);

#endif
