/* How often a stress test does what it does: a bounded number of times among all other tests, a
   tenth of these with SOAK=few, and the full number when SOAK is anything else (make soak). */
#ifndef HAKMEM_TESTS_SOAK_H
#define HAKMEM_TESTS_SOAK_H

#include <stdlib.h>
#include <string.h>

/* Loops are shorter by this factor under ThreadSanitizer, whose threads are ten times as slow. */
#ifdef __SANITIZE_THREAD__
enum { STRESS_SCALE = 10 };
#else
enum { STRESS_SCALE = 1 };
#endif

static inline size_t soak_count(size_t bounded, size_t full)
{
    const char *const soak = getenv("SOAK");
    if (soak == NULL) return bounded / STRESS_SCALE;
    return strcmp(soak, "few") == 0 ? (bounded + 9) / 10 : full;
}

#endif
