/* Upkeep. See upkeep.h. */
#include "cache/upkeep.h"

#include "base/bits.h"
#include "cache/depot.h"
#include "os/lock.h"
#include "os/os.h"
#include "policy/options.h"
#include "slab/central_list.h"
#include "span/huge.h"
#include "span/page_heap.h"
#include "span/purge.h"
#include "span/span_cache.h"

/* Purging looks for work ten times a second; caches and depots are trimmed once a second. */
#define PURGE_PERIOD_MS 100
#define TRIM_PERIOD_MS 1000

/* Reading the clock is a good part of what a miss costs that the depot serves. Where misses are so
 * rare that this many take longer than a period, each looks. */
#define MISSES_BETWEEN_LOOKS 8

static lock_t lock = LOCK_INITIAL(LOCK_UPKEEP);
static uint64_t purged_ms;
static uint64_t trimmed_ms;

static NOINLINE void look_after(uint64_t now_ms, bool is_over)
{
    if (!lock_try(&lock)) /* somebody is at it */
        return;
    __atomic_store_n(&purged_ms, now_ms, __ATOMIC_RELAXED);
    if (now_ms - trimmed_ms >= TRIM_PERIOD_MS) {
        trimmed_ms = now_ms;
        if (now_ms > TRIM_PERIOD_MS)
            thread_caches_trim_orphans(now_ms - TRIM_PERIOD_MS);
        depots_trim(false);
        central_lists_trim(now_ms, false);
    }
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    purge_aged(now_ms); /* first: then what comes from the span cache is the oldest there is */
    if (now_ms > delay) {
        span_cache_trim(now_ms - delay, now_ms);
        huge_release_cached(now_ms - delay);
    }
    purge_aged(now_ms);
    if (is_over)
        purge_excess(now_ms);
    lock_release(&lock);
}

void upkeep(uint64_t now_ms)
{
    bool is_over = purge_is_due(now_ms);
    if (UNLIKELY(is_over ||
                 now_ms - __atomic_load_n(&purged_ms, __ATOMIC_RELAXED) >= PURGE_PERIOD_MS))
        look_after(now_ms, is_over);
}

void upkeep_look(thread_cache_t *cache)
{
    uint64_t now_ms = os_clock_ms();
    bool is_slow = now_ms - cache->looked_ms >= PURGE_PERIOD_MS;
    cache->upkeep_in = is_slow ? 1 : MISSES_BETWEEN_LOOKS;
    cache->looked_ms = now_ms;
    if (now_ms - cache->trimmed_ms >= TRIM_PERIOD_MS) {
        cache->trimmed_ms = now_ms;
        thread_cache_trim(cache, false);
    }
    upkeep(now_ms);
}

/* Everything that no block uses becomes free pages. */
static void let_go(uint64_t now_ms)
{
    thread_cache_t *cache = thread_cache_own;
    if (!thread_cache_is_empty_cache(cache))
        thread_cache_trim(cache, true);
    thread_caches_trim_orphans(UINT64_MAX);
    depots_trim(true);
    central_lists_trim(now_ms, true);
    span_cache_trim(UINT64_MAX, now_ms);
}

size_t upkeep_purge_all(void)
{
    uint64_t now_ms = os_clock_ms();
    lock_acquire(&lock);
    let_go(now_ms);
    size_t purged = purge_everything(now_ms) + huge_release_cached(UINT64_MAX);
    lock_release(&lock);
    return purged;
}

bool upkeep_reclaim(size_t size)
{
    /* More than twice the machine's memory: an absurd request must not cost the caches. */
    if (size > window_unit_limit << UNIT_SHIFT)
        return false;
    lock_acquire(&lock);
    let_go(os_clock_ms());
    huge_release_cached(UINT64_MAX);
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        page_heap_release((page_heap_kind_t)kind);
    lock_release(&lock);
    /* Whatever came of it, or of another thread's turn before ours, is worth another try. */
    return true;
}

void upkeep_at_fork(fork_phase_t phase)
{
    lock_at_fork(&lock, phase);
}
