/* How often a stress test does what it does: a bounded number of times among all other tests, the
   full number when SOAK is set (make soak). */
#ifndef HAKMEM_TESTS_SOAK_H
#define HAKMEM_TESTS_SOAK_H

#include <stdlib.h>

/* Loops are shorter by this factor under ThreadSanitizer, whose threads are ten times as slow. */
#ifdef __SANITIZE_THREAD__
enum { STRESS_SCALE = 10 };
#else
enum { STRESS_SCALE = 1 };
#endif

static inline size_t soak_count(size_t bounded, size_t full)
{
    return getenv("SOAK") != NULL ? full : bounded / STRESS_SCALE;
}

#endif
