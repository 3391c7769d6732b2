/* Upkeep. See upkeep.h. */
#include "cache/upkeep.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "base/count.h"
#include "cache/depot.h"
#include "os/helper.h"
#include "os/lock.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"
#include "policy/tuning.h"
#include "slab/central_list.h"
#include "slab/private_heap.h"
#include "span/huge.h"
#include "span/huge_kept.h"
#include "span/keep.h"
#include "span/page_heap.h"
#include "span/pressure.h"
#include "span/purge.h"
#include "span/span_cache.h"

bool (*upkeep_watcher)(uint64_t now_ms);
void (*upkeep_observer)(const upkeep_view_t *view);

static lock_t lock = LOCK_INITIAL(LOCK_UPKEEP);
static uint64_t purged_ms;
static uint64_t trimmed_ms;
static uint64_t reclaimed_ms;
static uint64_t fresh_seen; /* of page_heap_fresh_units: what has been made up for */

/* In the checked build. The caller holds the lock, so no span is on its way to the kernel. */
static void check_laws(void)
{
    MUST(depots_are_valid());
    MUST(central_lists_are_valid());
    MUST(private_heaps_are_valid());
    MUST(span_cache_is_valid());
    for (unsigned number = 0; number < page_heaps_now(); number++)
        MUST(page_heap_is_valid(number));
}

/* Not where freed blocks have to hold what the debug mode left there. */
static bool may_purge_pages(uint64_t now_ms)
{
    return !options.junk && !keep_forever() && purge_may_try(page_heap_here(), now_ms);
}

/* Gives back as much of what is too much as others have taken afresh since the last call: then the
 * process does not grow. */
static void make_up_for_fresh(uint64_t now_ms)
{
    uint64_t fresh = counter_read(&page_heap_fresh_units);
    size_t more = (size_t)(fresh - fresh_seen);
    __atomic_store_n(&fresh_seen, fresh, __ATOMIC_RELAXED);
    size_t wanted = more << UNIT_SHIFT;
    size_t given = purge_excess(more, now_ms);
    if (given < wanted && may_purge_pages(now_ms))
        central_lists_make_up(wanted - given);
}

static void read_dirty(size_t dirty[NODES_MOST])
{
    for (unsigned number = 0; number < page_heaps_now(); number++)
        dirty[number] = count_read(&page_heaps[number].free.dirty_units);
}

/* What the caches had kept was not wanted for long enough: as free pages it need not wait again. */
static void note_trimmed(const size_t dirty_before[NODES_MOST])
{
    size_t dirty[NODES_MOST] = {0};
    read_dirty(dirty);
    for (unsigned number = 0; number < page_heaps_now(); number++)
        if (dirty[number] > dirty_before[number])
            purge_note_idle(number, dirty[number] - dirty_before[number]);
}

static void trim(uint64_t now_ms)
{
    uint64_t delay = smaller_of(keep_wait_ms(), TRIM_PERIOD_MS);
    uint64_t age = keep_age_ms();
    bool is_full = pressure_is_full();
    if (now_ms > age)
        span_cache_trim(now_ms - age, now_ms);
    if (now_ms > age && !keep_forever())
        huge_release_cached(now_ms - age);
    /* By its own clock: a busy thread may make every other trim. The first time may take
     * milliseconds in the kernel. A thread that only sleeps for a moment keeps what it has. */
    uint64_t asleep_ms = smaller_of(TRIM_PERIOD_MS, pressure_wait_ms(TRIM_PERIOD_MS));
    if (os_is_helper() && now_ms - reclaimed_ms >= larger_of(asleep_ms, PURGE_PERIOD_MS)) {
        reclaimed_ms = now_ms;
        thread_caches_reclaim_idle();
    }
    /* What nobody wants between two trims goes: after one to two periods, the wait at most. */
    if (now_ms - trimmed_ms >= larger_of(delay / 2, PURGE_PERIOD_MS) || is_full) {
        trimmed_ms = now_ms;
        if (now_ms > TRIM_PERIOD_MS)
            thread_caches_trim_orphans(is_full ? now_ms : now_ms - TRIM_PERIOD_MS);
        depots_trim(is_full);
        central_lists_trim(now_ms, is_full);
    }
    if (may_purge_pages(now_ms))
        central_lists_purge_pages(now_ms, os_is_helper());
    if (config_checked)
        check_laws();
}

/* Kept huge blocks go, and whole chunks that are free, some `size` bytes of them: addresses too. */
static void unmap_idle(size_t size)
{
    size -= smaller_of(size, huge_release_cached(UINT64_MAX));
    for (unsigned number = 0; number < page_heaps_now(); number++)
        size -= smaller_of(size, page_heap_release(number, size));
}

/* Others who want to map something, a thread its stack say, cannot ask for what is free here. */
static void make_room_for_others(size_t size, uint64_t now_ms)
{
    if (size == 0 || page_map_is_refused())
        return;
    span_cache_trim(UINT64_MAX, now_ms);
    unmap_idle(size);
}

/* What is left to wait when a helper has found no more to do. No other is started before there is
 * more. Of each kind: what a thread's cache leaves when it goes is more of the first. */
static size_t settled_units;
static size_t settled_others;

/* Free units that may hold memory: in page heaps, in the span cache, in slabs, in depots.
 * `used_units` gets those in use; for the page heaps what is cached or free in a slab is. */
static size_t waiting_units(size_t *used_units)
{
    size_t inside = (size_t)counter_read(&span_cache_told_units) +
                    (size_t)(counter_read(&central_lists_told_bytes) >> UNIT_SHIFT) +
                    (size_t)(counter_read(&depots_told_bytes) >> UNIT_SHIFT);
    size_t waiting = inside;
    size_t used = 0;
    for (unsigned number = 0; number < page_heaps_now(); number++) {
        waiting += count_read(&page_heaps[number].free.dirty_units);
        used += count_read(&page_heaps[number].used_units);
    }
    *used_units = used - smaller_of(used, inside);
    return waiting;
}

/* Bytes in thread caches: a bin is as often full as empty. */
static size_t cached_bytes(void)
{
    return (size_t)counter_read(&thread_caches_told_bytes) / 2;
}

/* Units of kept huge blocks and of thread caches: no part of what is free in page heaps. */
static size_t other_units(void)
{
    size_t huge = count_read(&huge_kept_bytes) + count_read(&huge_kept_longer_bytes);
    return (huge + cached_bytes()) >> UNIT_SHIFT;
}

/* Is enough free, wherever it is? Kept huge blocks and caches of threads are not kept in proportion
 * to what is in use. */
static bool is_much(void)
{
    size_t used;
    size_t waiting = waiting_units(&used);
    size_t others = other_units();
    size_t much = HELPER_WORTH_IT >> UNIT_SHIFT;
    if (LIKELY(waiting + others <= used / HELPER_SHARE + much && others <= much))
        return false;
    waiting -= smaller_of(waiting, __atomic_load_n(&settled_units, __ATOMIC_RELAXED));
    others -= smaller_of(others, __atomic_load_n(&settled_others, __ATOMIC_RELAXED));
    return waiting + others > much && !keep_forever();
}

static void settle(size_t most_units, size_t most_others)
{
    size_t used;
    /* relaxed: is_much only wants to know how much it is */
    __atomic_store_n(&settled_units, smaller_of(waiting_units(&used), most_units),
                     __ATOMIC_RELAXED);
    __atomic_store_n(&settled_others, smaller_of(other_units(), most_others), __ATOMIC_RELAXED);
}

/* ---- for who learns ---- */

static uint64_t misses;
static uint64_t slab_misses;
static uint64_t refusals;

/* Since the thread's last look. */
static COLD void count_misses(thread_cache_t *cache)
{
    uint32_t age = __atomic_load_n(&size_class_limits_age, __ATOMIC_RELAXED);
    if (cache->limits_age != age)
        thread_cache_heed_limits(cache);
    cache->limits_age = age;
    counter_add(&misses, cache->upkeep_from);
    counter_add(&slab_misses, cache->slab_misses);
    cache->slab_misses = 0;
}

/* The caller holds the lock. */
static COLD void show_to_observer(uint64_t now_ms)
{
    size_t used;
    size_t waiting = waiting_units(&used) << UNIT_SHIFT;
    huge_statistics_t huge = huge_statistics();
    size_t cached = cached_bytes();
    used = (used << UNIT_SHIFT) + huge.live_bytes;
    upkeep_view_t view = {
        .now_ms = now_ms,
        .free_bytes = waiting + huge.cached_bytes + cached,
        .used_bytes = used - smaller_of(used, cached),
        .misses = counter_read(&misses),
        .slab_misses = counter_read(&slab_misses),
        .refusals = counter_read(&refusals),
    };
    upkeep_observer(&view);
}

bool upkeep_visit(void (*visit)(void *context), void *context)
{
    if (!lock_try_at_exit(&lock))
        return false;
    visit(context);
    lock_release(&lock);
    return true;
}

/* ---- a look ---- */

static void await_watcher(void);

static NOINLINE void look_after(uint64_t now_ms, bool is_alone)
{
    if (!lock_try(&lock)) /* somebody is at it */
        return;
    __atomic_store_n(&purged_ms, now_ms, __ATOMIC_RELAXED);
    pressure_look(now_ms);
    size_t dirty_before[NODES_MOST] = {0};
    read_dirty(dirty_before);
    trim(now_ms);
    note_trimmed(dirty_before);
    make_room_for_others(pressure_missing_addresses(), now_ms);
    purge_idle(now_ms);
    make_up_for_fresh(now_ms);
    if (is_alone)
        purge_excess(SIZE_MAX, now_ms);
    settle(__atomic_load_n(&settled_units, __ATOMIC_RELAXED),
           __atomic_load_n(&settled_others, __ATOMIC_RELAXED));
    if (UNLIKELY(upkeep_observer != NULL))
        show_to_observer(now_ms);
    lock_release(&lock);
    if (UNLIKELY(upkeep_watcher != NULL) && upkeep_watcher(now_ms) && options.background)
        (void)os_helper_start(await_watcher); /* unless it is running, and will see to it */
}

/* ---- the helper ---- */

static bool is_idle(void)
{
    return !purge_has_work() && span_cache_units() == 0 && huge_cached_size() == 0;
}

static void tend(void)
{
    uint64_t now_ms = os_clock_ms();
    uint64_t delay_ms = (uint64_t)options.purge_delay_ms;
    /* Depots and central lists give up what nobody wanted between two trims. */
    uint64_t idle_from_ms = now_ms + 3 * TRIM_PERIOD_MS;
    uint64_t end_ms = now_ms + delay_ms + HELPER_LIFE_MS;
    uint64_t told_before = 0;
    unsigned lives = HELPER_LIVES;
    do {
        os_helper_sleep(PURGE_PERIOD_MS);
        now_ms = os_clock_ms();
        look_after(now_ms, false);
        uint64_t told =
            counter_read(&depots_told_bytes) + counter_read(&central_lists_told_bytes);
        if (told != told_before && now_ms < end_ms) /* freed just now, or given up by depots */
            idle_from_ms = now_ms + delay_ms + 3 * TRIM_PERIOD_MS;
        told_before = told;
        if (now_ms >= end_ms && lives != 0 && !is_idle()) { /* maybe freed a moment ago */
            end_ms = now_ms + HELPER_LIFE_MS;
            lives--;
        }
    } while ((now_ms < end_ms && (!is_idle() || cached_bytes() > HELPER_WORTH_IT)) ||
             now_ms < idle_from_ms);
    settle(now_ms < end_ms ? SIZE_MAX : 0, SIZE_MAX);
}

static bool is_help_wanted; /* since the helper began to wait for the watcher */

static void await_watcher(void)
{
    while (upkeep_watcher != NULL && upkeep_watcher(os_clock_ms())) {
        os_helper_sleep(PURGE_PERIOD_MS);
        if (__atomic_exchange_n(&is_help_wanted, false, __ATOMIC_RELAXED) || is_much())
            tend();
    }
}

static void help(void)
{
    tend();
    await_watcher();
}

/* Much is free, which a program that makes no further call would keep: somebody has to look after
 * it. False: nobody can. */
static COLD bool get_help(uint64_t now_ms)
{
    static uint64_t retry_ms;
    if (!options.background || now_ms < __atomic_load_n(&retry_ms, __ATOMIC_RELAXED))
        return false;
    if (os_helper_start(help) || os_helper_is_running())
        return true;
    __atomic_store_n(&retry_ms, now_ms + HELPER_RETRY_MS, __ATOMIC_RELAXED);
    return false;
}

/* Much is free: a helper is to look after it, so that it goes back whether or not the program makes
 * a further call. */
static NOINLINE void look_after_much(uint64_t now_ms, bool is_time)
{
    __atomic_store_n(&is_help_wanted, true, __ATOMIC_RELAXED);
    bool is_helped = os_helper_is_running() || get_help(now_ms);
    bool is_over = purge_is_due(now_ms);
    bool is_growing = counter_read(&page_heap_fresh_units) != counter_read(&fresh_seen);
    if (is_time || (is_over && (is_growing || !is_helped)))
        look_after(now_ms, is_over && !is_helped);
}

void upkeep(uint64_t now_ms)
{
    bool is_time = now_ms - __atomic_load_n(&purged_ms, __ATOMIC_RELAXED) >= PURGE_PERIOD_MS;
    is_time |= pressure_wants_look();
    if (UNLIKELY(purge_is_due(now_ms)) || is_much())
        look_after_much(now_ms, is_time);
    else if (UNLIKELY(is_time))
        look_after(now_ms, false);
}

/* What the thread's own cache gives up has waited there. While somebody else is at upkeep, it waits
 * once more. The lock is not held before: a wrong free that the slabs find ends the program, and
 * its handler may fork. */
static NOINLINE void trim_own(thread_cache_t *cache)
{
    size_t dirty_before[NODES_MOST] = {0};
    read_dirty(dirty_before);
    thread_cache_trim(cache, pressure_is_full());
    if (!lock_try(&lock))
        return;
    note_trimmed(dirty_before);
    lock_release(&lock);
}

void upkeep_look(thread_cache_t *cache)
{
    uint64_t now_ms = os_clock_ms();
    bool is_slow = now_ms - cache->looked_ms >= PURGE_PERIOD_MS;
    thread_cache_tell(cache);
    if (UNLIKELY(upkeep_observer != NULL))
        count_misses(cache);
    cache->upkeep_in = cache->upkeep_from = is_slow ? 1 : MISSES_BETWEEN_LOOKS;
    cache->looked_ms = now_ms;
    if (now_ms - cache->trimmed_ms >= TRIM_PERIOD_MS) {
        cache->trimmed_ms = now_ms;
        trim_own(cache);
    }
    if (now_ms - cache->spread_ms >= PURGE_PERIOD_MS) {
        cache->spread_ms = now_ms;
        thread_cache_trim_sparse(cache);
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
    if (!options.junk) /* freed blocks have to hold what the debug mode left there */
        purged += central_lists_purge_all_pages();
    lock_release(&lock);
    return purged;
}

/* ---- the kernel has refused ---- */

/* Caches that upkeep_gather may take blocks from: the thread's own, and those of ended threads. */
#define CACHES_MOST (1 + ORPHANS_MOST)

/* Units of entirely free slabs that the class could have at most, once its blocks in depots and in
 * some caches have come back. */
static size_t idle_slab_units(unsigned class)
{
    const size_class_t *shape = &size_classes[class];
    central_statistics_t central = central_list_statistics(class);
    size_t out = central.block_count - central.free_count;
    /* Each cache has a bin and a spare. */
    size_t bin_most = options.learn ? BIN_MOST : shape->bin_max; /* learning may have changed it */
    size_t cached = depot_block_count(class) + CACHES_MOST * 2 * bin_most;
    size_t idle = central.free_count + smaller_of(cached, out);
    return idle / shape->block_count * shape->unit_count;
}

/* Never less than what is idle: a guess that is too high costs a vain attempt. */
static size_t idle_bytes(void)
{
    size_t units = span_cache_units();
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        units += idle_slab_units(class);
    for (unsigned number = 0; number < page_heaps_now(); number++) {
        const page_heap_t *heap = &page_heaps[number];
        size_t mapped = count_read(&heap->mapped_units);
        units += mapped - smaller_of(mapped, count_read(&heap->used_units));
    }
    return (units << UNIT_SHIFT) + huge_cached_size();
}

/* Would the kernel map `size` bytes if `given_back` others were unmapped first? It is asked for the
 * difference. */
static bool could_be_mapped(size_t size, size_t given_back)
{
    if (size <= given_back)
        return true;
    return huge_could_map(size - given_back);
}

/* Without memory for descriptors free pages are of no use: some become that memory, for good. */
static void feed_meta(void)
{
    for (size_t unit_count = META_FED >> UNIT_SHIFT; unit_count != 0; unit_count /= 2)
        for (unsigned number = 0; number < page_heaps_now() && meta_is_short(); number++) {
            void *start = page_heap_give_up(number, unit_count);
            if (start != NULL)
                meta_add(start, unit_count << UNIT_SHIFT);
        }
}

bool upkeep_gather(size_t size)
{
    /* More than twice the machine's memory: that is not worth a system call. */
    if (size > window_unit_limit << UNIT_SHIFT)
        return false;
    counter_add(&refusals, 1);
    lock_acquire(&lock);
    bool is_worth_it = could_be_mapped(size, idle_bytes());
    if (is_worth_it) {
        let_go(os_clock_ms());
        feed_meta();
    }
    lock_release(&lock);
    /* Whatever came of it, or of another thread's turn before ours, is worth another try. */
    return is_worth_it;
}

bool upkeep_unmap(size_t size)
{
    size_t idle = huge_cached_size();
    for (unsigned number = 0; number < page_heaps_now(); number++)
        idle += page_heap_releasable(number);
    if (idle == 0)
        return false;
    lock_acquire(&lock);
    bool is_worth_it = !page_map_is_refused() && could_be_mapped(size, idle);
    if (is_worth_it)
        unmap_idle(SIZE_MAX);
    lock_release(&lock);
    return is_worth_it;
}

bool upkeep_reclaim(size_t size)
{
    return upkeep_gather(size) && upkeep_unmap(size);
}

void upkeep_at_fork(fork_phase_t phase)
{
    lock_at_fork(&lock, phase);
}
