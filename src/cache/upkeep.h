/* Upkeep: what has to happen now and then rather than at a call. It runs within misses, whether the
 * program allocates or only frees. While much is free, a helper thread (os/helper.h) does it too,
 * for programs that make no further call. */
#ifndef HAKMEM_CACHE_UPKEEP_H
#define HAKMEM_CACHE_UPKEEP_H

#include "base/types.h"
#include "cache/thread_cache.h"
#include "os/os.h"

/* Called with the time about once in each PURGE_PERIOD_MS, by the thread that has done the upkeep,
 * which may be the helper, without any lock. True: the helper is to call again after that period,
 * whether or not the program makes a further call. NULL: nobody wants to know. Set once, at
 * initialisation. */
extern HIDDEN bool (*upkeep_watcher)(uint64_t now_ms);

/* What upkeep knows when it looks, for who learns from it. Counts are since the start. */
typedef struct upkeep_view {
    uint64_t now_ms;
    size_t free_bytes;    /* that hold memory, wherever they are; nearly */
    size_t used_bytes;    /* in slabs and large blocks, what is free there left out; nearly */
    uint64_t misses;      /* of threads with a cache */
    uint64_t slab_misses; /* those that slabs served */
    uint64_t refusals;    /* of the kernel */
} upkeep_view_t;

/* Called by the thread that does the upkeep, under its lock. NULL: nobody learns, and misses are
 * not counted. Set once, at initialisation. */
extern HIDDEN void (*upkeep_observer)(const upkeep_view_t *view);

/* Calls `visit` under the lock of upkeep. False: somebody is at work. */
bool upkeep_visit(void (*visit)(void *context), void *context);

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

/* Called where a large or huge block is freed or takes fresh memory, and by every call of a thread
 * that has no cache. */
void upkeep(uint64_t now_ms);

/* The same for calls that pass the thread's cache by, whether it has one or not. */
static inline void upkeep_call(void)
{
    thread_cache_t *cache = thread_cache_provide();
    if (LIKELY(!thread_cache_is_empty_cache(cache)))
        upkeep_miss(cache);
    else
        upkeep(os_clock_ms());
}

/* Everything that is idle goes down and back to the kernel now. Returns bytes. */
size_t upkeep_purge_all(void);

/* The kernel has refused `size` bytes. Everything idle becomes free pages, which may serve the
 * request; nothing is unmapped. False: even with all that is idle it cannot be had, and nothing has
 * changed. */
bool upkeep_gather(size_t size);

/* That did not help. Free chunks and cached huge blocks are unmapped, addresses included, so that
 * limits allow something else in their place. False: no use in trying again, nothing has changed.
 */
bool upkeep_unmap(size_t size);

/* Both, where free pages are of no use. */
bool upkeep_reclaim(size_t size);

void upkeep_at_fork(fork_phase_t phase);

#endif
