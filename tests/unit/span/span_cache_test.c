/* span/span_cache.h: spans come back whole and warm, in their place; what is too old or too much
 * goes on to the page heap. */
#include "span/span_cache.h"

#include <pthread.h>

#include "span/large.h"
#include "unit/fresh.h"

static page_heap_t *const heap = &page_heaps[HEAP_OF_LARGE];

static span_t *alloc(size_t unit_count)
{
    bool is_zero;
    span_t *span = page_heap_alloc(HEAP_OF_LARGE, unit_count, UNIT_SIZE, &is_zero);
    check(span != NULL);
    return span;
}

fresh_test(lengths_waste_less_than_an_eighth_and_are_their_own_length)
{
    size_t last = 0;
    size_t lengths = 0;
    for (size_t units = 1; units <= HUGE_MIN >> UNIT_SHIFT; units++) {
        size_t length = span_length_for(units);
        check(length >= units && (length - units) * 8 < length);
        check_eq(span_length_for(length), length);
        lengths += length != last;
        last = length;
    }
    check_eq(lengths, SPAN_LENGTH_COUNT);
}

fresh_test(the_last_one_given_is_the_first_one_taken)
{
    birth();
    span_t *cold = alloc(10);
    span_t *warm = alloc(10);
    check(span_cache_give(cold, 1) && span_cache_give(warm, 2));
    check_eq(span_cache_units(), 20);
    check(span_of(span_start(warm)) == warm && span_state(warm) == SPAN_CACHED);
    check(span_cache_take(10) == warm && span_state(warm) == SPAN_LARGE);
    check(span_cache_take(10) == cold);
    check(span_cache_take(10) == NULL);
    check_eq(span_cache_units(), 0);
}

fresh_test(a_somewhat_longer_span_serves_and_a_much_longer_one_does_not)
{
    birth();
    span_t *span = alloc(14);
    check(span_cache_give(span, 1));
    check(span_cache_take(15) == NULL);
    check(span_cache_take(8) == NULL);
    check(span_cache_take(10) == span);
}

fresh_test(a_span_of_no_length_is_not_kept)
{
    birth();
    span_t *odd = alloc(33);
    span_t *huge = alloc(1000);
    check(!span_cache_give(odd, 1) && !span_cache_give(huge, 1));
    check_eq(span_state(odd), SPAN_LARGE);
    page_heap_free(odd, 1);
    page_heap_free(huge, 1);
    check_heaps_are_valid();
}

fresh_test(what_is_old_goes_on_to_the_page_heap_with_its_age)
{
    birth();
    span_t *old = alloc(10);
    span_t *young = alloc(10);
    check(span_cache_give(old, 100) && span_cache_give(young, 200));
    span_cache_trim(99);
    check_eq(span_cache_units(), 20);
    span_cache_trim(100);
    check_eq(span_cache_units(), 10);
    check_eq(heap->dirty_free_units, 10);
    span_t *purged = page_heap_take_old(HEAP_OF_LARGE, 100, SIZE_MAX);
    check(purged != NULL && purged->unit_count == 10);
    page_heap_purged(purged, true, 300);
    check(span_cache_take(10) == young);
    page_heap_free(young, 300);
    check_heaps_are_valid();
}

fresh_test(it_holds_no_more_than_its_share)
{
    birth();
    span_t *spans[64];
    for (unsigned index = 0; index < 64; index++)
        spans[index] = alloc(32);
    for (unsigned index = 0; index < 64; index++)
        check(span_cache_give(spans[index], index));
    /* The program has none left, so what always may be held is all. */
    check_eq(span_cache_units(), 4 * MIB >> UNIT_SHIFT);
    check_eq(heap->used_units, span_cache_units());
    check(span_cache_take(32) == spans[63]);
    span_cache_trim(UINT64_MAX);
    page_heap_free(spans[63], 100);
    check_eq(heap->used_units, 0);
    check_heaps_are_valid();
}

/* ---- threads: each has a shard ---- */

static void run(void *(*work)(void *argument), void *argument)
{
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, work, argument), 0);
    check_eq(pthread_join(thread, NULL), 0);
}

static void *give_in_a_thread(void *span)
{
    check(span_cache_give(span, 1));
    return NULL;
}

fresh_test(what_one_thread_gave_another_takes)
{
    birth();
    span_t *mine = alloc(10);
    span_t *theirs = alloc(10);
    check(span_cache_give(mine, 1));
    run(give_in_a_thread, theirs);
    check_eq(span_cache_units(), 20);
    check_eq(span_cache_count(), 2);
    check(span_cache_take(10) == mine); /* its own first */
    check(span_cache_take(10) == theirs);
    check(span_cache_take(10) == NULL);
}

fresh_test(all_shards_are_trimmed)
{
    birth();
    for (unsigned thread = 0; thread < 10; thread++)
        run(give_in_a_thread, alloc(10));
    check_eq(span_cache_units(), 100);
    span_cache_trim(1);
    check_eq(span_cache_units(), 0);
    check_eq(heap->used_units, 0);
    check_heaps_are_valid();
}

enum { HELD = 40 };

static void *churn(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *held[HELD] = {NULL};
    for (unsigned step = 0; step < 20000; step++) {
        void **place = &held[next_random(&state) % HELD];
        bool is_zero;
        if (*place != NULL)
            large_free(span_of(*place), step);
        *place = large_alloc(40000 + next_random(&state) % 400000, BLOCK_ALIGNMENT, &is_zero);
        check(*place != NULL);
        memcpy(*place, &step, sizeof step);
    }
    for (unsigned index = 0; index < HELD; index++)
        if (held[index] != NULL)
            large_free(span_of(held[index]), 20000);
    return NULL;
}

fresh_test(threads_that_churn_hold_their_share_and_no_more)
{
    birth();
    run_threads(4, churn);
    check_eq(heap->used_units, span_cache_units());
    /* 4 MiB always, and of each of the four shards a megabyte that the others do not know of. */
    check(span_cache_units() <= (8 * MIB + 512 * KIB) >> UNIT_SHIFT);
    span_cache_trim(UINT64_MAX);
    check_eq(span_cache_count(), 0);
    check_eq(heap->used_units, 0);
    check_heaps_are_valid();
}

static void give_twice(void)
{
    birth();
    span_t *span = alloc(10);
    run(give_in_a_thread, span);
    (void)span_cache_give(span, 1);
}

test(a_span_is_given_once_whoever_gives_it)
{
    char words[256];
    check_eq(fresh_status(give_twice, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "double free of 0x") != NULL);
}

fresh_test(large_blocks_come_back_in_their_place)
{
    birth();
    bool is_zero;
    void *block = large_alloc(300000, BLOCK_ALIGNMENT, &is_zero);
    check(block != NULL && is_zero);
    large_free(span_of(block), 1);
    check(large_alloc(310000, BLOCK_ALIGNMENT, &is_zero) == block && !is_zero);
}

check_main()
