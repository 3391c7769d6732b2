/* How often a stress test does what it does: a bounded number of times among all other tests, the
   full number when SOAK is set (make soak). */
#ifndef HAKMEM_TESTS_SOAK_H
#define HAKMEM_TESTS_SOAK_H

#include <stdlib.h>

static inline size_t soak_count(size_t bounded, size_t full)
{
    return getenv("SOAK") != NULL ? full : bounded;
}

#endif
