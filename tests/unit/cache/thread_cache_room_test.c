/* cache/thread_cache.h: how much a cache may hold, in bins and spares. */
#include "cache/thread_cache.h"

#include "unit/cached.h"

enum { CLASS = 8, MOST = 500 };

static void *blocks[MOST];

static thread_cache_t *own_cache(void)
{
    initialise();
    return thread_cache_provide();
}

static void alloc_all(void)
{
    for (unsigned index = 0; index < MOST; index++)
        check((blocks[index] = cached_alloc(CLASS)) != NULL);
}

static void free_all(void)
{
    for (unsigned index = 0; index < MOST; index++)
        cached_free(CLASS, blocks[index]);
}

/* The law of held_bytes. */
static size_t counted_bytes(const thread_cache_t *cache)
{
    size_t bytes = 0;
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        const size_t size = size_classes[class].size;
        check_eq(cache->is_open[class], cache->bins[class].top != EMPTY_TOP);
        if (cache->is_open[class]) bytes += MAGAZINE_SIZE + cache->capacity[class] * size;
        if (cache->spares[class] != NULL)
            bytes += MAGAZINE_SIZE + cache->spares[class]->count * size;
    }
    return bytes;
}

fresh_test(a_cache_holds_no_more_than_it_may)
{
    enum { MANY = 130 };
    static void *many[FIXED_CLASS_COUNT][MANY];
    thread_cache_t *cache = own_cache();
    for (unsigned round = 0; round < MANY; round++)
        for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
            check((many[class][round] = cached_alloc(class)) != NULL);
    check_eq(cache->held_bytes, counted_bytes(cache));
    check(cache->held_bytes > THREAD_CACHE_MOST / 2);
    for (unsigned round = 0; round < MANY; round++)
        for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
            cached_free(class, many[class][round]);
    check_eq(cache->held_bytes, counted_bytes(cache));
    check(cache->held_bytes <= THREAD_CACHE_MOST && cache->held_bytes > THREAD_CACHE_MOST / 2);
    thread_cache_trim(cache, false);
    thread_cache_trim(cache, false);
    check_eq(cache->held_bytes, counted_bytes(cache));
    thread_cache_trim(cache, true);
    check_eq(cache->held_bytes, 0);
    check_eq(counted_bytes(cache), 0);
}

/* Half of it is for a bin that is as large as any. */
fresh_test(where_no_more_may_be_held_a_refill_fills_the_bin)
{
    thread_cache_t *cache = own_cache();
    size_t capacity = cache->capacity[CLASS];
    thread_caches.most_bytes = MAGAZINE_SIZE + capacity * size_classes[CLASS].size;
    check(cached_alloc(CLASS) != NULL);
    check_eq(cache->capacity[CLASS], capacity);
    check_eq(bin_count(&cache->bins[CLASS]), capacity - 1);
    check_eq(cache->held_bytes, thread_caches.most_bytes);
}

fresh_test(a_cache_that_may_hold_nothing_serves_all_the_same)
{
    thread_cache_t *cache = own_cache();
    thread_caches.most_bytes = MAGAZINE_SIZE;
    alloc_all();
    free_all();
    check_eq(counted_bytes(cache), 0);
    check_conserved(CLASS, 0);
}

fresh_test(a_full_magazine_that_may_not_be_kept_goes_to_the_depot)
{
    thread_cache_t *cache = own_cache();
    alloc_all();
    thread_caches.most_bytes = cache->held_bytes;
    free_all();
    check(cache->spares[CLASS] == NULL && depot_block_count(CLASS) > 0);
    check_eq(cache->held_bytes, counted_bytes(cache));
    check_conserved(CLASS, 0);
}

enum { THREADS = 20 };
static pthread_barrier_t barrier;

static void check_it_is_alone(void)
{
    check_eq(thread_caches.most_bytes, THREAD_CACHE_MOST);
}

static void *hold_a_cache(void *argument)
{
    check(!thread_cache_is_empty_cache(thread_cache_provide()));
    pthread_barrier_wait(&barrier);
    check_eq(thread_caches.most_bytes, THREAD_CACHES_MOST / (THREADS + 1));
    if (argument == (void *)1) in_child(check_it_is_alone);
    pthread_barrier_wait(&barrier);
    return argument;
}

fresh_test(the_more_threads_the_less_each_may_hold)
{
    own_cache();
    check_eq(thread_caches.most_bytes, THREAD_CACHE_MOST);
    check_eq(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    run_threads(THREADS, hold_a_cache);
    check(thread_caches.most_bytes >=
          THREAD_CACHES_MOST / (1 + ORPHANS_MOST)); /* the others are gone */
}

check_main()
