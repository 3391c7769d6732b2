/* The second pair of hit paths: malloc and free where every free is checked (check_frees).
 *
 * The first pair, in malloc.c, then misses at every call: no granule is open, neither of sizes nor
 * of addresses. malloc_slow and free_slow come here first. The thread's cache and its bins are the
 * same as ever. Each block in use has a record (slab/block_record.h), so that a free learns
 * from one load whether a block in use begins at the pointer, and of which class. */
#ifndef HAKMEM_CHECK_CHECKED_H
#define HAKMEM_CHECK_CHECKED_H

#include "cache/bin.h"
#include "base/route.h"
#include "slab/block_record.h"
#include "slab/size_class.h"
#include "heap/page_map.h"

/* A block from the thread's own bin, its record written; NULL: a miss. */
static inline void *checked_malloc_hit(size_t size)
{
    if (UNLIKELY(granule_of(size) >= GRANULE_COUNT))
        return NULL;
    unsigned class = size_class_of(size);
    void *block = bin_pop(&thread_bins[class]);
    if (LIKELY(block != NULL)) {
        record_set(block_record(block), class, size);
        route_note(ROUTE_malloc_bin);
    }
    return block;
}

/* Takes back a small block in use; false: a miss, nothing has changed. Class 0, of an address where
 * no block in use begins, has a bin that is always full. */
static inline bool checked_free_hit(void *ptr)
{
    size_t granule = granule_at(ptr);
    /* acquire: pairs with the release in page_map_grow; the records may be read */
    size_t unit_count = __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE);
    if (UNLIKELY(granule >= unit_count * UNIT_GRANULES))
        return false;
    uint8_t *record = &window_tables.records[granule];
    if (UNLIKELY(!bin_push(&thread_bins[record_class(record)], ptr)))
        return false;
    record_clear(record);
    route_note(ROUTE_free_bin);
    return true;
}

#endif
