/* Upkeep: what has to happen now and then rather than at a call, and giving memory back. Upkeep
 * runs within misses, whether the program allocates or only frees.
 *
 * A program may make no further call at any time. Memory that is free beyond what may stay (keep.h)
 * goes back in the calls that free it: a call gives back at most twice what it frees, or
 * GIVE_BACK_LEAST if that is more. One call in each PURGE_PERIOD_MS, and that in which a phase of
 * the program ends, give back as much as they find. What goes beyond the memory that the call
 * itself frees takes GIVE_BACK_MOST_US at most. Exceptions are what the law of the peak (keep.h) or
 * a limit of memory asks for. Free memory that may stay goes when it has been idle for the purge
 * delay, within later calls. With the option background a thread of ours does all this too
 * (os/background.h). */
#ifndef HAKMEM_UPKEEP_UPKEEP_H
#define HAKMEM_UPKEEP_UPKEEP_H

#include "base/types.h"
#include "cache/thread_cache.h"
#include "os/os.h"

/* Called with the time about once in each PURGE_PERIOD_MS, by the thread that has done the upkeep,
 * without any lock. NULL: nobody wants to know. Set once, at initialisation. */
extern HIDDEN void (*upkeep_watcher)(uint64_t now_ms);

/* The work of upkeep_miss when it is time. */
void upkeep_look(thread_cache_t *cache);

/* Called by every miss of a thread with a cache. The cache's thread looks at the clock when the
 * slabs had to fill a bin or take blocks that no depot had room for; else, while misses are
 * frequent, at one miss in 8: blocks that move between bins and depots make no work. */
static inline void upkeep_miss(thread_cache_t *cache)
{
    if (UNLIKELY(--cache->upkeep_in == 0))
        upkeep_look(cache);
}

/* Called where a large or huge block is freed or takes fresh memory, and by every call of a thread
 * that has no cache. Returns whether there is more to give back. */
bool upkeep(uint64_t now_ms);

/* As upkeep_miss, for calls that pass the thread's cache by, whether the thread has one or not. */
static inline void upkeep_call(void)
{
    thread_cache_t *cache = thread_cache_provide();
    if (LIKELY(!thread_cache_is_empty_cache(cache)))
        upkeep_miss(cache);
    else
        upkeep(os_clock_ms());
}

/* Of the calling thread, while calls that would have hit are watched (page_map_watch). */
typedef struct upkeep_watched {
    uint64_t looked_ms; /* when it last looked at the clock */
    uint32_t look_in;   /* such calls until it looks again */
} upkeep_watched_t;

extern HIDDEN _Thread_local upkeep_watched_t upkeep_watched;

/* Looks at the clock, and does upkeep if it is time. */
void upkeep_watched_look(void);

/* Called by each free that would have hit. */
static inline void upkeep_watched_call(void)
{
    if (UNLIKELY(--upkeep_watched.look_in == 0))
        upkeep_watched_look();
}

/* The cache of a thread that ends has gone: what is free now may be much, and the program's last
 * threads may make no further call. */
void upkeep_at_thread_exit(void);

void upkeep_at_fork(fork_phase_t phase);

#endif
