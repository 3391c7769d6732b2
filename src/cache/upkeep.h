/* Upkeep: what has to happen now and then rather than at a call. There is no thread of our own: it
 * rides on misses, whether the program allocates or only frees. */
#ifndef HAKMEM_CACHE_UPKEEP_H
#define HAKMEM_CACHE_UPKEEP_H

#include "base/types.h"
#include "cache/thread_cache.h"

/* What upkeep_miss does when it is time. */
void upkeep_look(thread_cache_t *cache);

/* Called by every miss of a thread with a cache. It looks at the clock when the slabs had to fill
 * a bin or take what no depot had room for; else, while misses are frequent, at one in 8: what
 * moves between bins and depots makes no work. */
static inline void upkeep_miss(thread_cache_t *cache)
{
    if (UNLIKELY(--cache->upkeep_in == 0))
        upkeep_look(cache);
}

/* Called by every operation on a large block. */
void upkeep(uint64_t now_ms);

/* Everything that is idle goes down and back to the kernel now. Returns bytes. */
size_t upkeep_purge_all(void);

/* The kernel has refused `size` bytes: gives back everything idle, addresses included. False: no
 * use in trying again. */
bool upkeep_reclaim(size_t size);

void upkeep_at_fork(fork_phase_t phase);

#endif
