/* Whether huge pages pay on this machine: pure arithmetic, in which times are arguments.
 *
 * A huge page is cleared in one fault instead of 512. Huge pages are faster by far where the kernel
 * has them at hand, and slower where it must first make one (compaction), or where a host takes
 * free huge pages back and must find each 4 KiB of them again. Therefore the processor time of
 * first touches is measured: of a huge page, and of a few small ones. Fading means of both are
 * compared. While huge pages cost too much, small ones are used, and now and then a huge one is
 * tried. Where there is reason to doubt, it begins like this, before anything was measured. */
#ifndef HAKMEM_HEAP_HUGE_PAGE_COST_H
#define HAKMEM_HEAP_HUGE_PAGE_COST_H

#include "base/bits.h"
#include "base/types.h"
#include "options/tuning.h"

typedef struct huge_page_cost {
    uint64_t huge_ns;  /* of the first touch of a huge page; 0: none seen */
    uint64_t small_ns; /* of as many small pages as a huge one has room for; 0: none seen */
    size_t rest;       /* chunks of small pages until a huge page is tried */
    size_t last_rest;  /* what it began at last; a trial that fails doubles it */
    bool is_doubted;   /* no huge page was tried yet, and they may cost too much */
} huge_page_cost_t;

static inline uint64_t faded(uint64_t mean, uint64_t sample)
{
    if (mean == 0)
        return sample;
    return mean - (mean >> HUGE_PAGE_FADING) + (sample >> HUGE_PAGE_FADING);
}

static inline bool huge_page_is_cheap(const huge_page_cost_t *cost, uint64_t ns)
{
    return cost->small_ns == 0 || ns * 100 <= cost->small_ns * HUGE_PAGE_WORTH;
}

/* Do they cost no more than they bring? Yes, as long as nothing is known and there is no doubt. */
static inline bool huge_pages_pay(const huge_page_cost_t *cost)
{
    return !cost->is_doubted && huge_page_is_cheap(cost, cost->huge_ns);
}

/* Begins with small pages. */
static inline void huge_page_cost_doubt(huge_page_cost_t *cost)
{
    cost->is_doubted = true;
    cost->rest = cost->last_rest = HUGE_PAGE_REST;
}

static inline void huge_page_cost_note_small(huge_page_cost_t *cost, uint64_t ns)
{
    cost->small_ns = faded(cost->small_ns, larger_of(ns, 1));
}

/* One page that was slow beyond measure says no more than one that was slow. A trial that succeeds
 * is followed by the next at once. */
static inline void huge_page_cost_note_huge(huge_page_cost_t *cost, uint64_t ns)
{
    bool paid = huge_pages_pay(cost);
    cost->is_doubted = false;
    if (cost->small_ns != 0)
        ns = smaller_of(ns, cost->small_ns * HUGE_PAGE_WORST);
    cost->huge_ns = faded(cost->huge_ns, larger_of(ns, 1));
    if (huge_page_is_cheap(cost, ns)) {
        cost->rest = 0;
    } else if (!huge_pages_pay(cost)) {
        size_t doubled = smaller_of(cost->last_rest * 2, HUGE_PAGE_MOST_REST);
        cost->rest = cost->last_rest = paid ? HUGE_PAGE_REST : doubled;
    }
}

/* How many of the `chunk_count` chunks that a heap is to grow by may have huge pages: all, none, or
 * the first one, for a trial. A trial needs something to be compared with. */
static inline size_t huge_page_cost_chunks(huge_page_cost_t *cost, size_t chunk_count)
{
    if (huge_pages_pay(cost))
        return chunk_count;
    bool is_trial = cost->rest == 0 && chunk_count != 0 && cost->small_ns != 0;
    cost->rest -= smaller_of(cost->rest, chunk_count);
    return is_trial;
}

#endif
