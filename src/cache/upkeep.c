/* Upkeep. See upkeep.h. */
#include "cache/upkeep.h"

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "base/count.h"
#include "cache/depot.h"
#include "os/lock.h"
#include "os/meta.h"
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

/* 256 KiB describe 64 to 128 MiB of slabs; less will do where there is less. */
#define META_UNITS (256 * KIB >> UNIT_SHIFT)

static lock_t lock = LOCK_INITIAL(LOCK_UPKEEP);
static uint64_t purged_ms;
static uint64_t trimmed_ms;

/* In the checked build. The caller holds the lock, so no span is on its way to the kernel. */
static void check_laws(void)
{
    MUST(depots_are_valid());
    MUST(central_lists_are_valid());
    MUST(span_cache_is_valid());
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        MUST(page_heap_is_valid((page_heap_kind_t)kind));
}

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
        if (config_checked)
            check_laws();
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
    size_t cached = depot_block_count(class) + CACHES_MOST * 2 * shape->bin_max;
    size_t idle = central.free_count + smaller_of(cached, out);
    return idle / shape->block_count * shape->unit_count;
}

/* Never less than what is idle: a guess that is too high costs a vain attempt. */
static size_t idle_bytes(void)
{
    size_t units = span_cache_units();
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        units += idle_slab_units(class);
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++) {
        const page_heap_t *heap = &page_heaps[kind];
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
    for (size_t unit_count = META_UNITS; unit_count != 0; unit_count /= 2)
        for (unsigned kind = 0; kind < HEAP_COUNT && meta_is_short(); kind++) {
            void *start = page_heap_give_up((page_heap_kind_t)kind, unit_count);
            if (start != NULL)
                meta_add(start, unit_count << UNIT_SHIFT);
        }
}

bool upkeep_gather(size_t size)
{
    /* More than twice the machine's memory: that is not worth a system call. */
    if (size > window_unit_limit << UNIT_SHIFT)
        return false;
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
    for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
        idle += page_heap_releasable((page_heap_kind_t)kind);
    if (idle == 0)
        return false;
    lock_acquire(&lock);
    bool is_worth_it = !page_map_is_refused() && could_be_mapped(size, idle);
    if (is_worth_it) {
        huge_release_cached(UINT64_MAX);
        for (unsigned kind = 0; kind < HEAP_COUNT; kind++)
            page_heap_release((page_heap_kind_t)kind);
    }
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
