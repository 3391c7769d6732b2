/* Routes: which part of the house served a call. Counted in diagnostic builds only; in the others
 * route_note is nothing at all. Tests assert with these that no call takes a detour. */
#ifndef HAKMEM_PROBE_ROUTE_H
#define HAKMEM_PROBE_ROUTE_H

#include "base/config.h"
#include "base/types.h"

typedef enum route {
#define ROUTE(name) ROUTE_##name,
#include "probe/route_table.h"
#undef ROUTE
    ROUTE_COUNT
} route_t;

extern HIDDEN uint64_t route_counts[ROUTE_COUNT];
extern HIDDEN const char *const route_names[ROUTE_COUNT];

static inline void route_note(route_t route)
{
    /* relaxed: a count, read by tests and reports */
    if (config_checked)
        __atomic_fetch_add(&route_counts[route], 1, __ATOMIC_RELAXED);
}

#endif
