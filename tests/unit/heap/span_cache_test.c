/* heap/span_cache.h: spans come back whole and warm, in their place; what is too old or too much
 * goes on to the page heap. */
#include "heap/span_cache.h"

#include <pthread.h>

#include "large/large.h"
#include "unit/spans.h"

lawful_test(the_last_one_given_is_the_first_one_taken)
{
    span_t *cold = alloc(10);
    span_t *warm = alloc(10);
    check(span_cache_give(cold, 1) && span_cache_give(warm, 2));
    check_eq(span_cache_units(), 20);
    check(span_of(span_start(warm)) == warm && span_state(warm) == SPAN_CACHED);
    check(span_cache_take(10, UNIT_SIZE) == warm && span_state(warm) == SPAN_LARGE);
    check(span_cache_take(10, UNIT_SIZE) == cold);
    check(span_cache_take(10, UNIT_SIZE) == NULL);
    check_eq(span_cache_units(), 0);
}

lawful_test(a_span_a_quarter_longer_serves_and_a_longer_one_does_not)
{
    for (size_t units = 1; units <= SPAN_LENGTH_COUNT; units++) {
        size_t quarter = units * UNIT_SIZE <= 64 * KIB ? 0 : units / 4;
        size_t longest = smaller_of(units + quarter, SPAN_LENGTH_COUNT);
        span_t *shorter = units == 1 ? NULL : alloc(units - 1);
        span_t *much_longer = alloc(longest + 1);
        span_t *longer = alloc(longest);
        span_t *exact = alloc(units);
        check(shorter == NULL || span_cache_give(shorter, 1));
        if (longest < SPAN_LENGTH_COUNT)
            check(span_cache_give(much_longer, 1));
        check(span_cache_give(longer, 1) && span_cache_give(exact, 2));
        check(span_cache_take(units, UNIT_SIZE) == exact);
        check(span_cache_take(units, UNIT_SIZE) == longer);
        check(span_cache_take(units, UNIT_SIZE) == NULL);
        span_cache_trim(UINT64_MAX, 1000);
    }
}

lawful_test(a_span_serves_an_alignment_that_it_has)
{
    span_t *aligned = page_heap_alloc(10, 8 * UNIT_SIZE, &is_zero);
    span_t *other = alloc(10);
    check(!is_aligned(span_start(other), 8 * UNIT_SIZE));
    check(span_cache_give(aligned, 1) && span_cache_give(other, 2));
    check(span_cache_take(10, 8 * UNIT_SIZE) == NULL); /* the last one given has not */
    check(span_cache_take(10, UNIT_SIZE) == other);
    check(span_cache_take(10, 8 * UNIT_SIZE) == aligned);
    check_eq(span_cache_units(), 0);
}

lawful_test(the_shortest_that_serves_is_taken)
{
    span_t *spans[3];
    size_t lengths[] = {70, 64, 66}; /* on both sides of a word of the bitmap */
    for (unsigned index = 0; index < 3; index++) {
        spans[index] = alloc(lengths[index]);
        check(span_cache_give(spans[index], index));
    }
    check(span_cache_take(60, UNIT_SIZE) == spans[1]);
    check(span_cache_take(60, UNIT_SIZE) == spans[2]);
    check(span_cache_take(60, UNIT_SIZE) == spans[0]);
}

lawful_test(a_span_too_long_is_not_kept)
{
    span_t *longest = alloc(SPAN_LENGTH_COUNT);
    span_t *too_long = alloc(SPAN_LENGTH_COUNT + 1);
    check(span_cache_give(longest, 1) && !span_cache_give(too_long, 1));
    check_eq(span_state(too_long), SPAN_LARGE);
    page_heap_free(too_long, 1);
    check(span_cache_take(SPAN_LENGTH_COUNT, UNIT_SIZE) == longest);
    page_heap_free(longest, 1);
}

lawful_test(what_is_old_goes_on_to_the_page_heap_with_its_age)
{
    span_t *old = alloc(10);
    span_t *young = alloc(10);
    check(span_cache_give(old, 100) && span_cache_give(young, 200));
    span_cache_trim(99, 200);
    check_eq(span_cache_units(), 20);
    span_cache_trim(100, 200);
    check_eq(span_cache_units(), 10);
    check_eq(heap->free.dirty_units, 10);
    purge_piece_t piece;
    check(page_heap_take_old(100, SIZE_MAX, &piece));
    check_eq(put_back(&piece, true, 300), 10);
    check(span_cache_take(10, UNIT_SIZE) == young);
    page_heap_free(young, 300);
}

lawful_test(what_a_block_has_outgrown_is_room_to_grow)
{
    span_t *span = alloc(10);
    span_t *outgrown = alloc(6);
    span_t *beyond = alloc(1);
    span_cache_bypass(outgrown, 1);
    check_eq(span_cache_units(), 0);
    check(page_heap_extend(span, 16));
    check(span_start(span) + span_size(span) == span_start(beyond));
    page_heap_free(span, 2);
    page_heap_free(beyond, 2);
}

/* In whatever order they leave: the page heap inserts the youngest and the oldest in one step, and
 * whatever lies between them by a walk. */
lawful_test(what_leaves_is_the_youngest_or_the_oldest_of_the_page_heap)
{
    span_t *spans[100];
    for (unsigned index = 0; index < 100; index++)
        spans[index] = alloc(100 - index);
    for (unsigned index = 0; index < 100; index += 2) /* so that none has a free neighbour */
        check(span_cache_give(spans[index], 100 + index));
    span_cache_trim(150, 500);
    unsigned left = 0;
    const list_node_t *head = &heap->free.by_age;
    for (list_node_t *node = head->next; node != head; node = node->next, left++)
        check_eq(LIST_ITEM(node, span_t, age_node)->freed_ms, 150);
    check_eq(left, 26);
    span_cache_evict(1, 600);
    check_eq(LIST_ITEM(head->next, span_t, age_node)->freed_ms, 600);
    check_eq(LIST_ITEM(head->previous, span_t, age_node)->freed_ms, 150);
    span_cache_trim(UINT64_MAX, 700);
    check_eq(LIST_ITEM(head->next, span_t, age_node)->freed_ms, 700);
}

/* Between the pieces lie units in use, so that they are never joined. */
lawful_test(pieces_that_do_not_serve_keep_no_span_from_joining)
{
    span_t *pieces[2];
    span_t *gaps[3];
    for (unsigned index = 0; index < 2; index++) {
        pieces[index] = alloc(6);
        gaps[index] = alloc(1);
    }
    span_t *cached[2] = {alloc(5), alloc(5)};
    gaps[2] = alloc(1);
    char *start = span_start(cached[0]);
    for (unsigned index = 0; index < 2; index++) {
        page_heap_free(pieces[index], 1);
        check(span_cache_give(cached[index], 2));
    }
    check_eq(heap->free.dirty_units, 12);
    span_cache_evict_for(6);
    check_eq(span_cache_units(), 10); /* a piece serves */
    span_cache_evict_for(10);
    check_eq(span_cache_units(), 0);
    span_t *joined = alloc(10);
    check(span_start(joined) == start);
    page_heap_free(joined, 3);
    for (unsigned index = 0; index < 3; index++)
        page_heap_free(gaps[index], 3);
}

enum { SHARE = 64 * MIB >> UNIT_SHIFT, SPAN_UNITS = 128, SPANS = 2 * SHARE / SPAN_UNITS };

lawful_test(it_holds_no_more_than_its_share)
{
    span_t *spans[SPANS];
    for (unsigned index = 0; index < SPANS; index++)
        spans[index] = alloc(SPAN_UNITS);
    for (unsigned index = 0; index < SPANS; index++)
        check(span_cache_give(spans[index], index));
    /* The program has none left, so what always may be held is all. */
    check_eq(span_cache_units(), SHARE);
    check_eq(heap->used_units, span_cache_units());
    check(span_cache_take(SPAN_UNITS, UNIT_SIZE) == spans[SPANS - 1]);
    span_cache_trim(UINT64_MAX, 1000);
    page_heap_free(spans[SPANS - 1], 100);
    check_eq(heap->used_units, 0);
}

lawful_test(what_is_too_much_goes_nearly_by_age)
{
    span_t *spans[SPANS];
    for (unsigned index = 0; index < SPANS; index++)
        spans[index] = alloc(SPAN_UNITS - index % 16);
    unsigned given = 0;
    for (; span_cache_count() == given; given++)
        check(span_cache_give(spans[given], given));
    /* One has gone, and it was the oldest of eight lengths: of sixteen lengths in a row, one of
     * the first nine. */
    unsigned gone = 0;
    while (span_state(spans[gone]) == SPAN_CACHED)
        gone++;
    check(gone < 9);
    for (; given < SPANS; given++)
        check(span_cache_give(spans[given], given));
    /* Half may stay. What went is among the older half, but for a few. */
    unsigned young_gone = 0;
    for (unsigned index = SPANS / 2; index < SPANS; index++)
        young_gone += span_state(spans[index]) != SPAN_CACHED;
    check(young_gone <= SPANS / 16);
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

lawful_test(what_one_thread_gave_another_takes)
{
    span_t *mine = alloc(10);
    span_t *theirs = alloc(10);
    check(span_cache_give(mine, 1));
    run(give_in_a_thread, theirs);
    check_eq(span_cache_units(), 20);
    check_eq(span_cache_count(), 2);
    check(span_cache_take(10, UNIT_SIZE) == mine); /* its own first */
    check(span_cache_take(10, UNIT_SIZE) == theirs);
    check(span_cache_take(10, UNIT_SIZE) == NULL);
}

lawful_test(all_shards_are_trimmed)
{
    for (unsigned thread = 0; thread < 10; thread++)
        run(give_in_a_thread, alloc(10));
    check_eq(span_cache_units(), 100);
    span_cache_trim(1, 1);
    check_eq(span_cache_units(), 0);
    check_eq(heap->used_units, 0);
}

enum { HELD = 160 };

static void *churn(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *held[HELD] = {NULL};
    for (unsigned step = 0; step < 20000; step++) {
        void **place = &held[next_random(&state) % HELD];
        bool zero;
        if (*place != NULL)
            large_free(span_of(*place), step);
        *place = large_alloc(40000 + next_random(&state) % 1000000, BLOCK_ALIGNMENT, &zero);
        check(*place != NULL);
        memcpy(*place, &step, sizeof step);
    }
    for (unsigned index = 0; index < HELD; index++)
        if (held[index] != NULL)
            large_free(span_of(held[index]), 20000);
    return NULL;
}

lawful_test(threads_that_churn_hold_their_share_and_no_more)
{
    run_threads(4, churn);
    check_eq(heap->used_units, span_cache_units());
    /* What it may always hold, and of each of the four shards a megabyte that no other knows of. */
    check(span_cache_units() <= SHARE + (4 * MIB + 512 * KIB) / UNIT_SIZE);
    span_cache_trim(UINT64_MAX, 1000);
    check_eq(span_cache_count(), 0);
    check_eq(heap->used_units, 0);
}

static void give_twice(void)
{
    initialise();
    span_t *span = alloc(10);
    run(give_in_a_thread, span);
    (void)span_cache_give(span, 1);
}

static void give_what_was_outgrown(void)
{
    initialise();
    span_t *span = alloc(10);
    run(give_in_a_thread, span);
    span_cache_bypass(span, 1);
}

test(a_span_is_given_once_whoever_gives_it)
{
    char words[256];
    check_eq(fresh_status(give_twice, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "double free of 0x") != NULL);
    check_eq(fresh_status(give_what_was_outgrown, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "realloc") != NULL);
}

lawful_test(large_blocks_come_back_in_their_place)
{
    void *block = large_alloc(300000, BLOCK_ALIGNMENT, &is_zero);
    check(block != NULL && is_zero);
    large_free(span_of(block), 1);
    check(large_alloc(310000, BLOCK_ALIGNMENT, &is_zero) == block && !is_zero);
}

lawful_test(a_cache_that_does_not_add_up_is_found_out)
{
    span_t *span = alloc(10);
    check(span_cache_give(span, 1) && span_cache_is_valid());
    span_set_state(span, SPAN_LARGE);
    check(!span_cache_is_valid());
    span_set_state(span, SPAN_CACHED);
    span->unit_count = 9;
    check(!span_cache_is_valid());
    span->unit_count = 10;
}

check_main()
