/* heap/page_heap.h, rule by rule. page_heap_random_test.c tries everything in any order. */
#include "heap/page_heap.h"

#include "base/bits.h"
#include "unit/spans.h"

/* What was taken last. */
static purge_piece_t piece;

static span_t *take_old(uint64_t before_ms)
{
    return page_heap_take_old(before_ms, SIZE_MAX, &piece) ? piece.span : NULL;
}

lawful_test(the_first_span_maps_one_huge_page)
{
    alloc(1);
    check_eq(heap->mapped_units, CHUNK_UNITS);
    check_eq(heap->used_units, 1);
    check(is_zero);
}

lawful_test(spans_are_cut_from_the_lowest_address)
{
    size_t end = alloc(5)->first_unit + 5;
    for (size_t count = 1; count <= 10; count++) {
        span_t *span = alloc(count);
        check_eq(span->first_unit, end);
        end += count;
    }
}

lawful_test(memory_that_was_used_is_preferred_to_clean_memory)
{
    span_t *first = alloc(3);
    alloc(2);
    size_t unit = first->first_unit;
    release(first, 1);
    span_t *again = alloc(2);
    check_eq(again->first_unit, unit);
    check(!is_zero);
    check_eq(alloc(1)->first_unit, unit + 2);
    check(!is_zero);
    alloc(1);
    check(is_zero);
}

lawful_test(a_span_that_is_partly_dirty_is_called_clean_only_where_it_is)
{
    span_t *span = alloc(4);
    size_t unit = span->first_unit;
    release(span, 1); /* joined with the clean rest of the chunk */
    check_eq(heap->free.dirty_units, 4);
    check_eq(alloc(4)->first_unit, unit);
    check(!is_zero);
    check_eq(alloc(1)->first_unit, unit + 4);
    check(is_zero);
}

/* The holes have no unit more than the blocks. */
lawful_test(what_an_aligned_block_has_left_serves_the_next_one)
{
    span_t *spans[8];
    for (unsigned index = 0; index < 8; index++) {
        spans[index] = page_heap_alloc(2, 2 * UNIT_SIZE, &is_zero);
        check(spans[index] != NULL && is_aligned(span_start(spans[index]), 2 * UNIT_SIZE));
    }
    for (unsigned index = 1; index < 8; index += 2) {
        const char *start = span_start(spans[index]);
        release(spans[index], 1);
        spans[index] = page_heap_alloc(2, 2 * UNIT_SIZE, &is_zero);
        check(spans[index] != NULL && span_start(spans[index]) == start && !is_zero);
    }
}

lawful_test(what_alignment_skips_stays_free)
{
    alloc(1);
    span_t *span = page_heap_alloc(1, 256 * KIB, &is_zero);
    check(is_aligned(span_start(span), 256 * KIB));
    check_eq(heap->used_units, 2);
    check(page_heap_is_valid());
    check_eq(alloc(1)->first_unit, 1);
}

lawful_test(what_no_heap_can_hold_is_refused_without_a_call)
{
    fake_os_forget_calls();
    check(page_heap_alloc(SIZE_MAX >> UNIT_SHIFT, UNIT_SIZE, &is_zero) == NULL);
    check(page_heap_alloc(SIZE_MAX, 2 * MIB, &is_zero) == NULL);
    check_eq(fake_os_count(FAKE_ANY), 0);
}

lawful_test(a_joined_span_is_as_old_as_its_oldest_part)
{
    span_t *old = alloc(2);
    span_t *young = alloc(2);
    alloc(1);
    release(old, 100);
    release(young, 900);
    span_t *taken = take_old(100);
    check(taken != NULL);
    check_eq(taken->unit_count, 4);
}

lawful_test(a_span_whose_purge_failed_waits_another_delay)
{
    span_t *span = alloc(6);
    alloc(1);
    release(span, 1);
    check(take_old(1) != NULL);
    put_back(&piece, false, 500);
    check(page_heap_is_valid());
    check(take_old(499) == NULL);
    check(take_old(500) != NULL);
    check_eq(heap->purged_units, 0);
}

lawful_test(a_heap_grows_by_an_eighth_of_itself)
{
    fake_os_forget_calls();
    for (unsigned index = 0; index < 512; index++)
        alloc(CHUNK_UNITS);
    check_eq(heap->used_units, 512 * CHUNK_UNITS);
    check(free_units() * 8 <= heap->mapped_units);
    check(fake_os_count(FAKE_MAP_AT) < 80);
}

lawful_test(a_growth_that_is_refused_is_tried_smaller)
{
    for (unsigned index = 0; index < 32; index++)
        alloc(CHUNK_UNITS);
    while (free_units() > 0)
        alloc(1);
    fake_os_fail(FAKE_MAP_AT, 1, 1);
    size_t before = heap->mapped_units;
    alloc(1);
    check_eq(heap->mapped_units, before + CHUNK_UNITS);
}

/* ---- chunks given back ---- */

lawful_test(whole_free_chunks_are_given_back_and_used_again)
{
    span_t *first = alloc(1);
    span_t *large = alloc(5 * CHUNK_UNITS);
    alloc(1);
    size_t before = fake_os_mapped_bytes();
    check_eq(page_heap_release(SIZE_MAX), 0);
    memset(span_start(large), 1, span_size(large));
    release(large, 1);
    size_t released = page_heap_release(SIZE_MAX);
    check_eq(released, 4 * 2 * MIB); /* it begins and ends within a chunk */
    check_eq(fake_os_mapped_bytes(), before - released);
    check(page_heap_is_valid());
    check_eq(page_heap_release(SIZE_MAX), 0);
    large = alloc(3 * CHUNK_UNITS + 2); /* there is no other room for it */
    check(large->first_unit >= first->first_unit && large->first_unit < 4 * CHUNK_UNITS);
    check(page_heap_is_valid());
    check(span_of(span_start(first)) == first);
}

lawful_test(no_more_chunks_are_given_back_than_asked_for)
{
    release(alloc(5 * CHUNK_UNITS), 1);
    check_eq(page_heap_release(2 * MIB - 1), 0);
    check_eq(page_heap_release(5 * MIB), 4 * MIB);
    check_eq(heap->mapped_units, 3 * CHUNK_UNITS);
    check(page_heap_is_valid());
    check_eq(page_heap_release(SIZE_MAX), 6 * MIB);
}

lawful_test(a_chunk_given_back_may_serve_the_other_heap)
{
    release(alloc(CHUNK_UNITS), 1);
    check_eq(page_heap_release(SIZE_MAX), 2 * MIB);
    check_eq(heap->mapped_units, 0);
    span_t *span = page_heap_alloc(3, UNIT_SIZE, &is_zero);
    check(is_zero);
    check_eq(span->first_unit, 0);
}

lawful_test(a_chunk_that_cannot_be_given_back_stays_with_the_heap)
{
    alloc(1);
    span_t *span = alloc(3 * CHUNK_UNITS);
    char *start = span_start(span);
    alloc(1);
    start[0] = 1;
    release(span, 1);
    fake_os_fail(FAKE_RELEASE, 1, 1);
    check_eq(page_heap_release(SIZE_MAX), 0);
    check(page_heap_is_valid());
    check_eq(start[0], 1);
    check(page_heap_release(SIZE_MAX) >= 2 * 2 * MIB);
}

/* Otherwise the law of age breaks, and what is freed later waits behind it. */
lawful_test(a_chunk_that_cannot_be_given_back_keeps_its_place_in_the_order_of_age)
{
    span_t *chunks = alloc(3 * CHUNK_UNITS);
    alloc(1);
    span_t *young = alloc(2);
    size_t oldest = chunks->first_unit;
    alloc(1);
    release(chunks, 100);
    release(young, 200);
    fake_os_fail(FAKE_RELEASE, 1, 1);
    fake_os_fail(FAKE_PURGE, 1, 1);
    check_eq(page_heap_release(SIZE_MAX), 0);
    span_t *taken = take_old(150);
    check(taken != NULL);
    check_eq(taken->first_unit, oldest);
}

/* At a memory limit there is none for descriptors either; a whole chunk needs no more than its own.
 */
lawful_test(one_span_that_cannot_be_cut_keeps_no_other_from_going)
{
    span_t *whole = alloc(CHUNK_UNITS);
    alloc(CHUNK_UNITS - 10);
    span_t *with_ends = alloc(10 + CHUNK_UNITS + 10);
    alloc(1);
    release(whole, 1);
    release(with_ends, 2);
    refuse_descriptors();
    check_eq(page_heap_release(SIZE_MAX), 2 * MIB);
}

/* ---- threads ---- */

static void *churn(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    span_t *mine[16] = {NULL};
    for (uint64_t step = 1; step < 4000; step++) {
        size_t index = next_random(&state) % 16;
        bool zero;
        if (mine[index] != NULL)
            page_heap_free(mine[index], step);
        mine[index] = page_heap_alloc(1 + next_random(&state) % 100, UNIT_SIZE, &zero);
        check(mine[index] != NULL && span_of(span_start(mine[index])) == mine[index]);
        purge_piece_t old;
        if (step % 10 == 0 && page_heap_take_old(step - 5, SIZE_MAX, &old))
            put_back(&old, false, step);
    }
    for (unsigned index = 0; index < 16; index++)
        if (mine[index] != NULL)
            page_heap_free(mine[index], 5000);
    return NULL;
}

lawful_test(threads_share_a_heap)
{
    run_threads(4, churn);
    check_heaps_are_valid();
    check_eq(page_heap.used_units, 0);
}

check_main()
