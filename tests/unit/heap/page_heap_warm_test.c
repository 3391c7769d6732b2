/* heap/page_heap.h: as few page faults as may be. What holds memory goes first, and what a program
 * fills gets huge pages. */
#include "heap/page_heap.h"

#include "base/count.h"
#include "upkeep/purge.h"
#include "unit/spans.h"

lawful_test(what_was_purged_is_left_while_the_rest_of_the_span_holds_memory)
{
    span_t *span = alloc(10);
    const size_t first = span->first_unit;
    page_heap_free(span, 1);
    purge_piece_t piece;
    check(page_heap_take_old(1, 4, &piece));
    check_eq(put_back(&piece, true, 1), 4);
    const uint64_t fresh = counter_read(&pressure_figures.fresh_units);
    check_eq(alloc(6)->first_unit, first + 4);
    check_eq(counter_read(&pressure_figures.fresh_units), fresh);
    check_eq(alloc(3)->first_unit, first); /* none is left */
}

lawful_test(an_aligned_span_is_looked_for_behind_what_was_purged)
{
    span_t *span = alloc(40);
    const size_t first = span->first_unit;
    page_heap_free(span, 1);
    purge_piece_t piece;
    check(page_heap_take_old(1, 3, &piece));
    check_eq(put_back(&piece, true, 1), 3);
    span = page_heap_alloc(2, 8 * UNIT_SIZE, &is_zero);
    check_eq(span->first_unit, first + 8);
    check_eq(span->dirty_count, 2);
}

lawful_test(as_much_of_a_clean_head_is_left_as_the_request_leaves)
{
    span_t *span = alloc(10);
    const size_t first = span->first_unit;
    alloc(CHUNK_UNITS - 10); /* else it is joined with what is free behind it */
    page_heap_free(span, 1);
    purge_piece_t piece;
    check(page_heap_take_old(1, 8, &piece));
    check_eq(put_back(&piece, true, 1), 8);
    span = alloc(5);
    check_eq(span->first_unit, first + 5);
    check_eq(span->dirty_count, 2);
}

/* What a block of 20 MiB leaves serves slabs, and a block of 15 MiB, and the reverse. */
lawful_test(what_large_blocks_left_warm_serves_slabs_and_the_reverse)
{
    page_heap_free(alloc(20 * MIB >> UNIT_SHIFT), 1);
    const uint64_t fresh = counter_read(&pressure_figures.fresh_units);
    const size_t mapped = page_heap.mapped_units;
    span_t *slabs[80];
    for (unsigned index = 0; index < 80; index++) /* 5 MiB */
        slabs[index] = page_heap_alloc_slab(4, 4, UNIT_SIZE, 1, false);
    span_t *large = alloc(15 * MIB >> UNIT_SHIFT);
    for (unsigned index = 0; index < 80; index++)
        page_heap_free_slab(slabs[index], 0, 2);
    page_heap_free(large, 2);
    alloc(20 * MIB >> UNIT_SHIFT);
    check_eq(counter_read(&pressure_figures.fresh_units), fresh);
    check_eq(page_heap.mapped_units, mapped);
}

/* ---- huge pages ---- */

/* Was the heap advised last to have pages of 2 MiB? */
static bool advised_whole_chunk(void)
{
    const fake_record_t *call = fake_os_last(FAKE_ADVISE, 0);
    return call->wanted && call->size >= CHUNK_UNITS * UNIT_SIZE;
}

/* A chunk that the program fills. */
static span_t *fill_chunk(void)
{
    span_t *span = alloc(CHUNK_UNITS);
    memset(span_start(span), 1, CHUNK_UNITS * UNIT_SIZE);
    return span;
}

/* Grows the heap chunk by chunk, writes `written` bytes of each, and returns what was advised for
 * the chunk that it grew by in the end. */
static bool grows_with_huge_pages(size_t written)
{
    const size_t limit = (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT);
    while (page_heap.mapped_units < 2 * limit) {
        const size_t before = page_heap.mapped_units;
        span_t *span = alloc(CHUNK_UNITS);
        if (page_heap.mapped_units < limit)
            check(!advised_whole_chunk());
        memset(span_start(span), 1, written);
        check_eq(page_heap.mapped_units, before + CHUNK_UNITS);
    }
    return advised_whole_chunk();
}

lawful_test(small_heaps_that_are_filled_get_none)
{
    fill_chunk();
    fill_chunk();
    check(!fake_os_last(FAKE_ADVISE, 0)->wanted);
}

/* The heap grows to so many MiB, chunk by chunk, and is filled. */
static void grow_heap_to(size_t mib)
{
    while (page_heap.mapped_units << UNIT_SHIFT < mib * MIB)
        fill_chunk();
}

lawful_test(huge_pages_that_cost_too_much_are_left_out_and_tried_again)
{
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000); /* the small pages of a unit */
    grow_heap_to((size_t)options.thp_min_heap_mb - 2);
    fake_os_set_touch_cost(5 * 512 * 1000); /* as much as five times 512 of them */
    fill_chunk();
    check(advised_whole_chunk()); /* nothing was known yet */
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000);
    for (unsigned chunk = 0; chunk < HUGE_PAGE_REST; chunk++) {
        fill_chunk();
        check(!fake_os_last(FAKE_ADVISE, 0)->wanted);
    }
    grow_heap_to(200); /* trials, and quick */
    fill_chunk();
    check(advised_whole_chunk());
}

lawful_test(the_rest_of_a_growth_is_spared_when_huge_pages_turn_slow)
{
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000);
    grow_heap_to(128);
    fake_os_set_touch_cost(5 * 512 * 1000);
    span_t *span;
    do {
        span = fill_chunk();
    } while (fake_os_last(FAKE_ADVISE, 0)->wanted);
    const fake_record_t *call = fake_os_last(FAKE_ADVISE, 0);
    check(call->address == span_start(span) + CHUNK_UNITS * UNIT_SIZE);
    check(call->address + call->size == (char *)unit_address(heap->newest[false].first_unit) +
                                            heap->newest[false].unit_count * UNIT_SIZE);
}

lawful_test(nothing_is_measured_where_huge_pages_are_not_adaptive)
{
    options.thp_adaptive = 0;
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000);
    grow_heap_to((size_t)options.thp_min_heap_mb - 2);
    fake_os_set_touch_cost(5 * 512 * 1000);
    for (unsigned chunk = 0; chunk < 5; chunk++) {
        fill_chunk();
        check(advised_whole_chunk());
    }
}

lawful_test(what_is_written_gets_huge_pages)
{
    check(grows_with_huge_pages(CHUNK_UNITS * UNIT_SIZE / 8 * 7));
    check(page_heap.is_advised);
}

lawful_test(large_blocks_that_are_written_in_part_get_none)
{
    check(!grows_with_huge_pages(CHUNK_UNITS * UNIT_SIZE / 8 * 7 - 4096));
    check(!page_heap.is_advised);
}

lawful_test(a_first_large_block_gets_none)
{
    alloc((size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT) * 4);
    check(!fake_os_last(FAKE_ADVISE, 0)->wanted);
}

#define REPORTING "/sys/module/page_reporting/parameters/page_reporting_order"

static void grow_once(void)
{
    const size_t mapped = page_heap.mapped_units;
    while (page_heap.mapped_units == mapped)
        fill_chunk();
}

fresh_test(where_a_host_takes_free_memory_huge_pages_are_tried_late)
{
    fake_os_set_file(REPORTING, "9\n");
    initialise();
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000);
    const growth_t *newest = &heap->newest[false];
    grow_heap_to((size_t)options.thp_min_heap_mb);
    const size_t small = heap->mapped_units;
    for (grow_once(); newest->huge_count == 0; grow_once()) continue;
    check(heap->mapped_units - newest->unit_count - small <= HUGE_PAGE_REST * CHUNK_UNITS);
    check(heap->mapped_units - small > HUGE_PAGE_REST * CHUNK_UNITS);
    check_eq(newest->huge_count, CHUNK_UNITS); /* a trial, and a quick one */
    grow_once();
    check_eq(newest->huge_count, newest->unit_count);
    check_eq(fake_os_reads_of(REPORTING), 1);
}

fresh_test(where_no_memory_is_reported_they_are_taken_at_once)
{
    static const char *const texts[] = {"-1\n", "4294967295\n", ""};
    for (unsigned text = 0; text < 3; text++) {
        fake_os_set_file(REPORTING, texts[text]);
        check(!os_host_takes_free_memory());
    }
    initialise();
    check(grows_with_huge_pages(CHUNK_UNITS * UNIT_SIZE));
}

/* A large block makes the heap grow by 16 chunks, its first ones that may have huge pages. Returns
 * how many of their units still may in the end. */
static size_t huge_units_of_large(uint64_t huge_ns)
{
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000);
    grow_heap_to((size_t)options.thp_min_heap_mb - 2);
    fake_os_set_touch_cost(huge_ns);
    alloc(16 * CHUNK_UNITS);
    return heap->newest[false].huge_count;
}

lawful_test(large_blocks_measure_too_and_do_without_within_one_block)
{
    check_eq(huge_units_of_large(5 * 512 * 1000), CHUNK_UNITS);
    check(!fake_os_last(FAKE_ADVISE, 0)->wanted);
    check_eq(fake_os_last(FAKE_ADVISE, 0)->size, 15 * CHUNK_UNITS * UNIT_SIZE);
}

lawful_test(large_blocks_keep_huge_pages_that_are_quick)
{
    check_eq(huge_units_of_large(100 * 1000), 16 * CHUNK_UNITS);
}

check_main()
