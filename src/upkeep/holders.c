/* Holders of free memory. See holders.h. */
#include "upkeep/holders.h"

#include "base/bits.h"
#include "base/count.h"
#include "cache/depot.h"
#include "cache/thread_cache.h"
#include "heap/page_heap.h"
#include "heap/span_cache.h"
#include "keep/keep.h"
#include "large/huge.h"
#include "large/huge_kept.h"
#include "options/options.h"
#include "slab/central_list.h"
#include "upkeep/purge.h"

/* ---- the page heap, and the span cache, whose spans go by way of it ---- */

static size_t pages_give(size_t most, uint64_t now_ms)
{
    size_t cached = shared_total_read(&span_cache_total) >> UNIT_SHIFT;
    /* Spans whose lengths nobody wants lie longer than what the page heap has, and join there. */
    if (cached > count_read(&page_heap.free.dirty_units))
        span_cache_evict(most, now_ms);
    size_t gone = purge_oldest_units(most, now_ms, now_ms);
    if (gone < most && cached != 0) {
        span_cache_evict(most - gone, now_ms);
        gone += purge_oldest_units(most - gone, now_ms, now_ms);
    }
    return gone;
}

/* ---- kept huge blocks ---- */

/* Kept huge blocks that were freed before this time are due; 0: none is. A guess, written by any
 * thread. */
static size_t huge_due_ms;

static void huge_set_due(uint64_t before_ms)
{
    __atomic_store_n(&huge_due_ms, before_ms, __ATOMIC_RELAXED);
}

static void huge_look(uint64_t now_ms)
{
    uint64_t age = keep_wait_ms();
    bool is_due = count_read(&huge_kept_totals.bytes) != 0 && now_ms > age && !keep_forever();
    huge_set_due(is_due ? now_ms - age : 0);
}

static size_t huge_give_due(size_t most, uint64_t now_ms)
{
    size_t gone = huge_give_back(count_read(&huge_due_ms), most << UNIT_SHIFT, now_ms);
    if (gone == 0)
        huge_set_due(0);
    return gone >> UNIT_SHIFT;
}

static size_t huge_give(size_t most, uint64_t now_ms)
{
    return huge_give_back(now_ms, most << UNIT_SHIFT, now_ms) >> UNIT_SHIFT;
}

/* ---- depots ---- */

static size_t depots_give(size_t most, uint64_t now_ms)
{
    size_t given = depots_give_up(most << UNIT_SHIFT);
    size_t gone = purge_oldest_units(most, now_ms, now_ms);
    return given == 0 ? gone : larger_of(gone, 1);
}

/* ---- slabs ---- */

/* Not where freed blocks have to hold what the debug mode left there. */
static bool slabs_may_give(uint64_t now_ms)
{
    return !options.junk && !keep_forever() && purge_may_try(now_ms);
}

static void slabs_look(uint64_t now_ms)
{
    if (slabs_may_give(now_ms))
        central_lists_look(now_ms);
}

static size_t slabs_give_due(size_t most, uint64_t now_ms)
{
    return slabs_may_give(now_ms) ? central_lists_purge_due(most << UNIT_SHIFT) >> UNIT_SHIFT : 0;
}

static size_t slabs_give(size_t most, uint64_t now_ms)
{
    if (!slabs_may_give(now_ms))
        return 0;
    size_t gone = central_lists_purge_pages(most << UNIT_SHIFT) >> UNIT_SHIFT;
    keep_note_gone(gone, now_ms, now_ms);
    return gone;
}

/* ---- all of them ---- */

static const size_t never_due;

const holder_t holders[HOLDER_COUNT] = {
    {&page_heap.free.dirty_units, 0, false, false, purge_look, &purge_shared.due_units, purge_due,
     pages_give},
    {&span_cache_total.published_bytes, UNIT_SHIFT, true, false, NULL, &never_due, NULL, NULL},
    {&huge_kept_totals.bytes, UNIT_SHIFT, false, false, huge_look, &huge_due_ms, huge_give_due,
     huge_give},
    {&depots_total.published_bytes, UNIT_SHIFT, true, true, NULL, &never_due, NULL, depots_give},
    {&central_lists_totals.free.published_bytes, UNIT_SHIFT, true, true, slabs_look,
     &central_lists_totals.due_bytes, slabs_give_due, slabs_give},
    /* A bin is as often full as empty. Their threads drain them. */
    {&thread_caches.total.published_bytes, UNIT_SHIFT + 1, true, true, NULL, &never_due, NULL,
     NULL},
};

#define FOR_EACH_HOLDER(row)                                                                       \
    _Pragma("GCC unroll 6") for (const holder_t *row = holders; row < holders + HOLDER_COUNT; row++)

holdings_t holders_count(void)
{
    holdings_t now = {.used = huge_live_units() + count_read(&page_heap.used_units)};
    size_t handed_out = shared_total_read(&central_lists_totals.purged) >> UNIT_SHIFT;
    FOR_EACH_HOLDER (row) {
        size_t held = count_read(row->held) >> row->held_shift;
        handed_out += row->is_handed_out ? held : 0;
        if (row->is_inside)
            now.inside += held;
        else
            now.pages += held;
    }
    now.used -= smaller_of(now.used, handed_out);
    return now;
}

bool holders_are_due(void)
{
    size_t due = 0;
    FOR_EACH_HOLDER (row)
        due |= count_read(row->due);
    return due != 0;
}

size_t holders_give_due(size_t most, uint64_t now_ms)
{
    size_t gone = 0;
    FOR_EACH_HOLDER (row)
        if (gone < most && count_read(row->due) != 0)
            gone += row->give_due(most - gone, now_ms);
    return gone;
}

size_t holders_give(bool is_inside, size_t most, uint64_t now_ms)
{
    size_t gone = 0;
    FOR_EACH_HOLDER (row)
        if (gone < most && row->give != NULL && row->is_inside == is_inside)
            gone += row->give(most - gone, now_ms);
    return gone;
}
