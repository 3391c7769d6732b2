/* All thread caches: which thread has which. A cache goes from a thread that ends to the next that
 * begins; its bins go into the TLS of the thread and out again. See thread_cache.h. */
#include <string.h>

#include "base/assert.h"
#include "base/bits.h"
#include "cache/thread_cache.h"
#include "os/meta.h"
#include "os/os.h"
#include "os/processors.h"
#include "options/options.h"
#include "options/tuning.h"
#include "heap/page_heap.h"

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
    size_t count;            /* of `caches` */
    thread_cache_t *orphans; /* last in, first out: the warmest first */
    unsigned orphan_count;
    void (*behind_exit)(void); /* called when a thread has given its cache back; written once */
} registry_state;

static void cache_publish(const thread_cache_t *shown, void *context)
{
    thread_cache_t *cache = context;
    shared_total_publish(&thread_caches.total, &cache->published_bytes, shown->held_bytes,
                         THREAD_CACHES_MOST / THREAD_CACHE_LEAST);
}

void thread_cache_publish(thread_cache_t *cache)
{
    (void)thread_cache_show(cache, cache_publish, cache);
}

/* There are so many more caches. The caller holds the lock. */
static void caches_count(size_t more)
{
    registry_state.count += more;
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
    caches_count((size_t)-1);
    lock_release(&thread_caches.lock);
    if (cache->marks != NULL)
        meta_free(cache->marks, sizeof *cache->marks);
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

/* A server that starts a thread per request would else fill and empty a cache with each. */
static bool cache_orphan(thread_cache_t *cache)
{
    lock_acquire(&thread_caches.lock);
    if (cache->reclaim != RECLAIM_NONE) /* not under way: that has the lock */
        thread_cache_repair(cache);
    cache_move_out(cache);
    bool has_room = registry_state.orphan_count < ORPHANS_MOST;
    if (has_room) {
        cache->orphaned_ms = os_clock_ms();
        cache->next = registry_state.orphans;
        registry_state.orphans = cache;
        registry_state.orphan_count++;
    }
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
    for (thread_cache_t *cache = leaving; cache != NULL; cache = cache->next)
        registry_state.orphan_count--;
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
    }
    lock_release(&thread_caches.lock);
    return cache;
}

bool thread_cache_comes_to_hold(thread_cache_t *cache, unsigned class)
{
    if (!thread_cache_holds(cache, class) && !thread_cache_is_empty_cache(cache))
        thread_cache_heed_limits(cache);
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

_Static_assert(sizeof(thread_cache_t) <= META_MOST && sizeof(idle_marks_t) <= META_MOST,
               "meta_alloc has them");

static thread_cache_t *cache_create(void)
{
    thread_cache_t *cache = meta_alloc(sizeof *cache);
    if (cache == NULL)
        return NULL;
    thread_cache_prepare(cache);
    lock_acquire(&thread_caches.lock);
    list_push_back(&registry_state.caches, &cache->node);
    caches_count(1);
    /* Under the lock: not in the midst of a fork. */
    if (registry_state.count >= GROUPS_FROM_THREADS)
        processors_split((unsigned)options.processor_groups);
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
    return cache->has_exit_hook && os_is_mapped(bins) ? bins : cache->kept;
}

/* Not for ThreadSanitizer: the owners write plainly what is read here, on the hit path. */
__attribute__((no_sanitize("thread"))) void thread_caches_count_blocks(size_t counts[CLASS_COUNT])
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
            counts[class] += thread_cache_bin_count(cache, class, bin.top);
            if (spare != NULL)
                counts[class] += __atomic_load_n(&spare->count, __ATOMIC_RELAXED);
        }
    }
    lock_release(&thread_caches.lock);
}

/* ---- idle threads ---- */

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

bool thread_caches_visit_others(uint64_t round,
                                bool (*visit)(thread_cache_t *cache, const bin_t *bins))
{
    bool is_found = false;
    lock_acquire(&thread_caches.lock);
    for (list_node_t *node = registry_state.caches.next;
         node != &registry_state.caches && !is_found; node = node->next) {
        thread_cache_t *cache = LIST_ITEM(node, thread_cache_t, node);
        if (cache->round == round || cache == thread_cache_own)
            continue;
        cache->round = round;
        const bin_t *bins = cache_bins_of(cache);
        is_found = bins != cache->kept && cache_have_owner(bins, cache) && visit(cache, bins);
    }
    lock_release(&thread_caches.lock);
    return is_found;
}

size_t thread_caches_count(void)
{
    lock_acquire(&thread_caches.lock);
    size_t count = registry_state.count;
    lock_release(&thread_caches.lock);
    return count;
}

void thread_caches_visit_orphans(void (*visit)(const thread_cache_t *cache, void *context),
                                 void *context)
{
    if (!lock_try_at_exit(&thread_caches.lock))
        return;
    for (const thread_cache_t *cache = registry_state.orphans; cache != NULL; cache = cache->next)
        visit(cache, context);
    lock_release(&thread_caches.lock);
}

/* In the child of a fork: the other threads are gone, and their memory serves the next ones. */
__attribute__((no_sanitize("thread"))) static void caches_keep_bins_of_others(void)
{
    for (list_node_t *node = registry_state.caches.next; node != &registry_state.caches;
         node = node->next) {
        thread_cache_t *cache = LIST_ITEM(node, thread_cache_t, node);
        const bin_t *bins = cache_bins_of(cache);
        if (cache == thread_cache_own || bins == cache->kept)
            continue;
        for (unsigned class = 1; class < CLASS_COUNT; class++)
            cache->kept[class] = bins[class];
        cache->bins = cache->kept;
        shared_total_withdraw(&thread_caches.total, &cache->published_bytes);
    }
}

/* Threads that are not there leave the others their share. */
static void caches_count_of_child(void)
{
    registry_state.count = 0;
    caches_count(registry_state.orphan_count +
                 (thread_cache_is_empty_cache(thread_cache_own) ? 0 : 1));
}

void thread_caches_at_fork(fork_phase_t phase)
{
    if (phase == FORK_CHILD) {
        caches_keep_bins_of_others();
        caches_count_of_child();
    }
    lock_at_fork(&thread_caches.lock, phase);
}
