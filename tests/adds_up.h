/* The law of hakmem_get_statistics, which holds to the byte while no other thread is at work. */
#ifndef HAKMEM_TESTS_ADDS_UP_H
#define HAKMEM_TESTS_ADDS_UP_H

#include "check.h"
#include "hakmem.h"

static inline void check_adds_up(const hakmem_statistics_t *is)
{
    check_eq(is->mapped, is->used + is->slab_ends + is->cached + is->free_in_slabs +
                             is->free_pages + is->clean_pages + is->huge_cached);
    check_eq(is->resident,
             is->mapped + is->metadata - is->clean_pages - is->purged_in_slabs);
    check_eq(is->cached, is->cached_threads + is->cached_depots);
    check(is->cached_large <= is->free_pages && is->huge_used <= is->used);
    check(is->purged_in_slabs <= is->free_in_slabs + is->slab_ends);
    check(is->metadata > 0 && is->metadata <= is->metadata_mapped);
    for (size_t i = 0; i < sizeof is->reserved / sizeof is->reserved[0]; i++)
        check_eq(is->reserved[i], 0);
}

#endif
