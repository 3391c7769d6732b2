/* The total of what many holders have, such as the bytes in all depots. Each holder has a lock or a
 * thread of its own, and all of them would write the one total. Therefore a holder publishes the
 * bytes that it has only when they differ from those last published by more than its share of
 * SHARED_TOTAL_STALE. A reader of the total gets a guess. */
#ifndef HAKMEM_OS_SHARED_TOTAL_H
#define HAKMEM_OS_SHARED_TOTAL_H

#include "base/types.h"
#include "os/threads.h"
#include "options/tuning.h"

typedef struct shared_total {
    uint64_t published_bytes; /* by all holders */
} __attribute__((aligned(CACHE_LINE))) shared_total_t;

/* Is what one of so many holders has published near enough to what it has? (A difference modulo
 * 2^64 is less than nothing where the holder has published more.) */
static inline bool shared_total_is_near(size_t published_bytes, size_t bytes, size_t holders)
{
    size_t share = SHARED_TOTAL_STALE / holders;
    return bytes - published_bytes + share <= 2 * share;
}

/* One of so many holders has `bytes` now. Only that holder writes *published_bytes; others may read
 * it. */
static inline void shared_total_publish(shared_total_t *total, size_t *published_bytes,
                                        size_t bytes, size_t holders)
{
    if (LIKELY(shared_total_is_near(*published_bytes, bytes, holders)))
        return;
    counter_add(&total->published_bytes, bytes - *published_bytes);
    /* relaxed: a guess, as all of this */
    __atomic_store_n(published_bytes, bytes, __ATOMIC_RELAXED);
}

/* A holder has nothing any more, or ends: its bytes leave the total. */
static inline void shared_total_withdraw(shared_total_t *total, size_t *published_bytes)
{
    if (*published_bytes != 0)
        counter_add(&total->published_bytes, 0 - (uint64_t)*published_bytes);
    *published_bytes = 0;
}

static inline size_t shared_total_read(const shared_total_t *total)
{
    return (size_t)counter_read(&total->published_bytes);
}

#endif
