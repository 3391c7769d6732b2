/* Upkeep. See upkeep.h.
 *
 *   upkeep ─▶ upkeep_maintain, ten times a second, under the lock: finds out what has been idle for
 *             long enough, and is due
 *          ─▶ upkeep_give_back, without a lock: gives back what is due, or is more than may stay */
#include "upkeep/upkeep.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "base/count.h"
#include "cache/depot.h"
#include "upkeep/reclaim.h"
#include "os/background.h"
#include "os/lock.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "large/huge.h"
#include "large/huge_kept.h"
#include "keep/keep.h"
#include "heap/page_heap.h"
#include "keep/pressure.h"
#include "upkeep/purge.h"
#include "heap/span_cache.h"

void (*upkeep_watcher)(uint64_t now_ms);

static struct {
    lock_t lock; /* of a look: one thread at a time looks */
    /* Times of the last looks at each; written under the lock: */
    uint64_t looked_ms; /* read without the lock */
    uint64_t trimmed_ms;
    /* Kept huge blocks that were freed before this time are due; read and written without the lock,
     * a guess. */
    uint64_t huge_due_ms;
    /* Units inside slabs and depots when none of them could be given back; likewise. */
    size_t stuck_units;
    /* The most units in use, fading; likewise. */
    size_t peak_units;
} upkeep_state = {.lock = LOCK_INITIAL(LOCK_UPKEEP)};

static _Thread_local struct {
    size_t ahead_units; /* given back beyond what the thread's calls were to give back */
    bool is_at_work;    /* in upkeep, at most once: the program's hooks may allocate and free */
    bool has_drained;   /* the thread's own cache, since the program gives up most of its memory */
} upkeep_thread;

/* In the checked build. The caller holds the lock. */
static void upkeep_check_laws(void)
{
    MUST(depots_are_valid());
    MUST(central_lists_are_valid());
    MUST(private_heaps_are_valid());
    MUST(span_cache_is_valid());
    MUST(page_heap_is_valid());
}

/* Not where freed blocks have to hold what the debug mode left there. */
static bool upkeep_may_purge_slabs(uint64_t now_ms)
{
    return !options.junk && !keep_forever() && purge_may_try(now_ms);
}

/* ---- how much is free ---- */

/* Units, nearly. */
typedef struct holdings {
    size_t used;   /* in blocks of the program */
    size_t pages;  /* free and dirty: in the page heap, the span cache and kept huge blocks */
    size_t inside; /* free and dirty inside slabs, depots and thread caches */
} holdings_t;

/* Bytes in thread caches: a bin is as often full as empty. */
static size_t upkeep_cached_bytes(void)
{
    return shared_total_read(&thread_caches.total) / 2;
}

static holdings_t upkeep_holdings(void)
{
    size_t cached = shared_total_read(&span_cache_total) >> UNIT_SHIFT;
    size_t inside =
        shared_total_read(&central_lists_totals.free) + shared_total_read(&depots_total);
    holdings_t now = {.used = huge_live_units(),
                      .pages = cached + (count_read(&huge_kept_totals.bytes) >> UNIT_SHIFT),
                      .inside = (inside + upkeep_cached_bytes()) >> UNIT_SHIFT};
    now.pages += count_read(&page_heap.free.dirty_units);
    now.used += count_read(&page_heap.used_units);
    now.used -= smaller_of(now.used, now.inside + cached);
    return now;
}

/* Units that are free beyond what may stay. */
static size_t upkeep_excess_of(const holdings_t *now)
{
    size_t stuck = count_read(&upkeep_state.stuck_units);
    if (now->inside - stuck + stuck / 8 > stuck / 4 || /* not so many any more */
        UNLIKELY(count_read(&thread_caches.drain)))
        stuck = 0;
    stuck = smaller_of(stuck, now->inside);
    size_t free_units = now->pages + now->inside - stuck;
    size_t allowed = keep_allowed_units(now->used);
    return LIKELY(free_units <= allowed) || keep_forever() ? 0 : free_units - allowed;
}

/* Is the program giving up most of what it had, a moment ago? While it is, each block that a cache
 * keeps may keep a page, and soon there may be no further call. */
static void upkeep_note_drain(const holdings_t *now)
{
    size_t peak = larger_of(count_read(&upkeep_state.peak_units), now->used);
    bool drains = UNLIKELY(now->used < peak / DRAIN_PEAK_SHARE) &&
                  now->inside > now->used / DRAIN_INSIDE_SHARE &&
                  now->pages + now->inside > keep_allowed_units(now->used) && !keep_forever();
    if (peak != count_read(&upkeep_state.peak_units))
        __atomic_store_n(&upkeep_state.peak_units, peak, __ATOMIC_RELAXED);
    if (UNLIKELY(drains != count_read(&thread_caches.drain)))
        __atomic_store_n(&thread_caches.drain, drains, __ATOMIC_RELAXED);
    if (UNLIKELY(drains && !upkeep_thread.has_drained) &&
        !thread_cache_is_empty_cache(thread_cache_own))
        thread_cache_trim(thread_cache_own, true);
    upkeep_thread.has_drained = drains;
}

/* ---- a look ---- */

/* Blocks that the caches had kept were not wanted for long enough: as free pages they need not wait
 * again. */
static void upkeep_note_trimmed(size_t dirty_before)
{
    size_t dirty = count_read(&page_heap.free.dirty_units);
    if (dirty > dirty_before)
        purge_note_idle(dirty - dirty_before);
}

static void upkeep_trim(uint64_t now_ms)
{
    uint64_t delay = smaller_of(keep_wait_ms(), TRIM_PERIOD_MS);
    uint64_t age = keep_wait_ms();
    bool is_full = pressure_is_full();
    if (now_ms > age)
        span_cache_trim(now_ms - age, now_ms);
    thread_caches_trim_orphans(ORPHANED_TO_GO + 1);
    /* Blocks that nobody wants between two trims go: after one to two periods, the wait at most. */
    if (now_ms - upkeep_state.trimmed_ms >= larger_of(delay / 2, PURGE_PERIOD_MS) || is_full) {
        upkeep_state.trimmed_ms = now_ms;
        if (now_ms > TRIM_PERIOD_MS)
            thread_caches_trim_orphans(is_full ? now_ms : now_ms - TRIM_PERIOD_MS);
        depots_trim(is_full);
        central_lists_trim(now_ms, is_full);
        __atomic_store_n(&upkeep_state.stuck_units, 0,
                         __ATOMIC_RELAXED); /* it may be so no longer */
    }
}

static void upkeep_look_for_due(uint64_t now_ms)
{
    size_t huge = count_read(&huge_kept_totals.bytes);
    uint64_t age = keep_wait_ms();
    bool is_due = huge != 0 && now_ms > age && !keep_forever();
    __atomic_store_n(&upkeep_state.huge_due_ms, is_due ? now_ms - age : 0, __ATOMIC_RELAXED);
    purge_look(now_ms);
    if (upkeep_may_purge_slabs(now_ms))
        central_lists_look(now_ms);
}

static void upkeep_look_at_limits(uint64_t now_ms)
{
    huge_statistics_t huge = huge_statistics();
    size_t mapped = count_read(&page_heap.mapped_units);
    size_t held = count_read(&page_heap.used_units) + count_read(&page_heap.free.dirty_units);
    pressure_look((mapped << UNIT_SHIFT) + huge.mapped_bytes,
                  (held << UNIT_SHIFT) + huge.live_bytes + huge.cached_bytes, now_ms);
}

static NOINLINE void upkeep_maintain(uint64_t now_ms)
{
    if (!lock_try(&upkeep_state.lock)) /* somebody is at it */
        return;
    __atomic_store_n(&upkeep_state.looked_ms, now_ms, __ATOMIC_RELAXED);
    size_t peak = count_read(&upkeep_state.peak_units);
    __atomic_store_n(&upkeep_state.peak_units, peak - peak / PEAK_FADING, __ATOMIC_RELAXED);
    upkeep_look_at_limits(now_ms);
    size_t dirty_before = count_read(&page_heap.free.dirty_units);
    upkeep_trim(now_ms);
    upkeep_note_trimmed(dirty_before);
    upkeep_look_for_due(now_ms);
    if (config_checked)
        upkeep_check_laws();
    size_t missing = pressure_missing_addresses();
    lock_release(&upkeep_state.lock);
    if (missing != 0 && !page_map_is_refused()) {
        /* Others who want to map something, a thread its stack say, cannot ask for it. */
        span_cache_trim(UINT64_MAX, now_ms);
        reclaim_addresses(missing);
    }
    huge_release_some_idle();
    if (UNLIKELY(upkeep_watcher != NULL))
        upkeep_watcher(now_ms);
}

/* ---- giving back; no lock is held ---- */

/* Free pages, wherever they are kept. Returns units. */
static size_t upkeep_give_pages(size_t most, uint64_t now_ms)
{
    /* Spans whose lengths nobody wants lie longer than what the page heap has, and join there. */
    if (shared_total_read(&span_cache_total) >> UNIT_SHIFT >
        count_read(&page_heap.free.dirty_units))
        span_cache_evict(most, now_ms);
    size_t gone = purge_oldest_units(most, now_ms, now_ms);
    if (gone < most)
        gone += huge_give_back(now_ms, (most - gone) << UNIT_SHIFT, now_ms) >> UNIT_SHIFT;
    if (gone < most && shared_total_read(&span_cache_total) != 0) {
        span_cache_evict(most - gone, now_ms);
        gone += purge_oldest_units(most - gone, now_ms, now_ms);
    }
    return gone;
}

/* Free blocks, and the pages of slabs on which no others lie. Returns units. */
static size_t upkeep_give_inside(size_t most, uint64_t now_ms)
{
    size_t given = depots_give_up(most << UNIT_SHIFT);
    size_t gone = purge_oldest_units(most, now_ms, now_ms);
    if (gone < most && upkeep_may_purge_slabs(now_ms)) {
        size_t pages = central_lists_purge_pages((most - gone) << UNIT_SHIFT) >> UNIT_SHIFT;
        keep_note_gone(pages, now_ms, now_ms);
        gone += pages;
    }
    if (given == 0 && gone == 0)
        __atomic_store_n(&upkeep_state.stuck_units, upkeep_holdings().inside, __ATOMIC_RELAXED);
    return gone;
}

/* Returns units. */
static NOINLINE size_t upkeep_give_excess(size_t most, uint64_t now_ms)
{
    size_t gone = upkeep_give_pages(most, now_ms);
    return gone < most ? gone + upkeep_give_inside(most - gone, now_ms) : gone;
}

static bool upkeep_is_due(void)
{
    return count_read(&purge_shared.due_units) != 0 ||
           counter_read(&upkeep_state.huge_due_ms) != 0 ||
           count_read(&central_lists_totals.due_bytes) != 0;
}

/* Returns units. */
static NOINLINE size_t upkeep_give_due(size_t most, uint64_t now_ms)
{
    size_t gone = purge_due(most, now_ms);
    uint64_t before_ms = counter_read(&upkeep_state.huge_due_ms);
    if (gone < most && before_ms != 0) {
        size_t huge = huge_give_back(before_ms, (most - gone) << UNIT_SHIFT, now_ms);
        if (huge == 0)
            __atomic_store_n(&upkeep_state.huge_due_ms, 0, __ATOMIC_RELAXED);
        gone += huge >> UNIT_SHIFT;
    }
    if (gone < most && upkeep_may_purge_slabs(now_ms))
        gone += central_lists_purge_due((most - gone) << UNIT_SHIFT) >> UNIT_SHIFT;
    return gone;
}

/* Returns whether there is more to do. A huge page goes as a whole: by the units that go beyond
 * `most`, the thread's next calls give back less. */
static bool upkeep_give_back(size_t most, const holdings_t *before, uint64_t now_ms)
{
    size_t excess = upkeep_excess_of(before);
    size_t gone = smaller_of(upkeep_thread.ahead_units, most);
    if (LIKELY(excess == 0) && !upkeep_is_due())
        return false;
    upkeep_thread.ahead_units -= gone;
    if (gone < most && excess != 0 && purge_may_try(now_ms))
        gone += upkeep_give_excess(smaller_of(excess, most - gone), now_ms);
    if (gone < most && upkeep_is_due())
        gone += upkeep_give_due(most - gone, now_ms);
    upkeep_thread.ahead_units += gone - smaller_of(gone, most);
    return true;
}

static void upkeep_look_in_background(void)
{
    uint64_t now_ms = os_clock_ms();
    upkeep_thread.is_at_work = true;
    upkeep_maintain(now_ms);
    holdings_t now = upkeep_holdings();
    keep_learn(now.used, now_ms);
    (void)upkeep_give_back(SIZE_MAX >> UNIT_SHIFT, &now, now_ms);
    keep_freed_units = 0;
    upkeep_thread.is_at_work = false;
}

static bool upkeep_look_and_give_back(uint64_t now_ms)
{
    size_t most = larger_of(2 * keep_freed_units, GIVE_BACK_LEAST >> UNIT_SHIFT);
    holdings_t now = upkeep_holdings();
    keep_learn(now.used, now_ms);
    upkeep_note_drain(&now);
    bool is_time = now_ms >= counter_read(&upkeep_state.looked_ms) + PURGE_PERIOD_MS;
    if (UNLIKELY(is_time || pressure_wants_look())) {
        upkeep_maintain(now_ms);
        now = upkeep_holdings();
        if (options.background)
            os_background_start(upkeep_look_in_background);
    }
    if (pressure_is_near()) /* the kernel would end the program rather than wait */
        most = SIZE_MAX >> UNIT_SHIFT;
    bool has_more = upkeep_give_back(most, &now, now_ms);
    keep_freed_units = 0; /* what was handed from one place to another in here among them */
    return has_more;
}

bool upkeep(uint64_t now_ms)
{
    if (UNLIKELY(upkeep_thread.is_at_work))
        return false;
    upkeep_thread.is_at_work = true;
    bool has_more = upkeep_look_and_give_back(now_ms);
    upkeep_thread.is_at_work = false;
    return has_more;
}

void upkeep_at_thread_exit(void)
{
    upkeep(os_clock_ms());
}

/* Blocks that the thread's own cache gives up have waited there. While another thread is at upkeep,
 * they wait once more. The lock is not held before: a wrong free that the slabs find ends the
 * program, and its handler may fork. */
static NOINLINE void upkeep_trim_own(thread_cache_t *cache)
{
    size_t dirty_before = count_read(&page_heap.free.dirty_units);
    thread_cache_trim(cache, pressure_is_full());
    if (!lock_try(&upkeep_state.lock))
        return;
    upkeep_note_trimmed(dirty_before);
    lock_release(&upkeep_state.lock);
}

void upkeep_look(thread_cache_t *cache)
{
    uint64_t now_ms = os_clock_ms();
    bool is_slow = now_ms - cache->looked_ms >= PURGE_PERIOD_MS;
    thread_cache_publish(cache);
    cache->looked_ms = now_ms;
    if (now_ms - cache->trimmed_ms >= TRIM_PERIOD_MS) {
        cache->trimmed_ms = now_ms;
        upkeep_trim_own(cache);
    }
    if (now_ms - cache->spread_ms >= PURGE_PERIOD_MS) {
        cache->spread_ms = now_ms;
        thread_cache_trim_sparse(cache);
    }
    bool has_more = upkeep(now_ms);
    cache->upkeep_in = is_slow || has_more ? 1 : MISSES_BETWEEN_LOOKS;
}

void upkeep_at_fork(fork_phase_t phase)
{
    /* The first miss at the slabs finds what threads have left that the child does not have. */
    if (phase == FORK_CHILD)
        upkeep_state.looked_ms = 0;
    lock_at_fork(&upkeep_state.lock, phase);
}
