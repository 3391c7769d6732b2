/* Everything idle goes, at once. See reclaim.h. */
#include "upkeep/reclaim.h"

#include "base/bits.h"
#include "base/count.h"
#include "cache/depot.h"
#include "cache/thread_cache.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"
#include "slab/central_list.h"
#include "large/huge.h"
#include "heap/page_heap.h"
#include "upkeep/holders.h"
#include "upkeep/purge.h"
#include "heap/span_cache.h"

static lock_t reclaim_lock = LOCK_INITIAL(LOCK_RECLAIM);

size_t reclaim_all(void)
{
    uint64_t now_ms = os_clock_ms();
    holders_let_go(now_ms);
    size_t purged = purge_everything(now_ms) + huge_release_cached();
    if (!options.junk) /* freed blocks have to hold what the debug mode left there */
        purged += central_lists_purge_all_pages();
    return purged;
}

/* ---- the kernel has refused ---- */

void reclaim_addresses(size_t size)
{
    span_cache_trim(UINT64_MAX, os_clock_ms());
    size -= smaller_of(size, huge_release_cached());
    (void)page_heap_release(size);
}

/* Units of entirely free slabs that the class could have at most, once its blocks in depots and in
 * so many caches have come back. */
static size_t reclaim_idle_slab_units(unsigned class, size_t caches)
{
    const size_class_t *shape = &size_classes[class];
    central_statistics_t central = central_list_statistics(class);
    size_t out = central.block_count - central.free_count;
    /* Each cache has a bin and a spare. */
    size_t cached = depot_block_count(class) + caches * 2 * shape->bin_max;
    size_t idle = central.free_count + smaller_of(cached, out);
    return idle / shape->block_count * shape->unit_count;
}

/* Never less than what is idle: a guess that is too high costs a vain attempt. */
static size_t reclaim_idle_bytes(void)
{
    size_t units = span_cache_units();
    size_t caches = 1 + thread_caches_count().orphans; /* the thread's own, those of ended ones */
    for (unsigned class = 1; class < size_classes_made(); class++)
        units += reclaim_idle_slab_units(class, caches);
    size_t mapped = count_read(&page_heap.mapped_units);
    units += mapped - smaller_of(mapped, count_read(&page_heap.used_units));
    return (units << UNIT_SHIFT) + huge_cached_size();
}

/* Would the kernel map `size` bytes if `given_back` others were unmapped first? The kernel is asked
 * for the difference. */
static bool reclaim_could_be_mapped(size_t size, size_t given_back)
{
    if (size <= given_back)
        return true;
    return huge_could_map(size - given_back);
}

/* Without memory for descriptors free pages are of no use: some become that memory, for good. At a
 * limit of address space or data, programs would get few blocks of other sizes from what they have
 * freed (test_what_one_size_has_left_serves_another). */
static void reclaim_feed_meta(void)
{
    size_t unit_count = META_FED >> UNIT_SHIFT;
    for (; unit_count != 0 && meta_is_short(); unit_count /= 2) {
        void *start = page_heap_give_up(unit_count);
        if (start != NULL)
            meta_add(start, unit_count << UNIT_SHIFT);
    }
}

bool reclaim_gather(size_t size)
{
    /* More than twice the machine's memory: not worth a system call. */
    if (size > window_tables.unit_limit << UNIT_SHIFT)
        return false;
    lock_acquire(&reclaim_lock);
    bool is_worth_it = reclaim_could_be_mapped(size, reclaim_idle_bytes());
    if (is_worth_it) {
        holders_let_go(os_clock_ms());
        reclaim_feed_meta();
    }
    lock_release(&reclaim_lock);
    /* Whatever came of it, or of another thread's turn before ours, is worth another try. */
    return is_worth_it;
}

bool reclaim_unmap(size_t size)
{
    size_t idle = huge_cached_size() + page_heap_releasable();
    if (idle == 0)
        return false;
    lock_acquire(&reclaim_lock);
    bool is_worth_it = !page_map_is_refused() && reclaim_could_be_mapped(size, idle);
    lock_release(&reclaim_lock);
    if (is_worth_it)
        reclaim_addresses(SIZE_MAX);
    return is_worth_it;
}

bool reclaim_any(size_t size)
{
    return reclaim_gather(size) && reclaim_unmap(size);
}

void reclaim_at_fork(fork_phase_t phase)
{
    lock_at_fork(&reclaim_lock, phase);
}
