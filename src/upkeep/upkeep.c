/* Upkeep. See upkeep.h.
 *
 *   upkeep ─▶ upkeep_maintain, ten times a second, under the lock: finds out what has been idle for
 *             long enough, and is due
 *          ─▶ upkeep_give_back, without a lock: gives back what is due, or is more than may stay
 *          ─▶ upkeep_watch: where much stays, calls that hit come here too now and then */
#include "upkeep/upkeep.h"

#include "base/bits.h"
#include "base/count.h"
#include "heap/page_map.h"
#include "keep/keep.h"
#include "keep/pressure.h"
#include "large/huge.h"
#include "options/options.h"
#include "options/tuning.h"
#include "os/background.h"
#include "os/lock.h"
#include "upkeep/holders.h"
#include "upkeep/purge.h"
#include "upkeep/reclaim.h"

void (*upkeep_watcher)(uint64_t now_ms);

static struct {
    lock_t lock; /* of a look: one thread at a time looks */
    /* Times of the last looks at each; written under the lock: */
    uint64_t looked_ms; /* read without the lock */
    uint64_t trimmed_ms;
    /* All further ones are written by any thread, and are guesses. */
    size_t stuck_units; /* beside blocks in use when none of them could be given back */
    size_t peak_units;  /* the most units in use, fading */
    size_t is_ending;   /* a phase of the program has ended, and what it left is going */
    uint64_t missed_ms; /* when a call last came here by itself */
    uint64_t gone_ms;   /* when memory last went back */
    uint64_t gave_ms;   /* when a call last gave back as much as it found in GIVE_BACK_MOST_US */
    size_t looked_used; /* units in use at the last look */
    size_t rises;       /* there were more, by a MiB, than at the look before */
    size_t least_used;  /* the fewest units in use, nearly, while the same ones were stuck */
    uint64_t fell_ms;   /* when use fell to that */
} upkeep_state = {.lock = LOCK_INITIAL(LOCK_UPKEEP), .least_used = SIZE_MAX};

static _Thread_local struct {
    size_t ahead_units; /* given back beyond what the thread's calls were to give back */
    bool is_at_work;    /* in upkeep, at most once: the program's hooks may allocate and free */
    bool has_drained;   /* the thread's own cache, since the program gives up most of its memory */
} upkeep_thread;

_Thread_local upkeep_watched_t upkeep_watched = {.look_in = 1};

/* ---- how much is free ---- */

/* What is free, and could go back. */
static holdings_t upkeep_count(void)
{
    holdings_t now = holders_count();
    size_t stuck = count_read(&upkeep_state.stuck_units);
    bool is_stuck = now.inside - stuck + stuck / 8 <= stuck / 4; /* not many more or fewer now */
    if (!is_stuck && stuck != 0)
        __atomic_store_n(&upkeep_state.least_used, SIZE_MAX, __ATOMIC_RELAXED);
    if (!is_stuck || UNLIKELY(count_read(&thread_caches.drain)))
        stuck = 0;
    now.free = now.pages + now.inside - smaller_of(stuck, now.inside);
    return now;
}

/* Units that are free beyond what may stay. */
static size_t upkeep_excess_of(const holdings_t *now)
{
    size_t allowed = keep_allowed_units(now->used);
    return LIKELY(now->free <= allowed) || keep_forever() ? 0 : now->free - allowed;
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
    size_t dirty = holders_free_pages();
    if (dirty > dirty_before)
        purge_note_idle(dirty - dirty_before);
}

static void upkeep_trim(uint64_t now_ms)
{
    bool is_full = pressure_is_full();
    /* Blocks that nobody wants between two trims go: after one to two periods, the wait at most. */
    uint64_t period_ms = larger_of(smaller_of(keep_wait_ms(), TRIM_PERIOD_MS) / 2, PURGE_PERIOD_MS);
    bool are_blocks_due = now_ms - upkeep_state.trimmed_ms >= period_ms || is_full;
    holders_trim(keep_wait_ms(), are_blocks_due, is_full, now_ms);
    if (are_blocks_due) {
        upkeep_state.trimmed_ms = now_ms;
        __atomic_store_n(&upkeep_state.stuck_units, 0,
                         __ATOMIC_RELAXED); /* it may be so no longer */
    }
}

/* The caller holds the lock. */
static void upkeep_note_rise(size_t used_units)
{
    size_t before = count_read(&upkeep_state.looked_used);
    __atomic_store_n(&upkeep_state.rises, used_units > before + (MIB >> UNIT_SHIFT),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&upkeep_state.looked_used, used_units, __ATOMIC_RELAXED);
}

static NOINLINE void upkeep_maintain(size_t used_units, uint64_t now_ms)
{
    if (!lock_try(&upkeep_state.lock)) /* somebody is at it */
        return;
    __atomic_store_n(&upkeep_state.looked_ms, now_ms, __ATOMIC_RELAXED);
    upkeep_note_rise(used_units);
    size_t peak = count_read(&upkeep_state.peak_units);
    __atomic_store_n(&upkeep_state.peak_units, peak - peak / PEAK_FADING, __ATOMIC_RELAXED);
    footprint_t footprint = holders_footprint();
    pressure_look(footprint.mapped, footprint.held, now_ms);
    size_t dirty_before = holders_free_pages();
    upkeep_trim(now_ms);
    upkeep_note_trimmed(dirty_before);
    holders_look(now_ms);
    size_t missing = pressure_missing_addresses();
    lock_release(&upkeep_state.lock);
    if (missing != 0 && !page_map_is_refused()) {
        /* Others who want to map something, a thread its stack say, cannot ask for it. */
        reclaim_addresses(missing);
    }
    huge_release_some_idle();
    if (UNLIKELY(upkeep_watcher != NULL))
        upkeep_watcher(now_ms);
}

/* ---- giving back; no lock is held ---- */

/* Gives back some of what is more than may stay. Returns units. */
static size_t upkeep_give_excess(size_t most, uint64_t now_ms)
{
    size_t gone = holders_give(false, most, now_ms);
    if (gone >= most)
        return gone;
    size_t gone_inside = holders_give(true, most - gone, now_ms);
    if (gone_inside == 0)
        __atomic_store_n(&upkeep_state.stuck_units, holders_count().inside, __ATOMIC_RELAXED);
    return gone + gone_inside;
}

/* What a call has to give back. Units. */
typedef struct giving {
    size_t least;  /* whatever the time: by the law of the peak, or as much as the call frees */
    size_t most;
    size_t excess; /* of what is more than may stay */
} giving_t;

/* Gives back piece by piece, until `end_ns` of the fine clock; 0: whatever the time. Returns units.
 */
static NOINLINE size_t upkeep_give_pieces(giving_t what, uint64_t end_ns, uint64_t now_ms)
{
    size_t most = what.most;
    size_t excess = what.excess;
    size_t gone = 0;
    size_t more = 1;
    while (gone < most && more != 0 &&
           (gone <= what.least || end_ns == 0 || os_clock_ns() < end_ns)) {
        size_t piece = end_ns == 0 ? most - gone
                                   : smaller_of(most - gone, GIVE_BACK_PIECE >> UNIT_SHIFT);
        more = 0;
        if (excess != 0 && purge_may_try(now_ms))
            more = upkeep_give_excess(smaller_of(excess, piece), now_ms);
        if (more < piece && holders_are_due())
            more += holders_give_due(piece - more, now_ms);
        excess -= smaller_of(excess, more);
        gone += more;
    }
    return gone;
}

/* One call in each period, of whichever thread, gives back as much as it finds in its time. Not
 * while use rises: what went then would be touched anew at once. */
static bool upkeep_claims_time(uint64_t now_ms)
{
    uint64_t before = counter_read(&upkeep_state.gave_ms);
    /* relaxed: only the time is wanted */
    return now_ms >= before + PURGE_PERIOD_MS &&
           __atomic_compare_exchange_n(&upkeep_state.gave_ms, &before, now_ms, false,
                                       __ATOMIC_RELAXED, __ATOMIC_RELAXED) &&
           count_read(&upkeep_state.rises) == 0;
}

/* Units that a call gives back at most: all, where a limit is near (the kernel would end the
 * program rather than wait) or a phase of the program has just ended. */
static size_t upkeep_most(bool has_ended, uint64_t now_ms)
{
    size_t most = larger_of(2 * keep_freed_units, GIVE_BACK_LEAST >> UNIT_SHIFT);
    if (pressure_is_near() || has_ended || upkeep_claims_time(now_ms))
        return SIZE_MAX >> UNIT_SHIFT;
    bool is_ending = count_read(&upkeep_state.is_ending) != 0;
    return is_ending ? larger_of(most, GIVE_BACK_PIECE >> UNIT_SHIFT) : most;
}

/* A huge page goes as a whole: by the units that go beyond `most`, the thread's next calls give
 * back less. */
static NOINLINE void upkeep_give_back(const holdings_t *before, size_t excess, size_t most,
                                      bool is_bounded, uint64_t now_ms)
{
    size_t below_peak = keep_units_below_peak(before->used);
    giving_t what = {.excess = excess};
    what.least = larger_of(before->free - smaller_of(before->free, below_peak),
                           smaller_of(keep_freed_units, excess));
    what.most = larger_of(most, what.least);
    size_t ahead = smaller_of(upkeep_thread.ahead_units, what.most - what.least);
    what.most -= ahead;
    bool is_long = is_bounded && what.most > GIVE_BACK_PIECE >> UNIT_SHIFT;
    uint64_t end_ns = is_long ? os_clock_ns() + GIVE_BACK_MOST_US * 1000 : 0;
    size_t gone = upkeep_give_pieces(what, end_ns, now_ms);
    upkeep_thread.ahead_units -= ahead;
    upkeep_thread.ahead_units += gone - smaller_of(gone, what.most);
    if (gone != 0)
        __atomic_store_n(&upkeep_state.gone_ms, now_ms, __ATOMIC_RELAXED);
}

static void upkeep_look_in_background(void)
{
    uint64_t now_ms = os_clock_ms();
    upkeep_thread.is_at_work = true;
    holdings_t now = upkeep_count();
    upkeep_maintain(now.used, now_ms);
    now = upkeep_count();
    (void)keep_learn(now.used, now_ms);
    upkeep_give_back(&now, upkeep_excess_of(&now), SIZE_MAX >> UNIT_SHIFT, false, now_ms);
    keep_freed_units = 0;
    upkeep_thread.is_at_work = false;
}

/* ---- calls that hit ----
 *
 * Calls that only hit would never give memory back. From the time when more is free than may stay
 * at rest, until most of that is gone, free takes a longer way, and looks at the clock now and
 * then. The way has to be long for busy programs as well: the last call of a busy phase is one like
 * others, and from then on all may hit. */

/* Is a call that would have hit worth a look? Not for ever where nothing comes of it. */
static bool upkeep_may_watch(uint64_t now_ms)
{
    uint64_t since_ms =
        larger_of(counter_read(&upkeep_state.missed_ms), counter_read(&upkeep_state.gone_ms));
    return now_ms < since_ms + WATCH_MOST_MS + 2 * keep_wait_ms() && !keep_forever() &&
           !options.background && !options.check_frees && purge_may_try(now_ms);
}

/* Has memory beside blocks in use been looked through since use fell to a new low? What seemed
 * stuck in the midst of many frees may be free in whole pages when they are done. Blocks that move
 * while use stays the same are not seen. */
static bool upkeep_has_settled(size_t used_units, uint64_t now_ms)
{
    if (used_units + (SETTLED_MOST >> UNIT_SHIFT) < count_read(&upkeep_state.least_used)) {
        __atomic_store_n(&upkeep_state.least_used, used_units, __ATOMIC_RELAXED);
        __atomic_store_n(&upkeep_state.fell_ms, now_ms, __ATOMIC_RELAXED);
    }
    return now_ms >= counter_read(&upkeep_state.fell_ms) + TRIM_PERIOD_MS + keep_wait_ms();
}

static void upkeep_watch(const holdings_t *now, bool is_time, uint64_t now_ms)
{
    size_t rest = keep_rest_units(now->used);
    size_t all = now->pages + now->inside;
    size_t free = LIKELY(now->free == all) || upkeep_has_settled(now->used, now_ms) ? now->free
                                                                                    : all;
    bool was_watched = count_read(&window_watched_granules) != 0;
    bool is_much = free > (was_watched ? rest / WATCH_ENDS_SHARE : rest);
    if (LIKELY(is_much == was_watched) && (!is_much || !is_time))
        return;
    bool wanted = is_much && upkeep_may_watch(now_ms);
    if (wanted != was_watched)
        page_map_watch(wanted);
}

static bool upkeep_look_and_give_back(uint64_t now_ms)
{
    holdings_t now = upkeep_count();
    bool has_ended = keep_learn(now.used, now_ms);
    upkeep_note_drain(&now);
    bool is_time = now_ms >= counter_read(&upkeep_state.looked_ms) + PURGE_PERIOD_MS;
    if (UNLIKELY(is_time || pressure_wants_look())) {
        upkeep_maintain(now.used, now_ms);
        now = upkeep_count();
        if (options.background)
            os_background_start(upkeep_look_in_background);
    }
    size_t excess = upkeep_excess_of(&now);
    bool has_more = UNLIKELY(excess != 0) || holders_are_due();
    if (UNLIKELY(has_more))
        upkeep_give_back(&now, excess, upkeep_most(has_ended, now_ms), !pressure_is_near(), now_ms);
    bool is_ending = count_read(&upkeep_state.is_ending) != 0;
    if (UNLIKELY((has_ended || is_ending) && is_ending != (excess != 0)))
        __atomic_store_n(&upkeep_state.is_ending, excess != 0, __ATOMIC_RELAXED);
    upkeep_watch(&now, is_time, now_ms);
    keep_freed_units = 0; /* what was handed from one place to another in here among them */
    return has_more;
}

static bool upkeep_once(uint64_t now_ms)
{
    if (UNLIKELY(upkeep_thread.is_at_work))
        return false;
    upkeep_thread.is_at_work = true;
    bool has_more = upkeep_look_and_give_back(now_ms);
    upkeep_thread.is_at_work = false;
    return has_more;
}

bool upkeep(uint64_t now_ms)
{
    if (now_ms != counter_read(&upkeep_state.missed_ms))
        __atomic_store_n(&upkeep_state.missed_ms, now_ms, __ATOMIC_RELAXED);
    return upkeep_once(now_ms);
}

void upkeep_watched_look(void)
{
    uint64_t now_ms = os_clock_ms();
    bool is_slow = now_ms >= upkeep_watched.looked_ms + PURGE_PERIOD_MS;
    upkeep_watched.looked_ms = now_ms;
    upkeep_watched.look_in = is_slow ? 1 : WATCHED_BETWEEN_LOOKS;
    uint64_t before = counter_read(&upkeep_state.looked_ms);
    if (before != 0 && now_ms >= before + PURGE_PERIOD_MS) /* 0: a child that may soon execute */
        (void)upkeep_once(now_ms);
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
    size_t dirty_before = holders_free_pages();
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
