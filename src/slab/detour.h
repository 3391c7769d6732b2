/* Why every malloc of some sizes, or of all, takes the slow path although it could hit: the second
 * door to it, beside the bin that is empty. */
#ifndef HAKMEM_SLAB_DETOUR_H
#define HAKMEM_SLAB_DETOUR_H

#include "base/types.h"

typedef enum detour {
    DETOUR_RECORDS = 1, /* frees are checked: blocks in use have records (check_frees) */
    DETOUR_SAMPLES = 2, /* a profile counts bytes (observe/sampler.h) */
    DETOUR_SITES = 4,   /* a policy names call sites (site/site_rules.h) */
} detour_t;

/* All that hold, or 0. Relaxed: who turns a profile on or off does not wait for calls under way. A
 * call may miss because the hit path was closed, and find no detour and a bin that has blocks. */
extern HIDDEN uint8_t detours;

/* Turns one on or off, and closes or opens the hit path of malloc accordingly. Any thread. */
void detour_set(detour_t which, bool wanted);

static inline unsigned detours_now(void)
{
    return __atomic_load_n(&detours, __ATOMIC_RELAXED);
}

#endif
