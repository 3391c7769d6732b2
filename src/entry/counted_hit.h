/* The hit path of malloc while a profile samples and no other detour holds (slab/detour.h): the
 * request is counted, and served from the bin. The first pair of hit paths, in malloc.c, misses at
 * every call then, and slow halves come here first. free needs no such path. */
#ifndef HAKMEM_ENTRY_COUNTED_HIT_H
#define HAKMEM_ENTRY_COUNTED_HIT_H

#include "base/route.h"
#include "cache/bin.h"
#include "observe/sampler.h"
#include "slab/size_class.h"

/* A block from the thread's own bin; NULL: a miss, or a sample, or this path is closed, and nothing
 * was counted. */
static inline void *counted_hit(size_t size)
{
    int64_t left = (int64_t)((uint64_t)sampler_own.left - size);
    if (UNLIKELY(left < __atomic_load_n(&sampler_hit_end, __ATOMIC_RELAXED)))
        return NULL;
    size_t granule = granule_of(size);
    FORGET(granule); /* as in malloc.c */
    if (UNLIKELY(granule >= GRANULE_COUNT))
        return NULL;
    void *block = thread_bin_pop(thread_bin(size_class_offset(granule)));
    if (LIKELY(block != NULL)) {
        sampler_own.left = left;
        route_note(ROUTE_malloc_bin);
    }
    return block;
}

#endif
