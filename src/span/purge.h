/* Giving free pages back to the kernel: when, and in what order. The only caller of os_purge. */
#ifndef HAKMEM_SPAN_PURGE_H
#define HAKMEM_SPAN_PURGE_H

#include "base/bits.h"
#include "base/count.h"
#include "base/types.h"
#include "span/page_heap.h"
#include "span/span_cache.h"

/* Gives back the free spans that have been free for the delay that the options name. Returns bytes.
 */
size_t purge_aged(uint64_t now_ms);

/* Free pages that may wait for their age: as much as the program uses, and 64 MiB. A program that
 * frees nearly everything and then does no more than hit its bins is never seen again. Of large
 * blocks it is 96 MiB, what the span cache keeps counted in: that alone may take 64. */
#define PURGE_ALWAYS_ALLOWED (64 * MIB >> UNIT_SHIFT)
#define PURGE_ALWAYS_ALLOWED_LARGE (96 * MIB >> UNIT_SHIFT)

/* By how much more free pages hold memory than may wait. */
static inline size_t purge_excess_units(page_heap_kind_t kind)
{
    const page_heap_t *heap = &page_heaps[kind];
    bool is_large = kind == HEAP_OF_LARGE;
    size_t cached = is_large ? counter_read(&span_cache_told_units) : 0;
    size_t always = is_large ? PURGE_ALWAYS_ALLOWED_LARGE : PURGE_ALWAYS_ALLOWED;
    size_t dirty = count_read(&heap->free.dirty_units);
    /* For the page heap what is cached is in use. */
    size_t allowed = count_read(&heap->used_units) + always;
    size_t waiting = dirty + 2 * cached;
    return UNLIKELY(waiting > allowed) ? smaller_of(waiting - allowed, dirty) : 0;
}

static inline bool purge_is_due(void)
{
    return (purge_excess_units(HEAP_OF_SMALL) | purge_excess_units(HEAP_OF_LARGE)) != 0;
}

/* Gives back the oldest of them until that is no longer so. Returns bytes. */
size_t purge_excess(uint64_t now_ms);

/* Gives back every free span now. Returns bytes. */
size_t purge_everything(uint64_t now_ms);

#endif
