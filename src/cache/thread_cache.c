/* One thread's cache: refill, flush, trim. See thread_cache.h. */
#include "cache/thread_cache.h"

#include <string.h>

#include "base/count.h"
#include "cache/depot.h"
#include "options/options.h"
#include "options/tuning.h"
#include "base/route.h"
#include "slab/central_list.h"

/* ---- what a cache may hold ---- */

thread_caches_t thread_caches = {.lock = LOCK_INITIAL(LOCK_THREADS),
                                 .most_bytes = THREAD_CACHE_MOST};

/* Counts so many bytes as held; false: the cache may not hold them, too. */
static bool cache_charge(thread_cache_t *cache, size_t bytes)
{
    /* relaxed: the number of threads may change meanwhile */
    if (cache->held_bytes + bytes > __atomic_load_n(&thread_caches.most_bytes, __ATOMIC_RELAXED))
        return false;
    cache->held_bytes += bytes;
    return true;
}

static size_t bin_cost(const thread_cache_t *cache, unsigned class)
{
    return MAGAZINE_SIZE + cache->capacity[class] * (size_t)size_classes[class].size;
}

static size_t cache_spare_cost(const magazine_t *spare, unsigned class)
{
    return MAGAZINE_SIZE + spare->count * size_classes[class].size;
}

/* The bin is to have a magazine; false: the cache has no room for one. */
static bool bin_open(thread_cache_t *cache, unsigned class)
{
    if (!cache->is_open[class])
        cache->is_open[class] = cache_charge(cache, bin_cost(cache, class));
    return cache->is_open[class];
}

/* The bin has no magazine any more. */
static void bin_close(thread_cache_t *cache, unsigned class)
{
    if (cache->is_open[class])
        cache->held_bytes -= bin_cost(cache, class);
    cache->is_open[class] = false;
}

/* ---- magazines of one bin ---- */

/* The option's range ends where a magazine does. */
enum {
#define OPTION(name, unit, min, max, ...) most_##name = max,
#include "options/option_table.h"
#undef OPTION
};
_Static_assert(most_tiny_fast_cap == MAGAZINE_SLOTS, "tiny_fast_cap: as many as a magazine holds");

static unsigned bin_largest_capacity(unsigned class)
{
    return (unsigned)smaller_of(size_classes[class].bin_max, (size_t)options.tiny_fast_cap);
}

static magazine_t *cache_loaded_magazine(const thread_cache_t *cache, unsigned class)
{
    magazine_t *magazine = bin_magazine(&cache->bins[class]);
    return magazine == &empty_magazine ? NULL : magazine;
}

static void bin_load(thread_cache_t *cache, unsigned class, magazine_t *magazine)
{
    size_t end = larger_of(cache->capacity[class], magazine->count);
    bin_end_at(&magazine->slots[end]);
    __atomic_signal_fence(__ATOMIC_RELEASE); /* as in bin_place */
    cache->bins[class].top = magazine->slots + magazine->count;
}

/* Before its blocks go anywhere: a signal handler that calls exit must not find them in two places
 * (thread_cache_verify). NULL: there is none. */
static magazine_t *cache_take_spare(thread_cache_t *cache, unsigned class)
{
    magazine_t *spare = cache->spares[class];
    cache->held_bytes -= spare != NULL ? cache_spare_cost(spare, class) : 0;
    cache->spares[class] = NULL;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* pairs with the order in which verify looks */
    return spare;
}

static void cache_set_spare(thread_cache_t *cache, unsigned class, magazine_t *magazine)
{
    cache->held_bytes += magazine != NULL ? cache_spare_cost(magazine, class) : 0;
    cache->spares[class] = magazine;
}

static magazine_t *bin_unload(thread_cache_t *cache, unsigned class)
{
    magazine_t *magazine = cache_loaded_magazine(cache, class);
    if (magazine != NULL)
        magazine->count = bin_count(&cache->bins[class]);
    cache->bins[class].top = EMPTY_TOP;
    return magazine;
}

/* ---- at work ---- */

/* Before anything beyond a hit changes the cache, and again behind it: in the child of a fork a
 * cache that its thread was at work in is not whole. Calls may be nested. Returns whether this one
 * is. */
static bool cache_enter(thread_cache_t *cache)
{
    bool was_entered = cache->is_entered;
    cache->is_entered = true;
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* no store moves out of here */
    return was_entered;
}

static void cache_leave(thread_cache_t *cache, bool was_entered)
{
    /* release: behind all that was stored in between */
    __atomic_store_n(&cache->is_entered, was_entered, __ATOMIC_RELEASE);
}

static uint8_t bin_first_capacity(unsigned class)
{
    size_t blocks = larger_of(FIRST_BYTES / size_classes[class].size, FIRST_LEAST);
    return (uint8_t)smaller_of(smaller_of(blocks, FIRST_CAPACITY), bin_largest_capacity(class));
}

/* Doubles the capacity of an open bin; false: the bin is as large as it may be. */
static bool bin_grow_capacity(thread_cache_t *cache, unsigned class)
{
    size_t old = cache->capacity[class];
    size_t new = smaller_of(old * 2, bin_largest_capacity(class));
    size_t cost = (new - old) * size_classes[class].size;
    if (new <= old || UNLIKELY(count_read(&thread_caches.drain) != 0) || !cache_charge(cache, cost))
        return false;
    cache->capacity[class] = (uint8_t) new;
    return true;
}

/* Makes the capacity larger than `count`, which a magazine from the depot may bring; false: the bin
 * may not grow so far. */
static bool bin_grow_above(thread_cache_t *cache, unsigned class, size_t count)
{
    if (count >= bin_largest_capacity(class))
        return false;
    while (cache->capacity[class] <= count)
        if (!bin_grow_capacity(cache, class))
            return false;
    return true;
}

static void bin_set_capacity(thread_cache_t *cache, unsigned class, size_t new)
{
    size_t old = cache->capacity[class];
    if (new < old && cache->is_open[class])
        cache->held_bytes -= (old - new) * size_classes[class].size;
    cache->capacity[class] = (uint8_t) new;
}

/* Halves the bin's capacity, or makes it what it was at first (`all`). */
static void bin_shrink_capacity(thread_cache_t *cache, unsigned class, bool all)
{
    size_t least = bin_first_capacity(class);
    bin_set_capacity(cache, class, all ? least : larger_of(cache->capacity[class] / 2, least));
}

void thread_cache_heed_classes(thread_cache_t *cache)
{
    bool was_entered = cache_enter(cache);
    for (unsigned class = FIXED_CLASS_COUNT; class < size_classes_made(); class++)
        if (!thread_cache_holds(cache, class))
            cache->capacity[class] = bin_first_capacity(class);
    cache_leave(cache, was_entered);
}

void thread_cache_prepare(thread_cache_t *cache)
{
    for (unsigned class = 0; class < CLASS_COUNT; class++)
        cache->kept[class].top = EMPTY_TOP;
    for (unsigned class = 1; class < size_classes_made(); class++)
        cache->capacity[class] = bin_first_capacity(class);
    cache->bins = cache->kept;
    cache->upkeep_in = 1;
}

/* ---- refill ---- */

/* How many blocks to take: as many as the bin has room for, and the capacity doubles. Bins of the
 * largest capacity stay half empty, for blocks that the program frees at random. */
static unsigned bin_refill_count(thread_cache_t *cache, unsigned class)
{
    unsigned room = cache->capacity[class];
    bool has_grown = bin_grow_capacity(cache, class);
    return has_grown || room < bin_largest_capacity(class) ? room : (room + 1) / 2;
}

static void *bin_refill(thread_cache_t *cache, unsigned class)
{
    cache->was_used[class] = true;
    if (!bin_open(cache, class)) {
        route_note(ROUTE_malloc_slabs);
        thread_cache_look_soon(cache);
        return central_list_take_one(class);
    }
    magazine_t *empty = bin_unload(cache, class);
    magazine_t *spare = cache->spares[class];
    if (spare != NULL && spare->count != 0) {
        (void)cache_take_spare(cache, class);
        cache_set_spare(cache, class, empty);
        bin_load(cache, class, spare);
        route_note(ROUTE_malloc_spare);
        return bin_pop(&cache->bins[class]);
    }
    magazine_t *filled = depot_take(class, empty);
    route_note(filled != NULL ? ROUTE_malloc_depot : ROUTE_malloc_slabs);
    if (filled == NULL) {
        filled = empty != NULL ? empty : magazine_create();
        if (filled == NULL) {
            bin_close(cache, class);
            return central_list_take_one(class);
        }
        magazine_fill(filled, class, bin_refill_count(cache, class));
        thread_cache_look_soon(cache);
    }
    bin_load(cache, class, filled);
    return bin_pop(&cache->bins[class]);
}

void *thread_cache_refill(thread_cache_t *cache, unsigned class)
{
    bool was_entered = cache_enter(cache);
    PROBE(refill, size_classes[class].size);
    void *block = bin_refill(cache, class);
    cache_leave(cache, was_entered);
    return block;
}

/* ---- flush ---- */

static magazine_t *cache_give_to_depot(thread_cache_t *cache, unsigned class, magazine_t *full)
{
    magazine_t *empty = depot_give(class, full);
    if (empty == full) /* no room there, the blocks went to the slabs */
        thread_cache_look_soon(cache);
    return empty;
}

static magazine_t *cache_send_to_slabs(thread_cache_t *cache, unsigned class, magazine_t *full)
{
    central_list_give(class, full->slots, (unsigned)full->count);
    full->count = 0;
    thread_cache_look_soon(cache);
    return full;
}

/* An empty magazine in exchange for the full one, which becomes the spare; a spare that was full
 * too goes to the depot, or the full one itself where the cache may not hold another. Without
 * memory for a second magazine the blocks go to the slabs. */
static magazine_t *cache_exchange_full(thread_cache_t *cache, unsigned class, magazine_t *full)
{
    if (UNLIKELY(count_read(&thread_caches.drain) != 0)) {
        route_note(ROUTE_free_depot);
        return cache_send_to_slabs(cache, class, full);
    }
    magazine_t *spare = cache_take_spare(cache, class);
    magazine_t *empty = spare;
    bool is_held = cache_charge(cache, cache_spare_cost(full, class));
    bool is_spare = is_held && (spare == NULL || spare->count == 0);
    route_note(is_spare ? ROUTE_free_spare : ROUTE_free_depot);
    if (!is_held) {
        cache_set_spare(cache, class, spare);
        return cache_give_to_depot(cache, class, full);
    }
    if (spare == NULL)
        empty = magazine_create();
    else if (spare->count != 0)
        empty = cache_give_to_depot(cache, class, spare);
    if (empty == NULL) {
        cache->held_bytes -= cache_spare_cost(full, class);
        return cache_send_to_slabs(cache, class, full);
    }
    cache->spares[class] = full;
    return empty;
}

/* Afterwards the bin has room for a block, or no magazine at all: there was no memory for its first
 * one, or the cache may not hold it. */
static void bin_make_room(thread_cache_t *cache, unsigned class)
{
    magazine_t *magazine = bin_unload(cache, class);
    if (magazine == NULL) {
        route_note(ROUTE_free_bin_grown);
        magazine = bin_open(cache, class) ? magazine_create() : NULL;
        if (magazine == NULL)
            bin_close(cache, class);
    } else if (bin_grow_above(cache, class, magazine->count)) {
        route_note(ROUTE_free_bin_grown);
    } else {
        magazine = cache_exchange_full(cache, class, magazine);
    }
    if (magazine != NULL)
        bin_load(cache, class, magazine);
}

/* A bin that begins with a free begins with another thread's block, which shares a cache line with
 * blocks of that thread. Blocks of the thread's own slabs go on top of that block. False: no
 * memory. */
static bool cache_begin_below_own(thread_cache_t *cache, unsigned class, void *block)
{
    bin_shrink_capacity(cache, class, true);
    magazine_t *magazine = bin_open(cache, class) ? magazine_create() : NULL;
    if (magazine == NULL) {
        bin_close(cache, class);
        return false;
    }
    /* As many as a first refill takes: whole lines, and one more than it has capacity for, so that
     * the next free is a miss and sees the block at the bottom if it is the same. */
    magazine_fill(magazine, class, cache->capacity[class]);
    memmove(magazine->slots + 1, magazine->slots, magazine->count * sizeof(void *));
    magazine->slots[0] = block;
    magazine->count++;
    bin_load(cache, class, magazine);
    route_note(ROUTE_free_bin_grown);
    return true;
}

static void bin_flush(thread_cache_t *cache, unsigned class, void *block)
{
    bool shares_lines = size_classes[class].size < 2 * CACHE_LINE;
    cache->was_used[class] = true;
    if (shares_lines && cache->bins[class].top == EMPTY_TOP &&
        cache_begin_below_own(cache, class, block))
        return;
    bin_make_room(cache, class);
    bin_t *bin = &cache->bins[class];
    if (bin->top == EMPTY_TOP) {
        central_list_give(class, &block, 1);
        return;
    }
    /* Not bin_push: a mark of an earlier capacity may still stand here. */
    bin_place(bin, block);
}

void thread_cache_flush(thread_cache_t *cache, unsigned class, void *block)
{
    bool was_entered = cache_enter(cache);
    PROBE(flush, size_classes[class].size);
    bin_flush(cache, class, block);
    cache_leave(cache, was_entered);
}

/* ---- trim ---- */

static void cache_spill_spare(thread_cache_t *cache, unsigned class, bool are_idle)
{
    magazine_t *spare = cache_take_spare(cache, class);
    if (spare == NULL)
        return;
    central_list_give_as(class, spare->slots, (unsigned)spare->count, are_idle);
    spare->count = 0;
    magazine_destroy(spare);
}

/* The blocks at the bottom have not been used for longest: they go first. */
static void bin_spill(thread_cache_t *cache, unsigned class, bool all, bool are_idle)
{
    cache_spill_spare(cache, class, are_idle);
    magazine_t *magazine = bin_unload(cache, class);
    bin_shrink_capacity(cache, class, all);
    if (magazine == NULL)
        return;
    size_t leaving = all ? magazine->count : (magazine->count + 1) / 2;
    central_list_give_as(class, magazine->slots, (unsigned)leaving, are_idle);
    magazine->count -= leaving;
    memmove(magazine->slots, magazine->slots + leaving, magazine->count * sizeof(void *));
    if (magazine->count == 0) {
        bin_close(cache, class);
        magazine_destroy(magazine);
    } else {
        bin_load(cache, class, magazine);
    }
}

void thread_cache_trim(thread_cache_t *cache, bool all)
{
    bool was_entered = cache_enter(cache);
    for (unsigned class = 1; class < size_classes_made(); class++) {
        if (all || !cache->was_used[class])
            bin_spill(cache, class, all, true);
        cache->was_used[class] = false;
    }
    cache_leave(cache, was_entered);
}

void thread_cache_trim_sparse(thread_cache_t *cache)
{
    bool was_entered = cache_enter(cache);
    for (unsigned class = 1; class < size_classes_made(); class++)
        if (UNLIKELY(central_list_is_sparse(class)))
            bin_spill(cache, class, true, false);
    cache_leave(cache, was_entered);
}
