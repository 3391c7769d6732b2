/* span/page_heap.h: as few page faults as may be. What holds memory goes first, and what a program
 * fills gets huge pages. */
#include "span/page_heap.h"

#include "base/count.h"
#include "unit/fresh.h"

static bool is_zero;

static span_t *alloc(page_heap_kind_t kind, size_t unit_count)
{
    span_t *span = page_heap_alloc(kind, unit_count, UNIT_SIZE, &is_zero);
    check(span != NULL);
    return span;
}

fresh_test(what_was_purged_is_left_while_the_rest_of_the_span_holds_memory)
{
    initialise();
    span_t *span = alloc(HEAP_OF_LARGE, 10);
    const size_t first = span->first_unit;
    page_heap_free(span, 1);
    purge_piece_t piece;
    check(page_heap_take_old(HEAP_OF_LARGE, 1, 4, &piece));
    check_eq(put_back(&piece, true, 1), 4);
    const uint64_t fresh = counter_read(&page_heap_fresh_units);
    check_eq(alloc(HEAP_OF_LARGE, 6)->first_unit, first + 4);
    check_eq(counter_read(&page_heap_fresh_units), fresh);
    check_eq(alloc(HEAP_OF_LARGE, 3)->first_unit, first); /* none is left */
    check_heaps_are_valid();
}

fresh_test(an_aligned_span_is_looked_for_behind_what_was_purged)
{
    initialise();
    span_t *span = alloc(HEAP_OF_LARGE, 40);
    const size_t first = span->first_unit;
    page_heap_free(span, 1);
    purge_piece_t piece;
    check(page_heap_take_old(HEAP_OF_LARGE, 1, 3, &piece));
    check_eq(put_back(&piece, true, 1), 3);
    span = page_heap_alloc(HEAP_OF_LARGE, 2, 8 * UNIT_SIZE, &is_zero);
    check_eq(span->first_unit, first + 8);
    check_eq(span->dirty_count, 2);
    check_heaps_are_valid();
}

/* ---- huge pages ---- */

/* Grows the heap chunk by chunk, writes `written` bytes of each, and returns what was advised for
 * the chunk that it grew by in the end. */
static bool grows_with_huge_pages(page_heap_kind_t kind, size_t written)
{
    const size_t limit = (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT);
    while (page_heaps[kind].mapped_units < 2 * limit) {
        const size_t before = page_heaps[kind].mapped_units;
        span_t *span = alloc(kind, CHUNK_UNITS);
        if (page_heaps[kind].mapped_units < limit)
            check(!fake_os_last(FAKE_ADVISE, 0)->wanted);
        memset(span_start(span), 1, written);
        check_eq(page_heaps[kind].mapped_units, before + CHUNK_UNITS);
    }
    return fake_os_last(FAKE_ADVISE, 0)->wanted;
}

fresh_test(huge_pages_are_for_large_heaps_of_small_blocks)
{
    initialise();
    check(grows_with_huge_pages(HEAP_OF_SMALL, 0));
}

fresh_test(what_is_written_gets_huge_pages_among_large_blocks_too)
{
    initialise();
    check(grows_with_huge_pages(HEAP_OF_LARGE, CHUNK_UNITS * UNIT_SIZE / 8 * 7));
    check(page_heaps[HEAP_OF_LARGE].is_advised);
}

fresh_test(large_blocks_that_are_written_in_part_get_none)
{
    initialise();
    check(!grows_with_huge_pages(HEAP_OF_LARGE, CHUNK_UNITS * UNIT_SIZE / 8 * 7 - 4096));
    check(!page_heaps[HEAP_OF_LARGE].is_advised);
}

fresh_test(a_first_large_block_gets_none)
{
    initialise();
    alloc(HEAP_OF_LARGE, (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT) * 4);
    check(!fake_os_last(FAKE_ADVISE, 0)->wanted);
}

check_main()
