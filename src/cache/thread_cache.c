/* Thread caches: birth, death, refill, flush. See thread_cache.h. */
#include "cache/thread_cache.h"

#include <string.h>

#include "base/assert.h"
#include "cache/depot.h"
#include "os/meta.h"
#include "os/os.h"
#include "policy/options.h"
#include "probe/route.h"
#include "slab/central_list.h"

/* A bin starts with room for 8 blocks, or 4 KiB but at least 2, and doubles when it is full or the
 * slabs fill it: a class of which a program has three blocks costs it next to nothing. */
#define FIRST_CAPACITY 8
#define FIRST_BYTES (4 * KIB)
#define FIRST_LEAST 2

/* What the bins of a thread may grow to, all together. When it is spent, a bin that is full passes
 * its blocks on; disuse returns what it had. */
#define BUDGET (2 * MIB)

/* Classes of 16 to 256 bytes: what prewarm_tls fills. */
#define PREWARMED_CLASSES 16

#define EMPTY_TOP ((void **)(uintptr_t)empty_magazine.slots)

static const magazine_t empty_magazine
    __attribute__((aligned(MAGAZINE_SIZE))) = {.slots = {[0] = EMPTY_TOP}};

extern const thread_cache_t empty_thread_cache;
const thread_cache_t empty_thread_cache; /* room for no block of any class */

#define EMPTY_CACHE ((thread_cache_t *)(uintptr_t)&empty_thread_cache)

_Thread_local thread_cache_t *thread_cache_own = EMPTY_CACHE;
_Thread_local bin_t thread_bins[CLASS_COUNT] = {[0 ... CLASS_COUNT - 1] = {EMPTY_TOP}};

/* The thread has given its cache back and is on its way out: it gets no other. */
static _Thread_local bool thread_is_ending;

static lock_t lock = LOCK_INITIAL(LOCK_THREADS);
static list_node_t caches;
static thread_cache_t *orphans; /* last in, first out: the warmest first */
static unsigned orphan_count;

/* ---- magazines of one bin ---- */

/* The option's range ends where a magazine does. */
enum {
#define OPTION(name, unit, min, max, ...) most_##name = max,
#include "policy/option_table.h"
#undef OPTION
};
_Static_assert(most_tiny_fast_cap == MAGAZINE_SLOTS, "tiny_fast_cap: as many as a magazine holds");

static unsigned largest_capacity(unsigned class)
{
    return (unsigned)smaller_of(size_classes[class].bin_max, (size_t)options.tiny_fast_cap);
}

/* The bin's own magazine, or NULL while it has none. */
static magazine_t *loaded_magazine(const thread_cache_t *cache, unsigned class)
{
    magazine_t *magazine = bin_magazine(&cache->bins[class]);
    return magazine == &empty_magazine ? NULL : magazine;
}

/* Points the bin at a magazine with `magazine->count` blocks. */
static void load(thread_cache_t *cache, unsigned class, magazine_t *magazine)
{
    size_t end = larger_of(cache->capacity[class], magazine->count);
    bin_end_at(&magazine->slots[end]);
    cache->bins[class].top = magazine->slots + magazine->count;
}

/* Takes the spare out, before its blocks go anywhere: a signal handler that calls exit must not
 * find them in two places (thread_cache_verify). */
static magazine_t *take_spare(thread_cache_t *cache, unsigned class)
{
    magazine_t *spare = cache->spares[class];
    cache->spares[class] = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* pairs with the order in which verify looks */
    return spare;
}

/* Takes the bin's magazine out of it, its count written down. */
static magazine_t *unload(thread_cache_t *cache, unsigned class)
{
    magazine_t *magazine = loaded_magazine(cache, class);
    if (magazine != NULL)
        magazine->count = bin_count(&cache->bins[class]);
    cache->bins[class].top = EMPTY_TOP;
    return magazine;
}

/* Settings let bins hold blocks of the class, and let the class serve at all. */
static bool may_be_held(unsigned class)
{
    if (size_classes[class].size > TINY_MAX)
        return options.pool != 0;
    return options.tiny_pool && options.tiny_unified_cache;
}

static uint8_t first_capacity(unsigned class)
{
    if (!may_be_held(class))
        return 0;
    size_t blocks = larger_of(FIRST_BYTES / size_classes[class].size, FIRST_LEAST);
    return (uint8_t)smaller_of(smaller_of(blocks, FIRST_CAPACITY), largest_capacity(class));
}

/* Doubles the bin's capacity; false: it is as large as it may be. */
static bool grow_capacity(thread_cache_t *cache, unsigned class)
{
    size_t old = cache->capacity[class];
    size_t new = smaller_of(old * 2, largest_capacity(class));
    size_t cost = (new - old) * size_classes[class].size;
    if (new == old || cost > cache->budget)
        return false;
    cache->budget -= cost;
    cache->capacity[class] = (uint8_t)new;
    return true;
}

/* Makes the capacity larger than `count`, which a magazine from the depot may bring; false: it may
 * not be. */
static bool grow_above(thread_cache_t *cache, unsigned class, size_t count)
{
    if (count >= largest_capacity(class))
        return false;
    while (cache->capacity[class] <= count)
        if (!grow_capacity(cache, class))
            return false;
    return true;
}

/* Halves the bin's capacity, or makes it what it was at first (`all`). */
static void shrink_capacity(thread_cache_t *cache, unsigned class, bool all)
{
    size_t old = cache->capacity[class];
    size_t new = all ? first_capacity(class) : larger_of(old / 2, first_capacity(class));
    if (new < old)
        cache->budget += (old - new) * size_classes[class].size;
    cache->capacity[class] = (uint8_t)new;
}

/* ---- refill ---- */

/* How many blocks to take from the slabs: what the bin has room for, which then doubles. A bin that
 * is as large as any stays half empty, for what the program gives back: where it takes and gives at
 * random, full bins would only hold more. */
static unsigned refill_count(thread_cache_t *cache, unsigned class)
{
    unsigned room = cache->capacity[class];
    bool has_grown = grow_capacity(cache, class);
    return has_grown || room < largest_capacity(class) ? room : (room + 1) / 2;
}

void *thread_cache_refill(thread_cache_t *cache, unsigned class)
{
    cache->was_used[class] = true;
    magazine_t *empty = unload(cache, class);
    magazine_t *spare = cache->spares[class];
    if (spare != NULL && spare->count != 0) {
        cache->spares[class] = empty;
        load(cache, class, spare);
        route_note(ROUTE_malloc_spare);
        return bin_pop(&cache->bins[class]);
    }
    magazine_t *filled = depot_take(class, empty);
    route_note(filled != NULL ? ROUTE_malloc_depot : ROUTE_malloc_slabs);
    if (filled == NULL) {
        filled = empty != NULL ? empty : magazine_create();
        if (filled == NULL)
            return central_list_take_one(class);
        magazine_fill(filled, class, refill_count(cache, class));
        cache->upkeep_in = 1;
    }
    load(cache, class, filled);
    return bin_pop(&cache->bins[class]);
}

/* ---- flush ---- */

static magazine_t *give_to_depot(thread_cache_t *cache, unsigned class, magazine_t *full)
{
    magazine_t *empty = depot_give(class, full);
    if (empty == full) /* no room there, the blocks went to the slabs */
        cache->upkeep_in = 1;
    return empty;
}

/* An empty magazine in exchange for the full one, which becomes the spare; a spare that was full
 * too goes to the depot. Where there is no memory for a second magazine, the blocks go to the slabs
 * and the same magazine comes back, empty. */
static magazine_t *put_aside(thread_cache_t *cache, unsigned class, magazine_t *full)
{
    magazine_t *spare = take_spare(cache, class);
    magazine_t *empty = spare;
    route_note(spare == NULL || spare->count == 0 ? ROUTE_free_spare : ROUTE_free_depot);
    if (spare == NULL)
        empty = magazine_create();
    else if (spare->count != 0)
        empty = give_to_depot(cache, class, spare);
    if (empty == NULL) {
        central_list_give(class, full->slots, (unsigned)full->count);
        full->count = 0;
        cache->spares[class] = spare;
        return full;
    }
    cache->spares[class] = full;
    return empty;
}

/* Afterwards the bin has room for a block, or no magazine at all: there was no memory for its first
 * one. */
static void make_room(thread_cache_t *cache, unsigned class)
{
    magazine_t *magazine = unload(cache, class);
    if (magazine == NULL) {
        route_note(ROUTE_free_bin_grown);
        magazine = magazine_create();
    } else if (grow_above(cache, class, magazine->count)) {
        route_note(ROUTE_free_bin_grown);
    } else {
        magazine = put_aside(cache, class, magazine);
    }
    if (magazine != NULL)
        load(cache, class, magazine);
}

/* A bin that begins with a free begins with another thread's block, the argument of a new thread
 * for instance, and the blocks of that thread and of its other children lie on the same cache line.
 * So blocks of its own go on top of it. False: no memory, nothing has changed. */
static bool begin_below_own(thread_cache_t *cache, unsigned class, void *block)
{
    magazine_t *magazine = magazine_create();
    if (magazine == NULL)
        return false;
    /* As many as a first refill takes: whole lines, and one more than it has capacity for, so that
     * the next free is a miss and sees the block at the bottom if it is the same. (A bin that was
     * empty when it was trimmed has no magazine, and half of what it had grown to.) */
    shrink_capacity(cache, class, true);
    magazine_fill(magazine, class, cache->capacity[class]);
    memmove(magazine->slots + 1, magazine->slots, magazine->count * sizeof(void *));
    magazine->slots[0] = block;
    magazine->count++;
    load(cache, class, magazine);
    route_note(ROUTE_free_bin_grown);
    return true;
}

void thread_cache_flush(thread_cache_t *cache, unsigned class, void *block)
{
    bool shares_lines = size_classes[class].size < 2 * CACHE_LINE;
    cache->was_used[class] = true;
    if (shares_lines && cache->bins[class].top == EMPTY_TOP && begin_below_own(cache, class, block))
        return;
    make_room(cache, class);
    bin_t *bin = &cache->bins[class];
    if (bin->top == EMPTY_TOP) {
        central_list_give(class, &block, 1);
        return;
    }
    /* Not bin_push: a mark of an earlier capacity may still stand here. */
    *bin->top++ = block;
}

/* ---- trim ---- */

static void spill_spare(thread_cache_t *cache, unsigned class)
{
    magazine_t *spare = take_spare(cache, class);
    if (spare == NULL)
        return;
    central_list_give(class, spare->slots, (unsigned)spare->count);
    spare->count = 0;
    magazine_destroy(spare);
}

/* The blocks at the bottom have not been used for longest: they go first. */
static void spill_bin(thread_cache_t *cache, unsigned class, bool all)
{
    magazine_t *magazine = unload(cache, class);
    shrink_capacity(cache, class, all);
    if (magazine == NULL)
        return;
    size_t leaving = all ? magazine->count : (magazine->count + 1) / 2;
    central_list_give(class, magazine->slots, (unsigned)leaving);
    magazine->count -= leaving;
    memmove(magazine->slots, magazine->slots + leaving, magazine->count * sizeof(void *));
    if (magazine->count == 0)
        magazine_destroy(magazine);
    else
        load(cache, class, magazine);
}

void thread_cache_trim(thread_cache_t *cache, bool all)
{
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        if (all || !cache->was_used[class]) {
            spill_spare(cache, class);
            spill_bin(cache, class, all);
        }
        cache->was_used[class] = false;
    }
    thread_cache_show(cache);
}

/* ---- birth and death ---- */

static void take_apart(thread_cache_t *cache)
{
    thread_cache_trim(cache, true);
    lock_acquire(&lock);
    list_remove(&cache->node);
    lock_release(&lock);
    meta_free(cache, sizeof *cache);
}

/* A server that starts a thread per request would else fill and empty a cache with each. */
static bool orphan(thread_cache_t *cache)
{
    lock_acquire(&lock);
    bool has_room = orphan_count < ORPHANS_MOST;
    if (has_room) {
        cache->orphaned_ms = os_clock_ms();
        cache->next = orphans;
        orphans = cache;
        orphan_count++;
    }
    lock_release(&lock);
    return has_room;
}

static thread_cache_t *adopt(void)
{
    lock_acquire(&lock);
    thread_cache_t *cache = orphans;
    if (cache != NULL) {
        orphans = cache->next;
        orphan_count--;
    }
    lock_release(&lock);
    return cache;
}

/* The bins of the cache become those of the thread, which had none. A signal handler that looks
 * between finds no cache yet. */
static void move_in(thread_cache_t *cache)
{
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        thread_bins[class] = cache->kept[class];
    cache->bins = thread_bins;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    thread_cache_own = cache;
}

/* The bins go back into the cache, and the thread has none. Each by an exchange, after the cache
 * has gone: a signal handler that allocates or frees meanwhile finds a whole bin, or misses and
 * is served by the slabs. */
static void move_out(thread_cache_t *cache)
{
    thread_cache_own = EMPTY_CACHE;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    for (unsigned class = 1; class < CLASS_COUNT; class++) {
        bin_t *bin = &thread_bins[class];
        void **top = bin->top;
        if (top != EMPTY_TOP) /* what is empty stays so without a cache */
            top = __atomic_exchange_n(&bin->top, EMPTY_TOP, __ATOMIC_RELAXED);
        __atomic_store_n(&cache->kept[class].top, top, __ATOMIC_RELAXED);
    }
    cache->bins = cache->kept;
}

static void at_thread_exit(void *value)
{
    thread_cache_t *cache = value;
    thread_is_ending = true;
    move_out(cache);
    if (!orphan(cache))
        take_apart(cache);
}

void thread_caches_trim_orphans(uint64_t limit_ms)
{
    lock_acquire(&lock);
    thread_cache_t **cut = &orphans;
    while (*cut != NULL && (*cut)->orphaned_ms >= limit_ms)
        cut = &(*cut)->next;
    thread_cache_t *leaving = *cut;
    *cut = NULL;
    for (thread_cache_t *cache = leaving; cache != NULL; cache = cache->next)
        orphan_count--;
    lock_release(&lock);
    while (leaving != NULL) {
        thread_cache_t *cache = leaving;
        leaving = cache->next;
        take_apart(cache);
    }
}

void thread_caches_visit_orphans(void (*visit)(const thread_cache_t *cache, void *context),
                                 void *context)
{
    if (!lock_try_at_exit(&lock))
        return;
    for (const thread_cache_t *cache = orphans; cache != NULL; cache = cache->next)
        visit(cache, context);
    lock_release(&lock);
}

void thread_caches_create(void)
{
    ptrdiff_t origin = thread_space_distance(thread_bins);
    class_offset_origin = (class_offset_t)origin;
    MUST(class_offset_origin == origin);
    list_init(&caches);
    (void)os_prepare_thread_exit(at_thread_exit);
}

static void prewarm(thread_cache_t *cache)
{
    for (unsigned class = 1; class <= PREWARMED_CLASSES; class++)
        if (thread_cache_holds(cache, class)) {
            void *block = thread_cache_refill(cache, class);
            if (block != NULL)
                thread_cache_flush(cache, class, block);
        }
}

static thread_cache_t *create(void)
{
    thread_cache_t *cache = meta_alloc(sizeof *cache);
    if (cache == NULL)
        return NULL;
    for (unsigned class = 0; class < CLASS_COUNT; class++) {
        cache->kept[class].top = EMPTY_TOP;
        cache->capacity[class] = class == 0 ? 0 : first_capacity(class);
    }
    cache->budget = BUDGET;
    cache->upkeep_in = 1;
    lock_acquire(&lock);
    list_push_back(&caches, &cache->node);
    lock_release(&lock);
    return cache;
}

thread_cache_t *thread_cache_provide(void)
{
    thread_cache_t *cache = thread_cache_own;
    if (!thread_cache_is_empty_cache(cache) || thread_is_ending || !options.front_gate_unified)
        return cache;
    thread_cache_t *own = adopt();
    bool is_adopted = own != NULL;
    if (!is_adopted)
        own = create();
    if (own == NULL)
        return cache;
    own->trimmed_ms = own->looked_ms = os_clock_ms();
    /* Before the call below, which may allocate. */
    move_in(own);
    (void)os_call_at_thread_exit(own);
    if (options.prewarm_tls && !is_adopted)
        prewarm(own);
    return own;
}

void thread_cache_show(thread_cache_t *cache)
{
    /* relaxed: pairs with the loads in thread_caches_block_count, which only guess */
    for (unsigned class = 1; class < CLASS_COUNT; class++)
        __atomic_store_n(&cache->kept[class].top, cache->bins[class].top, __ATOMIC_RELAXED);
}

/* Not for ThreadSanitizer: the owners write plainly what is read here of their spares. */
__attribute__((no_sanitize("thread"))) size_t thread_caches_block_count(unsigned class)
{
    size_t count = 0;
    lock_acquire(&lock);
    for (list_node_t *node = caches.next; node != &caches; node = node->next) {
        const thread_cache_t *cache = LIST_ITEM(node, thread_cache_t, node);
        const bin_t *bins = cache == thread_cache_own ? thread_bins : cache->kept;
        /* The owner may be at work; a pointer is read whole, and counts need not add up. */
        bin_t bin = {__atomic_load_n(&bins[class].top, __ATOMIC_RELAXED)};
        const magazine_t *spare = __atomic_load_n(&cache->spares[class], __ATOMIC_RELAXED);
        count += bin_count(&bin) +
                 (spare == NULL ? 0 : __atomic_load_n(&spare->count, __ATOMIC_RELAXED));
    }
    lock_release(&lock);
    return count;
}

void thread_caches_at_fork(fork_phase_t phase)
{
    lock_at_fork(&lock, phase);
}
