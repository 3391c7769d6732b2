/* Holders of free memory. See holders.h. */
#include "upkeep/holders.h"

#include "base/assert.h"
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
#include "options/tuning.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "upkeep/purge.h"

/* A row. */
typedef struct holder {
    /* What is free and dirty there, nearly: units, or more by the shift. */
    const size_t *held;
    unsigned held_shift;
    /* They count as used in the page heap: it has handed their spans out. */
    bool is_handed_out;
    /* They lie beside blocks in use, on the same pages maybe: other holders give first. */
    bool is_inside;
    /* Finds out what nobody has needed for as long as free memory waits. The callers come one at a
     * time. NULL: nothing is ever due. */
    void (*look)(uint64_t now_ms);
    /* Something is due where this is not 0. */
    const size_t *due;
    /* Gives back some `most` units of what is due. Returns units. NULL: nothing is ever due. */
    size_t (*give_due)(size_t most, uint64_t now_ms);
    /* Gives back some `most` units, wanted or not. Returns units, or 1 where free memory has only
     * changed its holder. NULL: another holder's row does it. */
    size_t (*give)(size_t most, uint64_t now_ms);
    /* The law: lists, counts and pages agree. Takes the locks. For the checked build. NULL: none.
     */
    bool (*is_valid)(void);
} holder_t;

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

/* Private heaps have slabs too. */
static bool slabs_are_valid(void)
{
    return central_lists_are_valid() && private_heaps_are_valid();
}

/* ---- all of them ---- */

enum { HOLDER_COUNT = 6 };

static const size_t never_due;

/* In the order in which they give. */
static const holder_t holders[HOLDER_COUNT] = {
    {&page_heap.free.dirty_units, 0, false, false, purge_look, &purge_shared.due_units, purge_due,
     pages_give, page_heap_is_valid},
    {&span_cache_total.published_bytes, UNIT_SHIFT, true, false, NULL, &never_due, NULL, NULL,
     span_cache_is_valid},
    {&huge_kept_totals.bytes, UNIT_SHIFT, false, false, huge_look, &huge_due_ms, huge_give_due,
     huge_give, NULL},
    {&depots_total.published_bytes, UNIT_SHIFT, true, true, NULL, &never_due, NULL, depots_give,
     depots_are_valid},
    {&central_lists_totals.free.published_bytes, UNIT_SHIFT, true, true, slabs_look,
     &central_lists_totals.due_bytes, slabs_give_due, slabs_give, slabs_are_valid},
    /* A bin is as often full as empty. Their threads drain them. */
    {&thread_caches.total.published_bytes, UNIT_SHIFT + 1, true, true, NULL, &never_due, NULL,
     NULL, NULL},
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

static bool holders_are_valid(void)
{
    bool are_valid = true;
    FOR_EACH_HOLDER (row)
        are_valid &= row->is_valid == NULL || row->is_valid();
    return are_valid;
}

void holders_look(uint64_t now_ms)
{
    FOR_EACH_HOLDER (row)
        if (row->look != NULL)
            row->look(now_ms);
    MUST(holders_are_valid());
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

size_t holders_free_pages(void)
{
    return count_read(&page_heap.free.dirty_units);
}

footprint_t holders_footprint(void)
{
    huge_statistics_t huge = huge_statistics();
    size_t held = count_read(&page_heap.used_units) + holders_free_pages();
    held -= smaller_of(held, shared_total_read(&central_lists_totals.purged) >> UNIT_SHIFT);
    return (footprint_t){
        .mapped = (count_read(&page_heap.mapped_units) << UNIT_SHIFT) + huge.mapped_bytes,
        .held = (held << UNIT_SHIFT) + huge.live_bytes + huge.cached_bytes};
}

void holders_let_go(uint64_t now_ms)
{
    thread_cache_t *cache = thread_cache_own;
    if (!thread_cache_is_empty_cache(cache))
        thread_cache_trim(cache, true);
    thread_caches_trim_orphans(UINT64_MAX);
    depots_trim(true);
    central_lists_trim(now_ms, true);
    span_cache_trim(UINT64_MAX, now_ms);
}

void holders_trim(uint64_t age_ms, bool are_blocks_due, bool is_full, uint64_t now_ms)
{
    if (now_ms > age_ms)
        span_cache_trim(now_ms - age_ms, now_ms);
    thread_caches_trim_orphans(ORPHANED_TO_GO + 1);
    if (!are_blocks_due)
        return;
    if (now_ms > TRIM_PERIOD_MS)
        thread_caches_trim_orphans(is_full ? now_ms : now_ms - TRIM_PERIOD_MS);
    depots_trim(is_full);
    central_lists_trim(now_ms, is_full);
}
