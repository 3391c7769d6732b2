/* Counts that are written under a lock and read without it: relaxed stores and loads, no atomic
 * read-modify-write, no order. A reader without the lock gets a guess. */
#ifndef HAKMEM_BASE_COUNT_H
#define HAKMEM_BASE_COUNT_H

#include "base/types.h"

/* The caller holds the lock. */
static inline void count_add(size_t *count, size_t amount)
{
    __atomic_store_n(count, *count + amount, __ATOMIC_RELAXED);
}

/* The caller holds the lock. */
static inline void count_subtract(size_t *count, size_t amount)
{
    __atomic_store_n(count, *count - amount, __ATOMIC_RELAXED);
}

static inline size_t count_read(const size_t *count)
{
    return __atomic_load_n(count, __ATOMIC_RELAXED);
}

#endif
