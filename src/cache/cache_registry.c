/* All thread caches: which thread has which. A cache goes from a thread that ends to the next that
 * begins; its bins go into the TLS of the thread and out again. See thread_cache.h. */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "cache/thread_cache.h"
#include "os/meta.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"

extern const thread_cache_t empty_thread_cache;
const thread_cache_t empty_thread_cache; /* room for no block of any class */

#define EMPTY_CACHE ((thread_cache_t *)(uintptr_t)&empty_thread_cache)

_Thread_local thread_cache_t *thread_cache_own = EMPTY_CACHE;
_Thread_local bin_t thread_bins[CLASS_COUNT] = {[0 ... CLASS_COUNT - 1] = {EMPTY_TOP}};

const magazine_t empty_magazine
    __attribute__((aligned(MAGAZINE_SIZE))) = {.slots = {[0] = EMPTY_TOP}};

/* The thread has given its cache back and is on its way out: the thread gets no other cache. */
static _Thread_local bool thread_is_ending;

/* thread_caches.lock protects all but `behind_exit`. */
static struct {
    list_node_t caches;      /* all of them, the orphans too */
    size_t count;            /* of those that share what all may hold */
    thread_cache_t *orphans; /* last in, first out: the warmest first */
    size_t orphan_count;
    size_t left_count;       /* of those that forks have left out of use */
    void (*behind_exit)(void); /* called when a thread has given its cache back; written once */
} registry_state;

void thread_cache_publish(thread_cache_t *cache)
{
    shared_total_publish(&thread_caches.total, &cache->published_bytes, cache->held_bytes,
                         THREAD_CACHES_MOST / THREAD_CACHE_LEAST);
}

/* Does the cache have a share of what all may hold? The caller holds the lock. */
static void cache_count(thread_cache_t *cache, bool has_share)
{
    registry_state.count += (size_t)has_share - cache->has_share;
    cache->has_share = has_share;
    size_t share = THREAD_CACHES_MOST / larger_of(registry_state.count, 1);
    size_t most = smaller_of(larger_of(share, THREAD_CACHE_LEAST), THREAD_CACHE_MOST);
    __atomic_store_n(&thread_caches.most_bytes, most, __ATOMIC_RELAXED);
}

/* ---- a thread ends ---- */

static void cache_destroy(thread_cache_t *cache)
{
    thread_cache_trim(cache, true);
    shared_total_withdraw(&thread_caches.total, &cache->published_bytes);
    lock_acquire(&thread_caches.lock);
    list_remove(&cache->node);
    cache_count(cache, false);
    lock_release(&thread_caches.lock);
    meta_free(cache, sizeof *cache);
}

/* The bins go back into the cache, and the thread has none. Each by an exchange, after the cache
 * has gone: a signal handler that allocates or frees meanwhile finds a whole bin, or misses and
 * is served by the slabs. The caller holds the lock: who counts blocks looks into the thread. */
static void cache_move_out(thread_cache_t *cache)
{
    thread_cache_own = EMPTY_CACHE;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        bin_t *bin = &thread_bins[class];
        cache->kept[class] = *bin;
        if (bin->top != EMPTY_TOP) /* what is empty stays so without a cache */
            cache->kept[class].top = __atomic_exchange_n(&bin->top, EMPTY_TOP, __ATOMIC_RELAXED);
    }
    cache->bins = cache->kept;
    cache->has_exit_hook = false;
}

/* The caller holds the lock. */
static void cache_push_orphan(thread_cache_t *cache)
{
    cache->orphaned_ms = os_clock_ms();
    cache->next = registry_state.orphans;
    registry_state.orphans = cache;
    registry_state.orphan_count++;
    cache->is_orphan = true;
}

/* A server that starts a thread per request would else fill and empty a cache with each. */
static bool cache_orphan(thread_cache_t *cache)
{
    lock_acquire(&thread_caches.lock);
    cache_move_out(cache);
    bool has_room = registry_state.orphan_count < ORPHANS_MOST;
    if (has_room)
        cache_push_orphan(cache);
    lock_release(&thread_caches.lock);
    return has_room;
}

static void cache_at_thread_exit(void *value)
{
    thread_cache_t *cache = value;
    thread_is_ending = true;
    if (!cache_orphan(cache))
        cache_destroy(cache);
    registry_state.behind_exit();
}

void thread_caches_trim_orphans(uint64_t limit_ms)
{
    lock_acquire(&thread_caches.lock);
    thread_cache_t **cut = &registry_state.orphans;
    while (*cut != NULL && (*cut)->orphaned_ms >= limit_ms)
        cut = &(*cut)->next;
    thread_cache_t *leaving = *cut;
    *cut = NULL;
    for (thread_cache_t *cache = leaving; cache != NULL; cache = cache->next) {
        registry_state.orphan_count--;
        cache->is_orphan = false;
    }
    lock_release(&thread_caches.lock);
    while (leaving != NULL) {
        thread_cache_t *cache = leaving;
        leaving = cache->next;
        cache_destroy(cache);
    }
}

/* ---- a thread begins ---- */

void thread_caches_create(void (*behind_exit)(void))
{
    ptrdiff_t origin = thread_space_distance(thread_bins);
    class_offset_origin = (class_offset_t)origin;
    MUST(class_offset_origin == origin);
    list_init(&registry_state.caches);
    registry_state.behind_exit = behind_exit;
    (void)os_prepare_thread_exit(cache_at_thread_exit);
}

static thread_cache_t *cache_adopt(void)
{
    lock_acquire(&thread_caches.lock);
    thread_cache_t *cache = registry_state.orphans;
    if (cache != NULL) {
        registry_state.orphans = cache->next;
        registry_state.orphan_count--;
        cache->is_orphan = false;
        if (!cache->has_share) /* a fork has made it an orphan */
            cache_count(cache, true);
    }
    lock_release(&thread_caches.lock);
    return cache;
}

bool thread_cache_comes_to_hold(thread_cache_t *cache, unsigned class)
{
    if (!thread_cache_holds(cache, class) && !thread_cache_is_empty_cache(cache))
        thread_cache_heed_classes(cache);
    return thread_cache_holds(cache, class);
}

/* The bins of the cache become those of the thread, which had none. A signal handler that looks
 * between finds no cache yet. */
static void cache_move_in(thread_cache_t *cache)
{
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        thread_bins[class] = cache->kept[class];
    /* relaxed: pairs with the load in cache_bins_of, which finds either the bins or what they were
     */
    __atomic_store_n(&cache->bins, thread_bins, __ATOMIC_RELAXED);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread_cache_own = cache;
}

_Static_assert(sizeof(thread_cache_t) <= META_MOST, "meta_alloc has them");

static thread_cache_t *cache_create(void)
{
    thread_cache_t *cache = meta_alloc(sizeof *cache);
    if (cache == NULL)
        return NULL;
    thread_cache_prepare(cache);
    lock_acquire(&thread_caches.lock);
    list_push_back(&registry_state.caches, &cache->node);
    cache_count(cache, true);
    lock_release(&thread_caches.lock);
    return cache;
}

thread_cache_t *thread_cache_provide(void)
{
    thread_cache_t *cache = thread_cache_own;
    if (!thread_cache_is_empty_cache(cache) || thread_is_ending || options_want_every_call())
        return cache;
    thread_cache_t *own = cache_adopt();
    if (own == NULL)
        own = cache_create();
    if (own == NULL)
        return cache;
    own->trimmed_ms = own->looked_ms = os_clock_ms();
    /* Before the call below, which may allocate. */
    cache_move_in(own);
    own->has_exit_hook = os_call_at_thread_exit(own);
    return own;
}

/* ---- looks from outside ---- */

/* Where others may read the bins of a cache. The caller holds the lock, so a thread with a hook has
 * not ended. But a hook is of no use to a thread that gets its cache in the last round of its
 * destructors, and there may be no room for one. In both cases the memory of the thread may be
 * gone, and `kept`, the bins that the thread began with, has to serve. */
__attribute__((no_sanitize("thread"))) static const bin_t *
cache_bins_of(const thread_cache_t *cache)
{
    const bin_t *bins = __atomic_load_n(&cache->bins, __ATOMIC_RELAXED);
    if (bins == cache->kept || cache == thread_cache_own)
        return bins;
    return cache->has_exit_hook && os_is_readable(bins) ? bins : cache->kept;
}

/* Not for ThreadSanitizer: the owners write plainly what is read here, on the hit path. */
__attribute__((no_sanitize("thread"))) void thread_caches_count_blocks(uint32_t counts[CLASS_COUNT])
{
    memset(counts, 0, CLASS_COUNT * sizeof *counts);
    lock_acquire(&thread_caches.lock);
    for (list_node_t *node = registry_state.caches.next; node != &registry_state.caches;
         node = node->next) {
        const thread_cache_t *cache = LIST_ITEM(node, thread_cache_t, node);
        const bin_t *bins = cache_bins_of(cache); /* may ask the kernel: once */
        for (unsigned class = 1; class < CLASS_COUNT; class++) {
            /* The owner may be at work; a pointer is read whole, and counts need not add up. */
            bin_t bin = {__atomic_load_n(&bins[class].top, __ATOMIC_RELAXED)};
            const magazine_t *spare = __atomic_load_n(&cache->spares[class], __ATOMIC_RELAXED);
            size_t count = bin_count(&bin);
            if (spare != NULL)
                count += __atomic_load_n(&spare->count, __ATOMIC_RELAXED);
            counts[class] += (uint32_t)count;
        }
    }
    lock_release(&thread_caches.lock);
}

thread_cache_counts_t thread_caches_count(void)
{
    lock_acquire(&thread_caches.lock);
    thread_cache_counts_t counts = {.shared = registry_state.count,
                                    .orphans = registry_state.orphan_count,
                                    .left_by_forks = registry_state.left_count};
    lock_release(&thread_caches.lock);
    return counts;
}

void thread_caches_visit_orphans(void (*visit)(const thread_cache_t *cache, void *context),
                                 void *context)
{
    if (!lock_try_at_exit(&thread_caches.lock))
        return;
    for (const thread_cache_t *cache = registry_state.orphans;
         cache != NULL && cache->orphaned_ms != ORPHANED_TO_GO; cache = cache->next)
        visit(cache, context);
    lock_release(&thread_caches.lock);
}

/* ---- fork ----
 *
 * The child has the memory of its parent as it was at one moment, and one thread of it. Of each
 * other thread that memory has all stores up to some instruction, in the order of the program, and
 * none behind it: the kernel makes pages read-only while the thread runs, and the first store that
 * is refused waits for the end of the fork. Hence, in the child,
 *
 *   - a cache that is not entered is whole, for `is_entered` is stored before anything that a miss
 *     changes, and again behind it;
 *   - a bin is whole wherever a hit was. A pop changes `top` alone: before that store the block is
 *     in the bin and its thread is gone, behind it the block has left. A push writes the slot above
 *     the top first: until `top` moves, the bin does not have the block. A block in hand may thus
 *     be lost, as what else the thread had in hand is, and none is in two places. */

/* Are these bins those of a thread that has the cache? A thread that gets its cache in the last
 * round of its destructors leaves it behind, and the next thread may have the same memory. */
__attribute__((no_sanitize("thread"))) static bool cache_have_owner(const bin_t *bins,
                                                                    const thread_cache_t *cache)
{
    /* volatile: GNU ld 2.40 cannot link the difference of two such addresses */
    const char *volatile own_bins = (const char *)thread_bins;
    ptrdiff_t distance = (const char *)&thread_cache_own - own_bins;
    const void *own = (const char *)bins + distance;
    return __atomic_load_n((thread_cache_t *const *)own, __ATOMIC_RELAXED) == cache;
}

/* The cache stays as it is. A child of the child does not count it again. */
static void cache_leave_out(thread_cache_t *cache)
{
    registry_state.left_count += cache->has_share;
    cache_count(cache, false);
    shared_total_withdraw(&thread_caches.total, &cache->published_bytes);
}

/* The cache, which is in the memory of a thread that the child does not have, becomes an orphan, if
 * it is whole. The next thread may have that memory, and the bins leave it first. */
__attribute__((no_sanitize("thread"))) static void cache_survive(thread_cache_t *cache)
{
    const bin_t *bins = cache_bins_of(cache);
    bool is_whole = bins != cache->kept && cache_have_owner(bins, cache) && !cache->is_entered;
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        cache->kept[class] = bins[class];
    cache->bins = cache->kept;
    cache->has_exit_hook = false;
    if (!is_whole) {
        cache_leave_out(cache);
        return;
    }
    cache_count(cache, false); /* threads that are not there leave the others their share */
    cache_push_orphan(cache);
}

/* More orphans than may wait go when upkeep looks next, and not here: a child that soon becomes
 * another program, or reads what it has, need not copy the pages of their slabs. */
static void caches_survive(void)
{
    for (list_node_t *node = registry_state.caches.next; node != &registry_state.caches;
         node = node->next) {
        thread_cache_t *cache = LIST_ITEM(node, thread_cache_t, node);
        /* relaxed: as in cache_bins_of */
        const bin_t *bins = __atomic_load_n(&cache->bins, __ATOMIC_RELAXED);
        if (cache->is_orphan || bins == thread_bins)
            continue;
        if (bins != cache->kept)
            cache_survive(cache);
        else /* on its way to a thread or out of one; it may be the one that has called fork */
            cache_leave_out(cache);
    }
    size_t place = 0;
    for (thread_cache_t *cache = registry_state.orphans; cache != NULL; cache = cache->next)
        if (place++ >= ORPHANS_MOST)
            cache->orphaned_ms = ORPHANED_TO_GO;
}

void thread_caches_at_fork(fork_phase_t phase)
{
    if (phase == FORK_CHILD)
        caches_survive();
    lock_at_fork(&thread_caches.lock, phase);
}
