/* Routes: which part of the allocator served it. Counted in diagnostic builds only; in the others
 * route_note is nothing at all. Tests assert with these that no call takes a detour. */
#ifndef HAKMEM_BASE_ROUTE_H
#define HAKMEM_BASE_ROUTE_H

#include "base/config.h"
#include "base/types.h"

/* The routes, the cheapest first. */
#define ROUTES(ROUTE)                                                                              \
    ROUTE(malloc_bin)                                                                              \
    ROUTE(malloc_spare)                                                                            \
    ROUTE(malloc_depot)                                                                            \
    ROUTE(malloc_slabs)                                                                            \
    ROUTE(malloc_uncached)                                                                         \
    ROUTE(malloc_large)                                                                            \
    ROUTE(malloc_huge)                                                                             \
    ROUTE(malloc_libc)                                                                             \
    ROUTE(free_bin)                                                                                \
    ROUTE(free_bin_grown)                                                                          \
    ROUTE(free_spare)                                                                              \
    ROUTE(free_depot)                                                                              \
    ROUTE(free_uncached)                                                                           \
    ROUTE(free_large)                                                                              \
    ROUTE(free_huge)                                                                               \
    ROUTE(free_libc)

#define ROUTE_NAMED(name) ROUTE_##name,
typedef enum route { ROUTES(ROUTE_NAMED) ROUTE_COUNT } route_t;
#undef ROUTE_NAMED

extern HIDDEN uint64_t route_counts[ROUTE_COUNT];
extern HIDDEN const char *const route_names[ROUTE_COUNT];

static inline void route_note(route_t route)
{
    /* relaxed: a count, read by tests and reports */
    if (config_checked)
        __atomic_fetch_add(&route_counts[route], 1, __ATOMIC_RELAXED);
}

#endif
