/* heap/page_heap.h: blocks that fill memory have chunks of their own, which may have huge pages,
 * whatever the program does with its large blocks. */
#include "heap/page_heap.h"

#include "slab/slab.h"
#include "keep/pressure.h"
#include "upkeep/purge.h"
#include "heap/sparse_chunks.h"
#include "unit/fresh.h"

enum { LARGE_UNITS = 24, SLAB_UNITS = 4 };

static bool is_zero;

static span_t *alloc_large_block(void)
{
    span_t *span = page_heap_alloc(LARGE_UNITS, UNIT_SIZE, &is_zero);
    check(span != NULL);
    return span;
}

static span_t *alloc_slab(bool is_dense)
{
    span_t *span = page_heap_alloc_slab(SLAB_UNITS, SLAB_UNITS, UNIT_SIZE, 1, is_dense);
    check(span != NULL);
    return span;
}

static size_t threshold(void)
{
    return (size_t)options.thp_min_heap_mb * (MIB >> UNIT_SHIFT);
}

/* Large blocks, of which nothing is touched, until the heap may have huge pages; and one more, so
 * that clean memory is left. */
static void begin(void)
{
    initialise();
    while (page_heap.mapped_units < threshold())
        alloc_large_block();
    alloc_large_block();
    check(page_heap.mapped_units > page_heap.used_units);
}

#define dense_test(name) fresh_test_within(begin, check_laws, name)

static span_t *fill_slab(void)
{
    span_t *slab = alloc_slab(true);
    memset(span_start(slab), 1, span_size(slab));
    return slab;
}

static void fill_slabs_until_dense_memory_is_huge(void)
{
    const growth_t *newest = &page_heap.newest[true];
    for (unsigned slab = 0; newest->unit_count == 0 || newest->huge_count == 0; slab++) {
        check(slab < 1000);
        fill_slab();
    }
}

dense_test(small_blocks_get_huge_pages_beside_large_ones_that_are_not_touched)
{
    fill_slab(); /* the first growth is judged by what large blocks filled */
    const growth_t *newest = &page_heap.newest[true];
    const size_t first = newest->first_unit;
    check_eq(newest->huge_count, 0);
    for (unsigned round = 0; round < 200; round++) {
        check(unit_is_dense(fill_slab()->first_unit));
        check(!unit_is_dense(alloc_large_block()->first_unit));
        check_eq(newest->huge_count, newest->first_unit == first ? 0 : newest->unit_count);
    }
    check(newest->first_unit != first);
    check_eq(page_heap.newest[false].huge_count, 0);
}

/* Of a pool that is allocated beforehand, say. */
dense_test(small_blocks_that_are_not_touched_get_none)
{
    for (unsigned slab = 0; slab < 1000; slab++)
        alloc_slab(true);
    check_eq(page_heap.newest[true].huge_count, 0);
    check(!page_heap.is_advised);
}

/* Before the heap is split, they fill what large blocks would be judged by. */
lawful_test(what_small_blocks_filled_does_not_speak_for_large_ones)
{
    while (page_heap.mapped_units < threshold())
        fill_slab();
    memset(unit_address(page_heap.newest[false].first_unit), 1, CHUNK_UNITS * UNIT_SIZE);
    fill_slab();
    check(page_heap.newest[true].huge_count != 0); /* for small ones it does */
    const size_t mapped = page_heap.mapped_units;
    while (page_heap.mapped_units == mapped)
        alloc_large_block();
    check(page_heap.newest[false].unit_count != 0);
    check_eq(page_heap.newest[false].huge_count, 0);
}

/* As for large blocks: page_heap_warm_test.c. */
lawful_test(the_first_touch_of_dense_memory_is_measured)
{
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000); /* the small pages of a unit */
    const growth_t *newest = &page_heap.newest[true];
    while (newest->unit_count < 4 * CHUNK_UNITS || newest->first_unit == SIZE_MAX)
        fill_slab();
    check_eq(newest->huge_count, newest->unit_count);
    fake_os_set_touch_cost(5 * 512 * 1000);
    while (newest->huge_count == newest->unit_count)
        fill_slab();
    check(newest->huge_count != 0); /* one was slow, and the rest of the growth is spared */
    const fake_record_t *call = fake_os_last(FAKE_ADVISE, 0);
    check(!call->wanted);
    check(call->address == unit_address(newest->first_unit + newest->huge_count));
}

/* Else each would seem cheap: beside large blocks that are not touched no small page is measured.
 */
dense_test(huge_pages_of_dense_memory_are_compared_with_small_ones)
{
    while (page_heap.mapped_units < 40 * CHUNK_UNITS)
        alloc_large_block();
    fake_os_set_touch_cost(UNIT_SIZE / 4096 * 1000);
    fill_slab();
    fake_os_set_touch_cost(5 * 512 * 1000);
    const growth_t *newest = &page_heap.newest[true];
    const size_t first = newest->first_unit;
    while (newest->first_unit == first)
        fill_slab();
    check_eq(newest->huge_count, CHUNK_UNITS); /* the first one was slow */
    check(newest->unit_count > CHUNK_UNITS);
}

/* The size of a block decides: one page, or more. */
dense_test(slabs_say_whether_their_blocks_fill_memory)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        const slab_t *slab = slab_create(class);
        check(slab != NULL);
        check_eq(unit_is_dense(slab->span.first_unit), size_classes[class].size <= 4096);
    }
}

lawful_test(a_small_heap_has_no_dense_chunks)
{
    while (page_heap.mapped_units < threshold()) {
        check(!unit_is_dense(alloc_slab(true)->first_unit));
        alloc_large_block();
    }
    check_eq(page_heap.newest[true].first_unit, SIZE_MAX);
}

lawful_test(who_wants_huge_pages_everywhere_has_no_dense_chunks)
{
    options.thp_min_heap_mb = 0;
    check(!unit_is_dense(alloc_slab(true)->first_unit));
    check_eq(page_heap.newest[false].huge_count, page_heap.newest[false].unit_count);
}

dense_test(slabs_of_long_blocks_stand_among_large_ones)
{
    for (unsigned round = 0; round < 200; round++)
        check(!unit_is_dense(alloc_slab(false)->first_unit));
}

/* No growth for small blocks while their chunk has room. */
dense_test(a_dense_chunk_is_used_up)
{
    const size_t first = alloc_slab(true)->first_unit;
    const size_t mapped = page_heap.mapped_units;
    const size_t count = page_heap.newest[true].unit_count;
    for (size_t slab = 1; slab < count / SLAB_UNITS; slab++)
        check_eq(alloc_slab(true)->first_unit, first + slab * SLAB_UNITS);
    check_eq(page_heap.mapped_units, mapped);
    alloc_slab(true);
    check(page_heap.mapped_units > mapped);
}

dense_test(large_blocks_that_are_filled_use_dense_chunks_too)
{
    alloc_slab(true);
    while (page_heap.newest[false].first_unit == SIZE_MAX)
        alloc_large_block();
    const size_t first = page_heap.newest[false].first_unit;
    memset(unit_address(first), 1, CHUNK_UNITS * UNIT_SIZE);
    while (page_heap.newest[false].first_unit == first)
        alloc_large_block();
    check(page_heap.newest[false].is_filled);
    const size_t mapped = page_heap.mapped_units;
    bool has_taken = false;
    while (page_heap.mapped_units == mapped)
        has_taken |= unit_is_dense(alloc_large_block()->first_unit);
    check(has_taken);
    check(unit_is_dense(alloc_slab(true)->first_unit)); /* small blocks still have their own */
}

dense_test(where_the_kernel_refuses_large_blocks_use_dense_memory)
{
    alloc_slab(true);
    fake_os_set_address_space_limit(1);
    while (!unit_is_dense(alloc_large_block()->first_unit))
        continue;
}

/* Nor is the kernel asked again for each of them. */
dense_test(where_the_kernel_refuses_small_blocks_use_what_large_ones_left)
{
    alloc_slab(true);
    page_heap_free(page_heap_alloc(4 * CHUNK_UNITS, UNIT_SIZE, &is_zero), 1);
    check(purge_everything(1) > 0);
    fake_os_fail_always(FAKE_MAP_AT);
    fake_os_forget_calls();
    unsigned others = 0;
    span_t *slab;
    while ((slab = page_heap_alloc_slab(SLAB_UNITS, SLAB_UNITS, UNIT_SIZE, 1, true)) != NULL)
        others += !unit_is_dense(slab->first_unit);
    check(others >= 4 * CHUNK_UNITS / SLAB_UNITS);
    check(fake_os_count(FAKE_MAP_AT) <= 2 * 10); /* for chunks, and for half of one and less */
    fake_os_fail_never();
    check(unit_is_dense(alloc_slab(true)->first_unit));
    check(!page_heap.is_refused);
}

/* Others need addresses too: a thread its stack, say. */
dense_test(where_addresses_are_counted_each_uses_what_the_other_left)
{
    alloc_slab(true);
    while (page_heap.mapped_units << UNIT_SHIFT < LIMITS_LEAST_MAPPED)
        alloc_large_block();
    page_heap_free(page_heap_alloc(4 * CHUNK_UNITS, UNIT_SIZE, &is_zero), 1);
    check(purge_everything(1) > 0);
    fake_os_set_address_space_limit(GIB);
    look_at_limits(10000);
    check(pressure_counts_addresses());
    const size_t mapped = page_heap.mapped_units;
    unsigned others = 0;
    while (others < 4 * CHUNK_UNITS / SLAB_UNITS)
        others += !unit_is_dense(alloc_slab(true)->first_unit);
    check_eq(page_heap.mapped_units, mapped);
}

/* All that is free can be had: for our own structures, and by the kernel. */
dense_test(clean_memory_of_dense_chunks_is_given_up_and_unmapped)
{
    span_t *slab = alloc_slab(true);
    const size_t dense = page_heap.newest[true].unit_count;
    page_heap_free_slab(slab, 0, 1);
    page_heap_free(page_heap_alloc(4 * CHUNK_UNITS, UNIT_SIZE, &is_zero), 1);
    check(page_heap.newest[false].first_unit != SIZE_MAX);
    check(purge_everything(1) > 0);
    const size_t releasable = page_heap_releasable();
    check(releasable >= dense << UNIT_SHIFT);
    check_eq(page_heap_release(SIZE_MAX), releasable);
    check_eq(page_heap.newest[true].first_unit, SIZE_MAX);
    check_eq(page_heap.newest[false].first_unit, SIZE_MAX);
    alloc_slab(true);
    unsigned given = 0;
    while (page_heap_give_up(SLAB_UNITS) != NULL)
        given++;
    check(given >= dense / SLAB_UNITS - 1);
    check_eq(page_heap.newest[true].first_unit, SIZE_MAX);
}

/* A chunk of dense memory lost pages and is free as a whole. May it have huge pages when it is used
 * again, if the newest of them is filled or is not? */
static bool is_huge_again(bool is_filled)
{
    begin();
    fill_slabs_until_dense_memory_is_huge();
    growth_t *newest = &page_heap.newest[true];
    const size_t chunk = newest->first_unit;
    span_t *slabs[CHUNK_UNITS / SLAB_UNITS];
    slabs[0] = span_at(unit_address(chunk));
    for (unsigned slab = 1; slab < CHUNK_UNITS / SLAB_UNITS; slab++)
        slabs[slab] = fill_slab();
    for (unsigned slab = 1; slab < CHUNK_UNITS / SLAB_UNITS; slab++)
        page_heap_free_slab(slabs[slab], 0, 1);
    check(purge_everything(1) > 0);
    check(!sparse_chunks_may_be_huge(chunk));
    page_heap_free_slab(slabs[0], 0, 2);
    newest->is_filled = is_filled;
    check_eq(fill_slab()->first_unit, chunk);
    return sparse_chunks_may_be_huge(chunk);
}

fresh_test(a_chunk_that_lost_pages_may_have_huge_ones_again)
{
    check(is_huge_again(true));
}

fresh_test(not_where_the_program_fills_no_more)
{
    check(!is_huge_again(false));
}

/* What was touched serves anybody. */
dense_test(memory_that_is_there_goes_first_whatever_chunk_it_is_in)
{
    span_t *slab = alloc_slab(true);
    alloc_slab(true);
    const size_t first = slab->first_unit;
    page_heap_free_slab(slab, 0, 1);
    span_t *span = page_heap_alloc(SLAB_UNITS, UNIT_SIZE, &is_zero);
    check_eq(span->first_unit, first);
}

/* Else chunks of one kind would end in spans of the other. */
dense_test(spans_of_two_kinds_of_chunk_are_not_joined)
{
    alloc_slab(true); /* its chunk is the last one now */
    const size_t dense = page_heap.newest[true].first_unit;
    span_t *before = span_at(unit_address(dense - 1));
    check(before != NULL);
    if (span_state(before) != SPAN_FREE)
        page_heap_free(before, 1);
    span_t *first = span_at(unit_address(dense));
    page_heap_free_slab(first, 0, 1);
    check_eq(span_at(unit_address(dense))->first_unit, dense);
}

/* ... and a block would have to be cut in two when it is freed. */
dense_test(a_large_block_does_not_grow_into_a_chunk_of_the_other_kind)
{
    span_t *span;
    do {
        span = alloc_large_block();
    } while (span->first_unit + span->unit_count != window_unit_count &&
             page_heap.mapped_units < 64 * CHUNK_UNITS);
    size_t rest = window_unit_count - span->first_unit - span->unit_count;
    check(rest == 0 || page_heap_extend(span, span->unit_count + rest));
    page_heap_free_slab(alloc_slab(true), 0, 1); /* it stands right behind */
    check_eq(page_heap.newest[true].first_unit, span->first_unit + span->unit_count);
    check(!page_heap_extend(span, span->unit_count + SLAB_UNITS));
}

check_main()
