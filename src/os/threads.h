/* Is this process single-threaded at the moment? glibc (2.32 and later) knows and publishes it, so
 * that a program without threads executes no atomic read-modify-write operation anywhere in here.
 * The answer changes from true to false inside pthread_create, which code of ours calls only where
 * it holds no lock (os/background.h): whatever was begun without atomics has ended before a second
 * thread exists. */
#ifndef HAKMEM_OS_THREADS_H
#define HAKMEM_OS_THREADS_H

#include "base/types.h"

/* Weak: an older C library does not have this variable, and we assume threads there. */
extern char __libc_single_threaded __attribute__((weak));

static inline bool process_is_single_threaded(void)
{
    return &__libc_single_threaded != NULL && __libc_single_threaded;
}

/* Adds to a counter that several threads write and reporters read; orders nothing. */
static inline void counter_add(uint64_t *counter, uint64_t amount)
{
    if (process_is_single_threaded())
        *counter += amount;
    else
        __atomic_fetch_add(counter, amount, __ATOMIC_RELAXED);
}

static inline uint64_t counter_read(const uint64_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

#endif
