/* Giving the free pages of the page heap back to the kernel: when, and in what order. (Huge blocks
 * look after their own: huge.c.)
 *
 * Where the kernel refuses (the program has locked its memory, say), the heap's pages are left
 * alone for a while, each time for longer, until a purge succeeds. Who asks for everything to be
 * given back is not kept waiting. */
#ifndef HAKMEM_SPAN_PURGE_H
#define HAKMEM_SPAN_PURGE_H

#include "base/bits.h"
#include "base/count.h"
#include "base/types.h"
#include "policy/tuning.h"
#include "span/keep.h"
#include "span/page_heap.h"
#include "span/span_cache.h"

/* Gives back what nobody has needed throughout the delay that the options name (span/budget.h), the
 * oldest pages first and no more than PURGE_MOST_AT_ONCE of each heap. Returns bytes. The callers
 * of this and of purge_note_idle come one at a time. */
size_t purge_idle(uint64_t now_ms);

/* So many units of the page heap with the number have just become free that nobody had wanted for
 * the delay. */
void purge_note_idle(unsigned number, size_t unit_count);

/* What the span cache keeps of a page heap: its share, if there are several. */
static inline size_t purge_cached_units(void)
{
    size_t cached = counter_read(&span_cache_told_units);
    unsigned heaps = page_heaps_now();
    return LIKELY(heaps == 1) ? cached : cached / heaps;
}

/* By how much more free pages hold memory than may wait until they are idle, where fresh memory is
 * wanted elsewhere or no helper can look after them. */
static inline size_t purge_excess_units(unsigned number)
{
    const page_heap_t *heap = &page_heaps[number];
    size_t cached = purge_cached_units();
    size_t dirty = count_read(&heap->free.dirty_units);
    /* For the page heap what is cached is in use. */
    size_t used = count_read(&heap->used_units);
    used -= smaller_of(used, cached);
    size_t allowed = keep_most_units(used);
    bool is_too_much = UNLIKELY(dirty + cached > allowed) && !keep_forever();
    return is_too_much ? smaller_of(dirty + cached - allowed, dirty) : 0;
}

/* When a heap's pages may be tried again; 0: at any time. Written by one thread at a time, read by
 * any. */
extern HIDDEN uint64_t purge_retry_ms[NODES_MOST];

static inline bool purge_may_try(unsigned number, uint64_t now_ms)
{
    return counter_read(&purge_retry_ms[number]) <= now_ms;
}

static inline bool purge_excess_is_due(unsigned number, uint64_t now_ms)
{
    return UNLIKELY(purge_excess_units(number) != 0) && purge_may_try(number, now_ms);
}

static inline bool purge_is_due(uint64_t now_ms)
{
    bool is_due = false;
    for (unsigned number = 0; number < page_heaps_now(); number++)
        is_due |= purge_excess_is_due(number, now_ms);
    return is_due;
}

/* Gives back the oldest of them until that is no longer so, `most_units` of each heap have gone, or
 * the kernel refuses. Returns bytes. */
size_t purge_excess(size_t most_units, uint64_t now_ms);

/* Do free pages hold more memory than is worth waiting for? */
bool purge_has_work(void);

/* Gives back every free span now, or tries to. Returns bytes. */
size_t purge_everything(uint64_t now_ms);

#endif
