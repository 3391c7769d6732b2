/* Blocks of idle threads. See idle_cache.h.
 *
 * A thread that waits keeps its cache, and each block in there keeps a page. No other thread can
 * pop a bin: its thread does so with plain loads and stores at any moment. But a bin ends where a
 * slot is NULL, and another thread may write that NULL. Hence the ends are what is changed here:
 *
 *   1. The cache is marked as being reclaimed. Behind a barrier in all threads the owner is either
 *      seen to be at work beyond a hit, and is left alone, or finds the mark before it begins.
 *   2. Two blocks, the third and fourth from the top, are exchanged for NULL.
 *   3. Behind another barrier the owner has at most one pop under way that has not seen that. If
 *      its top is still above both, and the lower NULL still stands, it cannot come to what is
 *      below: that can be taken, and the block of the lower NULL too.
 *   4. The block of the upper NULL stays with the owner, in the marks. At its next miss it puts it
 *      back, if the NULL still stands below the top; else the owner has popped it.
 *
 * A hit costs the owner nothing, then, and the first miss afterwards a look at its marks. The
 * barrier is membarrier(2): an interrupt for each processor that runs a thread of the process.
 * tests/concurrency/idle_cache.pml checks this. (Our own; barriers that one side pays: Dice, Huang
 * and Yang, "Asymmetric Dekker synchronization", 2001.) */
#include "upkeep/idle_cache.h"

#include <string.h>

#include "cache/depot.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/tuning.h"
#include "slab/central_list.h"

/* Blocks on top that are left alone: a second free of one of them is found at once, as ever. */
#define ON_TOP 2

/* Blocks below those that are worth it: two stand under the marks. */
#define LEAST_COUNT 3

/* Blocks of one class that have left a cache and are on their way to the slabs. */
typedef struct reclaimed {
    unsigned count;
    void *blocks[MAGAZINE_SLOTS];
    magazine_t *spare;
} reclaimed_t;

/* The caller of idle_caches_reclaim has this state to itself: one thread at a time calls. */
static struct {
    reclaimed_t reclaimed[CLASS_COUNT];
    uint64_t round; /* number of the current round of visits */
    bool has_more;  /* the round has not visited every cache yet */
} idle_cache_state SPARSE;

/* The owner writes plainly what is read and exchanged here, hence not for ThreadSanitizer. */
#define OWNER_WRITES __attribute__((no_sanitize("thread")))

OWNER_WRITES static void **idle_cache_top_of(const bin_t *bins, unsigned class)
{
    return __atomic_load_n(&bins[class].top, __ATOMIC_RELAXED);
}

OWNER_WRITES bool idle_cache_is_worth_it(thread_cache_t *cache, const bin_t *bins)
{
    uintptr_t tops = 0;
    size_t bytes = 0;
    for (unsigned class = 1; class < size_classes_made(); class++) {
        bin_t bin = {idle_cache_top_of(bins, class)};
        const magazine_t *spare = __atomic_load_n(&cache->spares[class], __ATOMIC_RELAXED);
        size_t count = thread_cache_bin_count(cache, class, bin.top);
        tops += (uintptr_t)bin.top * class;
        if (spare != NULL)
            count += __atomic_load_n(&spare->count, __ATOMIC_RELAXED);
        bytes += count * size_classes[class].size;
    }
    bool is_idle = cache->tops == tops;
    cache->tops = tops;
    return is_idle && bytes >= IDLE_CACHE_WORTH_IT && cache->reclaim == RECLAIM_NONE;
}

OWNER_WRITES static void idle_cache_mark(idle_marks_t *marks, const bin_t *bins, unsigned class)
{
    bin_t bin = {idle_cache_top_of(bins, class)};
    size_t count = bin_count(&bin);
    if (count < ON_TOP + LEAST_COUNT)
        return;
    count -= ON_TOP;
    void **slots = bin_magazine(&bin)->slots;
    marks->upper[class] = __atomic_exchange_n(&slots[count - 1], NULL, __ATOMIC_SEQ_CST);
    marks->lower[class] = __atomic_exchange_n(&slots[count - 2], NULL, __ATOMIC_SEQ_CST);
    marks->counts[class] = (uint8_t)count;
}

/* Is the owner's top above both marks? */
OWNER_WRITES static bool idle_cache_is_above(const idle_marks_t *marks, const bin_t *bins,
                                             unsigned class)
{
    bin_t bin = {idle_cache_top_of(bins, class)};
    return marks->counts[class] != 0 && bin_count(&bin) >= marks->counts[class];
}

/* The owner was above both marks. Takes what it cannot come to any more, if the lower mark still
 * stands. */
OWNER_WRITES static void idle_cache_take(idle_marks_t *marks, const bin_t *bins, unsigned class)
{
    size_t count = marks->counts[class];
    bin_t bin = {idle_cache_top_of(bins, class)};
    void **slots = bin_magazine(&bin)->slots;
    if (__atomic_load_n(&slots[count - 2], __ATOMIC_RELAXED) != NULL)
        return;
    void **blocks = idle_cache_state.reclaimed[class].blocks;
    memcpy(blocks, slots, (count - 2) * sizeof *blocks);
    blocks[count - 2] = marks->lower[class];
    /* Nowhere twice: the owner may look through its bins at the end of the process. */
    memset(slots, 0, (count - 2) * sizeof *slots);
    marks->taken[class] = true;
    idle_cache_state.reclaimed[class].count = (unsigned)count - 1;
}

static void idle_cache_mark_and_take(thread_cache_t *cache, const bin_t *bins)
{
    bool were_above[CLASS_COUNT];
    unsigned end = size_classes_made(); /* one that is made meanwhile waits */
    for (unsigned class = 1; class < end; class++)
        idle_cache_mark(cache->marks, bins, class);
    if (!os_barrier_in_all())
        return;
    for (unsigned class = 1; class < end; class++)
        were_above[class] = idle_cache_is_above(cache->marks, bins, class);
    /* A processor may show a top before the blocks that were pushed below it (not x86-64). */
    if (!os_barrier_in_all())
        return;
    for (unsigned class = 1; class < end; class++) {
        if (were_above[class])
            idle_cache_take(cache->marks, bins, class);
        idle_cache_state.reclaimed[class].spare = thread_cache_take_spare(cache, class);
    }
}

void idle_cache_reclaim(thread_cache_t *cache, const bin_t *bins)
{
    if (cache->marks == NULL) /* release: pairs with the acquire in thread_cache_bin_count */
        __atomic_store_n(&cache->marks, meta_alloc(sizeof *cache->marks), __ATOMIC_RELEASE);
    if (cache->marks == NULL)
        return;
    __atomic_store_n(&cache->reclaim, RECLAIM_UNDER_WAY, __ATOMIC_RELAXED);
    /* acquire: pairs with the release in cache_leave; what the owner has done there is seen here */
    if (!os_barrier_in_all() || __atomic_load_n(&cache->is_entered, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&cache->reclaim, RECLAIM_NONE, __ATOMIC_RELEASE);
        return;
    }
    idle_cache_mark_and_take(cache, bins);
    shared_total_withdraw(&thread_caches.total, &cache->published_bytes); /* little is left */
    /* release: pairs with the acquire in cache_enter; the owner sees the marks */
    __atomic_store_n(&cache->reclaim, RECLAIM_DONE, __ATOMIC_RELEASE);
}

void idle_cache_give(void)
{
    for (unsigned class = 1; class < size_classes_made(); class++) {
        magazine_t *spare = idle_cache_state.reclaimed[class].spare;
        unsigned count = idle_cache_state.reclaimed[class].count;
        idle_cache_state.reclaimed[class].count = 0;
        idle_cache_state.reclaimed[class].spare = NULL;
        if (count != 0)
            central_list_give_idle(class, idle_cache_state.reclaimed[class].blocks, count);
        if (spare == NULL)
            continue;
        central_list_give_idle(class, spare->slots, (unsigned)spare->count);
        spare->count = 0;
        magazine_destroy(spare);
    }
}

static bool idle_cache_reclaim_one(thread_cache_t *cache, const bin_t *bins)
{
    bool is_idle = idle_cache_is_worth_it(cache, bins);
    if (is_idle)
        idle_cache_reclaim(cache, bins);
    return is_idle;
}

void idle_caches_reclaim(unsigned most, bool may_begin)
{
    if (!idle_cache_state.has_more && !may_begin)
        return;
    idle_cache_state.round += !idle_cache_state.has_more;
    idle_cache_state.has_more = true;
    for (; most != 0 && idle_cache_state.has_more; most--) {
        idle_cache_state.has_more =
            thread_caches_visit_others(idle_cache_state.round, idle_cache_reclaim_one);
        /* Not under the lock: threads begin and end, and the program's handlers may run. */
        idle_cache_give();
    }
}
