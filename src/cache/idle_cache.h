/* Takes the blocks out of the cache of a thread that does nothing, without its help. */
#ifndef HAKMEM_CACHE_IDLE_CACHE_H
#define HAKMEM_CACHE_IDLE_CACHE_H

#include "base/types.h"
#include "cache/thread_cache.h"

/* Has the thread not used the cache since the last look, and is in there what is worth it?
 * `bins` are those of the thread. */
bool idle_cache_is_worth_it(thread_cache_t *cache, const bin_t *bins);

/* Gives what is in the bins and spares to the slabs, but for a block of each bin; nothing, if the
 * thread is at work beyond a hit or the kernel does not help. The thread may hit meanwhile; it must
 * not end. */
void idle_cache_reclaim(thread_cache_t *cache, const bin_t *bins);

#endif
