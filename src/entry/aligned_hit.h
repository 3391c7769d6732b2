/* The hit path of the aligned entry points: what malloc.c does, after rounding the size up to the
 * alignment. Included by entry/ only. */
#ifndef HAKMEM_ENTRY_ALIGNED_HIT_H
#define HAKMEM_ENTRY_ALIGNED_HIT_H

#include "base/bits.h"
#include "cache/bin.h"
#include "base/route.h"
#include "slab/size_class.h"

/* A block from the thread's bin, or NULL: ask allocate_aligned. The class of a multiple of the
 * alignment has blocks at multiples of it (size_class_aligned). A size of 0, or one that overflows
 * when rounded up, has no granule. `open_granules`: those of malloc, or those of derived forms. */
static inline void *aligned_hit(size_t alignment, size_t size, size_t open_granules)
{
    size_t granule = granule_of(align_up(size, alignment));
    if (UNLIKELY(granule >= open_granules || alignment > SLAB_ALIGNMENT))
        return NULL;
    void *block = thread_bin_pop(thread_bin(size_class_offset(granule)));
    if (LIKELY(block != NULL))
        route_note(ROUTE_malloc_bin);
    return block;
}

#endif
