/* cache/thread_cache.h: bins that grow with use, spares, trimming, settings. */
#include "cache/thread_cache.h"

#include "unit/cached.h"

enum { CLASS = 8, LARGEST = FIXED_CLASS_COUNT - 1, MOST = 5000 };

static void *blocks[MOST];

static thread_cache_t *cache; /* the calling thread's */

static void own_cache(void)
{
    initialise();
    cache = thread_cache_provide();
    check(!thread_cache_is_empty_cache(cache));
    check(thread_cache_own == cache && thread_cache_provide() == cache);
    check(cache->bins == thread_bins);
}

#define cache_test(name) fresh_test_within(own_cache, check_laws, name)

static size_t in_bin(unsigned class)
{
    return bin_count(&thread_bins[class]);
}

static void alloc_many(unsigned class, unsigned count)
{
    for (unsigned index = 0; index < count; index++) {
        blocks[index] = cached_alloc(class);
        check(blocks[index] != NULL);
    }
}

static void free_many(unsigned class, unsigned count)
{
    for (unsigned index = 0; index < count; index++)
        cached_free(class, blocks[index]);
}

cache_test(a_new_cache_is_empty)
{
    for (unsigned class = 0; class < FIXED_CLASS_COUNT; class++) {
        check(bin_pop(&cache->bins[class]) == NULL);
        check(!bin_push(&cache->bins[class], blocks));
    }
}

cache_test(each_refill_is_twice_the_one_before_up_to_half_a_magazine)
{
    static const size_t refills[] = {8, 16, 32, 64, 62, 62};
    static const size_t capacities[] = {16, 32, 64, 124, 124, 124};
    for (unsigned round = 0; round < 6; round++) {
        check(cached_alloc(CLASS) != NULL);
        check_eq(cache->capacity[CLASS], capacities[round]);
        check_eq(in_bin(CLASS), refills[round] - 1);
        while (in_bin(CLASS) > 0)
            check(cached_alloc(CLASS) != NULL);
    }
}

cache_test(a_bin_of_large_blocks_grows_to_its_limit_only)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        for (unsigned round = 0; round < 300; round++)
            check(cached_alloc(class) != NULL);
        check_eq(cache->capacity[class], size_classes[class].bin_max);
        thread_cache_trim(cache, true); /* makes room for the others */
    }
}

static void *fill_a_bin(void *argument)
{
    size_t cap = (size_t)options.tiny_fast_cap;
    thread_cache_t *own = thread_cache_provide();
    alloc_many(CLASS, 500);
    check(in_bin(CLASS) <= cap);
    free_many(CLASS, 500);
    check(in_bin(CLASS) <= cap);
    check_eq(own->capacity[CLASS], cap);
    check_conserved(CLASS, 0);
    return argument;
}

fresh_test(the_options_limit_every_bin)
{
    static const int64_t caps[] = {124, 20, 8, 7, 2, 1};
    initialise();
    for (unsigned index = 0; index < 6; index++) {
        options.tiny_fast_cap = caps[index];
        run_threads(1, fill_a_bin);
        thread_caches_trim_orphans(UINT64_MAX); /* the next thread begins anew */
    }
}

cache_test(a_refill_hands_out_ascending_addresses)
{
    char *before = cached_alloc(CLASS);
    for (unsigned index = 1; index < 8 + 16 + 32 + 64 + 124; index++) {
        char *block = cached_alloc(CLASS);
        check(block == before + size_classes[CLASS].size);
        before = block;
    }
}

cache_test(what_was_freed_last_is_handed_out_first)
{
    alloc_many(CLASS, 100);
    free_many(CLASS, 100);
    for (unsigned index = 100; index-- > 0;)
        check(cached_alloc(CLASS) == blocks[index]);
}

cache_test(a_bin_that_begins_with_a_free_has_blocks_of_its_own_on_top)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        void *foreign[8];
        check_eq(central_list_take(class, foreign + 8, 8), 8); /* another thread's first refill */
        unsigned own = size_classes[class].size < 128 ? cache->capacity[class] : 0;
        cached_free(class, foreign[0]);
        /* From 128 bytes on two blocks hardly share a cache line: last in, first out. */
        check_eq(in_bin(class), own + 1);
        for (; own > 0; own--) {
            char *block = cached_alloc(class);
            for (unsigned index = 0; index < 8; index++)
                check((uintptr_t)block / 64 != (uintptr_t)foreign[index] / 64);
        }
        check(cached_alloc(class) == foreign[0]);
    }
}

cache_test(a_bin_that_is_freed_into_grows_before_it_overflows)
{
    void *taken[1000];
    check_eq(central_list_take(CLASS, taken + 1000, 1000), 1000);
    for (size_t count = 1; count <= 124; count++) {
        cached_free(CLASS, taken[count]);
        check_eq(in_bin(CLASS), count);
        check(cache->spares[CLASS] == NULL);
        check(cache->capacity[CLASS] >= count);
    }
    check_conserved(CLASS, 1000 - 124);
}

cache_test(the_second_magazine_is_a_spare_and_the_third_goes_to_the_depot)
{
    alloc_many(CLASS, 400);
    thread_cache_trim(cache, true);
    free_many(CLASS, 125);
    check(cache->spares[CLASS] != NULL);
    check_eq(cache->spares[CLASS]->count, 124);
    check_eq(in_bin(CLASS), 1);
    check_eq(depot_block_count(CLASS), 0);
    for (unsigned index = 125; index < 249; index++)
        cached_free(CLASS, blocks[index]);
    check_eq(depot_block_count(CLASS), 124);
    check_eq(cache->spares[CLASS]->count, 124);
    check_eq(in_bin(CLASS), 1);
    check_conserved(CLASS, 400 - 249);
}

cache_test(the_spare_comes_first_then_the_depot)
{
    alloc_many(CLASS, 400);
    thread_cache_trim(cache, true);
    free_many(CLASS, 249);
    size_t in_slabs = central_list_statistics(CLASS).free_count;
    for (unsigned index = 249; index-- > 124;)
        check(cached_alloc(CLASS) == blocks[index]);
    check_eq(depot_block_count(CLASS), 124);
    for (unsigned index = 124; index-- > 0;)
        check(cached_alloc(CLASS) == blocks[index]);
    check_eq(depot_block_count(CLASS), 0);
    check_eq(central_list_statistics(CLASS).free_count, in_slabs);
}

/* The edge of a magazine: alternating there moves magazines between bin and spare, no further. */
cache_test(alternating_at_the_edge_stays_in_the_cache)
{
    alloc_many(CLASS, 400);
    thread_cache_trim(cache, true);
    free_many(CLASS, 124);
    size_t in_slabs = central_list_statistics(CLASS).free_count;
    for (unsigned round = 0; round < 1000; round++) {
        cached_free(CLASS, blocks[200]);
        cached_free(CLASS, blocks[201]);
        check(cached_alloc(CLASS) == blocks[201]);
        check(cached_alloc(CLASS) == blocks[200]);
        check(cached_alloc(CLASS) == blocks[123]);
        cached_free(CLASS, blocks[123]);
    }
    check_eq(depot_block_count(CLASS), 0);
    check_eq(central_list_statistics(CLASS).free_count, in_slabs);
}

cache_test(a_trim_halves_what_was_idle_and_leaves_the_rest)
{
    alloc_many(CLASS, 100);
    free_many(CLASS, 100);
    alloc_many(LARGEST, 2);
    thread_cache_trim(cache, false); /* both have missed lately */
    check_eq(in_bin(CLASS) >= 100, true);
    size_t before = in_bin(CLASS);
    for (unsigned round = 0; round < 10; round++) {
        check(thread_cache_refill(cache, LARGEST) != NULL);
        thread_cache_trim(cache, false);
        check_eq(in_bin(CLASS), before / 2);
        before /= 2;
    }
    check_eq(before, 0);
    check_eq(cache->capacity[CLASS], 8);
    check_eq(central_list_statistics(CLASS).free_count, central_list_statistics(CLASS).block_count);
}

cache_test(a_trim_takes_the_blocks_that_were_used_longest_ago)
{
    alloc_many(CLASS, 120); /* 8 + 16 + 32 + 64: the bin is empty now */
    free_many(CLASS, 60);
    thread_cache_trim(cache, false);
    thread_cache_trim(cache, false);
    check_eq(in_bin(CLASS), 30);
    for (unsigned index = 60; index-- > 30;)
        check(cached_alloc(CLASS) == blocks[index]);
}

cache_test(a_trimmed_bin_works_on)
{
    for (unsigned round = 0; round < 50; round++) {
        alloc_many(CLASS, 10 + 13 * round);
        free_many(CLASS, 10 + 13 * round);
        for (unsigned trim = 0; trim <= round % 6; trim++)
            thread_cache_trim(cache, false);
        check_conserved(CLASS, 0);
    }
}

cache_test(a_trim_of_everything_leaves_nothing)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        alloc_many(class, 300);
        free_many(class, 300);
    }
    thread_cache_trim(cache, true);
    depots_trim(true);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        central_statistics_t central = central_list_statistics(class);
        check_eq(central.free_count, central.block_count);
        check_eq(in_bin(class), 0);
    }
}

/* ---- without memory ---- */

lawful_test(without_memory_for_magazines_blocks_go_one_by_one)
{
    void *first = NULL;
    check_eq(central_list_take(LARGEST, &first + 1, 1), 1);
    cache = thread_cache_provide();
    refuse_magazines();
    void *block = thread_cache_refill(cache, LARGEST);
    check(block != NULL);
    check_eq(in_bin(LARGEST), 0);
    size_t before = central_list_statistics(LARGEST).free_count;
    thread_cache_flush(cache, LARGEST, block);
    check_eq(central_list_statistics(LARGEST).free_count, before + 1);
}

cache_test(without_memory_for_a_second_magazine_the_first_is_emptied)
{
    alloc_many(CLASS, 300);
    thread_cache_trim(thread_cache_own, true);
    cached_free(CLASS, blocks[0]);
    refuse_magazines();
    for (unsigned index = 1; index < 300; index++)
        cached_free(CLASS, blocks[index]);
    check_conserved(CLASS, 0);
    check(thread_cache_own->spares[CLASS] == NULL);
}

lawful_test(without_memory_for_a_cache_the_empty_one_serves)
{
    fake_os_fail_always(FAKE_MAP);
    check(thread_cache_is_empty_cache(thread_cache_provide()));
    fake_os_fail_never();
    check(!thread_cache_is_empty_cache(thread_cache_provide()));
}

cache_test(without_any_memory_there_is_no_block)
{
    fake_os_fail_always(FAKE_MAP_AT);
    check(cached_alloc(CLASS) == NULL);
    fake_os_fail_never();
    check(cached_alloc(CLASS) != NULL);
}

/* The bin and the spare are full, and there is no third magazine for the depot's. */
cache_test(without_memory_for_a_third_magazine_the_spare_is_emptied)
{
    alloc_many(CLASS, 400);
    thread_cache_trim(cache, true);
    unsigned freed = 0;
    while (cache->spares[CLASS] == NULL || in_bin(CLASS) < 124)
        cached_free(CLASS, blocks[freed++]);
    refuse_magazines();
    cached_free(CLASS, blocks[freed++]);
    check_eq(in_bin(CLASS), 1);
    check_eq(cache->spares[CLASS]->count, 124);
    check_eq(depot_block_count(CLASS), 0);
    check_conserved(CLASS, 400 - freed);
}

/* A bin that was empty when it was trimmed has no magazine, and still much of its capacity. */
cache_test(a_bin_that_begins_anew_begins_small)
{
    enum { SHARED = CLASS - 1 };
    alloc_many(SHARED, 400);
    thread_cache_trim(cache, true);
    size_t with_program = 400 - 124;
    free_many(SHARED, 124);
    for (; in_bin(SHARED) != 0; with_program++)
        check(cached_alloc(SHARED) != NULL);
    check_eq(cache->capacity[SHARED], 124);
    for (unsigned round = 0; round < 2; round++) /* it was used before the first */
        thread_cache_trim(cache, false);
    check_eq(cache->capacity[SHARED], 62);
    cached_free(SHARED, blocks[399]);
    check_eq(in_bin(SHARED), 9);
    check_eq(cache->capacity[SHARED], 8);
    check_conserved(SHARED, with_program - 1);
}

/* ---- settings ---- */

cache_test(a_cache_has_bins_for_every_class_but_none)
{
    check(!thread_cache_holds(cache, 0));
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
        check(thread_cache_holds(cache, class));
}

lawful_test(settings_may_forbid_caches)
{
    options.junk = 1;
    check(thread_cache_is_empty_cache(thread_cache_provide()));
}

check_main()
