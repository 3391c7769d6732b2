/* heap/page_heap.h, rule by rule. page_heap_random_test.c tries everything in any order. */
#include "heap/page_heap.h"

#include "base/bits.h"
#include "unit/fresh.h"

static page_heap_t *const heap = &page_heap;

static bool is_zero;

static span_t *alloc(size_t unit_count)
{
    span_t *span = page_heap_alloc(unit_count, UNIT_SIZE, &is_zero);
    check(span != NULL);
    check_eq(span->unit_count, unit_count);
    check_eq(span_state(span), SPAN_LARGE);
    check(page_heap_is_valid());
    return span;
}

static void release(span_t *span, uint64_t now_ms)
{
    page_heap_free(span, now_ms);
    check(page_heap_is_valid());
}

/* What was taken last. */
static purge_piece_t piece;

static span_t *take_old(uint64_t before_ms)
{
    return page_heap_take_old(before_ms, SIZE_MAX, &piece) ? piece.span : NULL;
}

/* Free units, counted from what the heap says of itself. */
static size_t free_units(void)
{
    return heap->mapped_units - heap->used_units;
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

lawful_test(every_unit_of_a_span_in_use_leads_to_it)
{
    span_t *span = alloc(7);
    for (size_t at = 0; at < span_size(span); at += 4096)
        check(span_of(span_start(span) + at) == span);
    memset(span_start(span), 1, span_size(span));
    const char *start = span_start(span);
    release(span, 1);
    for (size_t at = 0; at < 7 * UNIT_SIZE; at += 4096)
        check(span_of(start + at) == NULL);
}

/* Frees three neighbours in every order; they end as one. */
fresh_test(free_neighbours_are_joined_in_any_order)
{
    static const unsigned orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                          {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    initialise();
    for (unsigned order = 0; order < 6; order++) {
        span_t *fence = alloc(1);
        span_t *spans[3] = {alloc(4), alloc(5), alloc(6)};
        span_t *end_fence = alloc(1);
        size_t first = spans[0]->first_unit;
        for (unsigned step = 0; step < 3; step++)
            release(spans[orders[order][step]], 1 + step);
        span_t *whole = alloc(15);
        check_eq(whole->first_unit, first);
        check(!is_zero);
        release(whole, 1);
        release(fence, 1);
        release(end_fence, 1);
        check_eq(heap->used_units, 0);
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

lawful_test(every_alignment_is_kept)
{
    for (size_t alignment = 16; alignment < 4 * MIB; alignment *= 2)
        for (size_t count = 1; count < 40; count += 13) {
            span_t *span = page_heap_alloc(count, alignment, &is_zero);
            check(span != NULL && is_aligned(span_start(span), alignment));
            check_eq(span->unit_count, count);
            check(page_heap_is_valid());
        }
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

lawful_test(a_shrunk_span_frees_its_tail)
{
    span_t *span = alloc(20);
    page_heap_shrink(span, 8, 1);
    check(page_heap_is_valid());
    check_eq(span->unit_count, 8);
    check_eq(heap->used_units, 8);
    check(span_of(span_start(span) + 8 * UNIT_SIZE - 1) == span);
    check(span_of(span_start(span) + 8 * UNIT_SIZE) == NULL);
    check_eq(alloc(12)->first_unit, span->first_unit + 8);
}

lawful_test(a_span_is_extended_into_free_units)
{
    span_t *span = alloc(5);
    check(page_heap_extend(span, 9));
    check(page_heap_is_valid());
    check_eq(span->unit_count, 9);
    check_eq(heap->used_units, 9);
    check(span_of(span_start(span) + span_size(span) - 1) == span);
    check(span_of(span_start(span) + span_size(span)) == NULL);
    check(page_heap_extend(span, CHUNK_UNITS)); /* the whole rest */
    check(!page_heap_extend(span, CHUNK_UNITS + 1));
}

lawful_test(a_span_is_not_extended_over_others)
{
    span_t *span = alloc(5);
    span_t *gap = alloc(3);
    span_t *next = alloc(1);
    check(!page_heap_extend(span, 6));
    release(gap, 1);
    check(!page_heap_extend(span, 9));
    check_eq(span->unit_count, 5);
    check(page_heap_extend(span, 8));
    check(span_of(span_start(next)) == next);
}

lawful_test(the_oldest_span_is_taken_first_and_the_young_not_at_all)
{
    span_t *spans[4];
    size_t units[4];
    for (unsigned index = 0; index < 4; index++) {
        spans[index] = alloc(index + 1);
        units[index] = spans[index]->first_unit;
        alloc(1);
    }
    static const unsigned order[4] = {2, 0, 3, 1};
    for (unsigned step = 0; step < 4; step++)
        release(spans[order[step]], 100 * (step + 1));
    for (unsigned step = 0; step < 4; step++) {
        check(take_old(100 * (step + 1) - 1) == NULL);
        span_t *old = take_old(100 * (step + 1));
        check(old != NULL && old->first_unit == units[order[step]]);
        check(span_of(span_start(old)) == NULL);
        put_back(&piece, true, 1000);
        check(page_heap_is_valid());
    }
    check_eq(heap->free.dirty_units, 0);
    check_eq(heap->purged_units, 10);
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

lawful_test(nobody_gets_a_span_that_is_being_purged)
{
    span_t *span = alloc(6);
    size_t first = span->first_unit;
    span_t *next = alloc(6);
    alloc(1);
    release(span, 1);
    span_t *purging = take_old(1);
    check(purging != NULL);
    page_heap_free(next, 2); /* not joined with it */
    bool zero;
    span_t *other = page_heap_alloc(6, UNIT_SIZE, &zero);
    check_eq(other->first_unit, first + 6);
    put_back(&piece, true, 3);
    check(page_heap_is_valid());
    check_eq(heap->purged_units, 6);
}

lawful_test(a_purged_span_joins_neighbours_that_were_freed_meanwhile)
{
    span_t *spans[3] = {alloc(6), alloc(6), alloc(6)};
    size_t first = spans[0]->first_unit;
    alloc(1);
    release(spans[1], 1);
    check(take_old(1) != NULL);
    page_heap_free(spans[0], 2);
    page_heap_free(spans[2], 2);
    put_back(&piece, true, 3);
    check(page_heap_is_valid());
    check_eq(heap->free.dirty_units, 12);
    check_eq(alloc(18)->first_unit, first);
}

lawful_test(free_units_lead_to_no_span_after_a_purge_joined_them)
{
    span_t *first = alloc(10);
    span_t *second = alloc(4);
    const char *end = span_start(second);
    alloc(1);
    release(second, 1);
    check(take_old(1) != NULL);
    page_heap_free(first, 2);
    put_back(&piece, true, 3);
    alloc(5);
    check(span_of(end - 1) == NULL);
    check(span_of(end) == NULL);
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
    fake_os_fail_always(FAKE_MAP);
    while (meta_alloc(SPAN_DESCRIPTOR_SIZE) != NULL) {
    }
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
