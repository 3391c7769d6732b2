/* Takes the blocks out of the cache of a thread that does nothing, without its help. */
#ifndef HAKMEM_UPKEEP_IDLE_CACHE_H
#define HAKMEM_UPKEEP_IDLE_CACHE_H

#include "base/types.h"
#include "cache/thread_cache.h"

/* Has the thread not used the cache since the last look, and is in there what is worth it?
 * `bins` are those of the thread. */
bool idle_cache_is_worth_it(thread_cache_t *cache, const bin_t *bins);

/* Takes out what is in the bins and spares, but for three blocks of each bin; nothing, if the
 * thread is at work beyond a hit or the kernel does not help. The thread may hit meanwhile, but not
 * end. idle_cache_give has to follow, by the same thread. */
void idle_cache_reclaim(thread_cache_t *cache, const bin_t *bins);

/* Gives to the slabs what was taken out. Ends the program if a block was freed twice. */
void idle_cache_give(void);

/* Takes the blocks out of some caches, `most` of them, of other threads that have not used theirs
 * since the last round, and gives them to the slabs. A round goes through all caches, in as many
 * calls as it takes; the next one begins when `may_begin` says so. The callers come one at a time.
 */
void idle_caches_reclaim(unsigned most, bool may_begin);

#endif
