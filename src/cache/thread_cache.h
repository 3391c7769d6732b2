/* The cache of a thread: a bin for each size class, and a spare magazine behind each bin.
 *
 *   malloc ──pop──▶ bin ──empty──▶ spare ──empty──▶ depot ──empty──▶ central list (slabs)
 *   free  ──push──▶ bin ──full───▶ spare ──full───▶ depot ──full───▶ central list
 *
 * Only its thread touches a cache, so nothing here locks. The cache of a thread that ends is an
 * orphan, which the next thread to begin adopts with all that is in it; one that nobody adopts for
 * half a second gives its blocks back. In the child of a fork the caches of all threads that it
 * does not have are orphans.
 *
 * The bins of a thread stand in its static TLS (thread_bins in bin.h); it takes the bins of its
 * cache there when it gets one, and back when it ends, for the TLS is gone when the thread is. A
 * thread that has no cache (it has just begun, it is ending, or the settings forbid caches) has
 * bins that are both empty and full, so that each of its calls is a miss, and for its cache the
 * empty one, a constant. */
#ifndef HAKMEM_CACHE_THREAD_CACHE_H
#define HAKMEM_CACHE_THREAD_CACHE_H

#include "base/list.h"
#include "base/types.h"
#include "cache/bin.h"
#include "os/lock.h"
#include "os/shared_total.h"
#include "slab/size_class.h"

typedef struct thread_cache {
    bin_t *bins;                     /* thread_bins of its thread; `kept`, if it has none */
    bin_t kept[CLASS_COUNT];         /* while a thread has the cache: what the thread began with */
    magazine_t *spares[CLASS_COUNT]; /* full or empty, or NULL */
    uint8_t capacity[CLASS_COUNT];   /* of the bin, with use; 0: the class is not made yet */
    bool was_used[CLASS_COUNT];      /* missed since the last trim */
    bool is_open[CLASS_COUNT];       /* the bin has a magazine, which `held_bytes` counts */
    size_t held_bytes;               /* what open bins have room for and spares hold */
    uint64_t trimmed_ms;
    uint64_t spread_ms;        /* when bins of sparse classes were last emptied */
    uint64_t looked_ms;        /* when upkeep last read the clock */
    uint32_t upkeep_in;        /* after so many misses it does so again */
    size_t published_bytes;    /* its part of thread_caches.total */
    bool has_exit_hook;        /* the C library knows of the cache that the thread has */
    bool has_share;            /* in what all may hold; not one that waits since a fork */
    bool is_entered;           /* its thread is at work in it, beyond a hit; for fork */
    list_node_t node;          /* among all caches */
    bool is_orphan;
    struct thread_cache *next; /* among the orphans */
    uint64_t orphaned_ms;      /* ORPHANED_TO_GO: it does not wait */
} thread_cache_t;

typedef struct thread_caches {
    /* Of the list of all caches. A thread that ends holds the lock, and so does a thread that looks
     * into the cache of another one. */
    lock_t lock;
    /* Bytes that a cache may hold, magazines counted in. The more threads there are, the less: all
     * together they may hold THREAD_CACHES_MOST. A cache that holds more already keeps it while its
     * thread uses it. Written under the lock, read without; threads that begin and end write the
     * line of the lock. */
    size_t most_bytes __attribute__((aligned(CACHE_LINE)));
    /* Not 0: the program is giving up most of what it had. Caches and depots keep little then.
     * Written by any thread in upkeep, read by any. */
    size_t drain;
    /* Of what all caches hold or have room for. The part of a cache is withdrawn when the cache
     * goes. */
    shared_total_t total;
} thread_caches_t;

extern HIDDEN thread_caches_t thread_caches;

/* The cache's thread publishes its part of the total, when upkeep looks at it (upkeep.h). */
void thread_cache_publish(thread_cache_t *cache);

/* The calling thread's cache; never NULL. */
extern HIDDEN _Thread_local thread_cache_t *thread_cache_own;

static inline bool thread_cache_is_empty_cache(const thread_cache_t *cache)
{
    extern const thread_cache_t empty_thread_cache;
    return cache == &empty_thread_cache;
}

/* Slabs were at work: the next miss of the cache looks at the clock. */
static inline void thread_cache_look_soon(thread_cache_t *cache)
{
    cache->upkeep_in = 1;
}

/* Is `ptr` one of the two blocks of the class that the calling thread has freed last? */
static inline bool thread_cache_has_on_top(const void *ptr, unsigned class)
{
    return top_has(thread_bins[class].top, ptr);
}

/* `behind_exit` is called when the cache of a thread that ends has gone. */
void thread_caches_create(void (*behind_exit)(void));

/* Gives the calling thread a cache of its own if it may have one; returns what it has now. */
thread_cache_t *thread_cache_provide(void);

/* May bins of the cache hold blocks of the class? In the empty cache none may. */
static inline bool thread_cache_holds(const thread_cache_t *cache, unsigned class)
{
    return cache->capacity[class] != 0;
}

/* The same, once the cache has heard of classes that were made since. */
bool thread_cache_comes_to_hold(thread_cache_t *cache, unsigned class);

/* Makes a new cache of zeroed memory: bins without magazines, and their first capacities. */
void thread_cache_prepare(thread_cache_t *cache);

/* The bin of the class is empty: fills it from below and pops a block. NULL: no memory. */
void *thread_cache_refill(thread_cache_t *cache, unsigned class);

/* The bin of the class is full, or there is none yet: makes room and puts the block in, on top or,
 * if it is small and the bin begins with it, below blocks taken from the slabs. */
void thread_cache_flush(thread_cache_t *cache, unsigned class, void *block);

/* Gives back what the bins hold that missed nothing since the last trim: half of it, or all. */
void thread_cache_trim(thread_cache_t *cache, bool all);

/* Gives back all that bins hold of classes most of whose memory is free. A bin hands the same few
 * blocks out again and again, wherever they lie; the slabs hand out those of the fullest slabs, so
 * that the others become empty (docs/design.md). */
void thread_cache_trim_sparse(thread_cache_t *cache);

/* Bins of classes that were made since the cache heard of classes last may hold blocks. */
void thread_cache_heed_classes(thread_cache_t *cache);

/* Shows the orphans that may wait to `visit`, unless another thread is changing their list just
 * now. */
void thread_caches_visit_orphans(void (*visit)(const thread_cache_t *cache, void *context),
                                 void *context);

/* Ends the program with a line if a bin or spare of the calling thread, or of an orphan, holds what
 * was never a block of its class, or the same block twice. Changes nothing; for the end of the
 * process. */
void thread_cache_verify(void);

/* Takes apart the orphans that have been waiting since before `limit_ms`. With any but 0 those go
 * too that a fork has made beyond what may wait. */
#define ORPHANED_TO_GO 0
void thread_caches_trim_orphans(uint64_t limit_ms);

/* Blocks of each class in all thread caches; a guess while other threads run. */
void thread_caches_count_blocks(uint32_t counts[CLASS_COUNT]);

typedef struct thread_cache_counts {
    size_t shared;        /* of threads, and of ended ones that wait for the next */
    size_t orphans;       /* those that wait; others that a fork has made among them */
    size_t left_by_forks; /* out of use for good: gone threads were at work in them */
} thread_cache_counts_t;

thread_cache_counts_t thread_caches_count(void);

void thread_caches_at_fork(fork_phase_t phase);

#endif
