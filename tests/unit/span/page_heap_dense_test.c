/* span/page_heap.h: blocks that fill memory have chunks of their own, which may have huge pages,
 * whatever the program does with its large blocks. */
#include "span/page_heap.h"

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
    span_t *span = page_heap_alloc_slab(SLAB_UNITS, 1, is_dense);
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
    while (page_heaps[0].mapped_units < threshold())
        alloc_large_block();
    alloc_large_block();
    check(page_heaps[0].mapped_units > page_heaps[0].used_units);
}

static bool is_huge(const span_t *span)
{
    const growth_t *newest = &page_heaps[0].newest[true];
    return unit_is_dense(span->first_unit) && newest->huge_count == newest->unit_count;
}

fresh_test(small_blocks_get_huge_pages_beside_large_ones_that_are_not_touched)
{
    begin();
    for (unsigned round = 0; round < 200; round++) {
        check(is_huge(alloc_slab(true)));
        check(!unit_is_dense(alloc_large_block()->first_unit));
    }
    check_heaps_are_valid();
}

fresh_test(a_small_heap_has_no_dense_chunks)
{
    initialise();
    while (page_heaps[0].mapped_units < threshold()) {
        check(!unit_is_dense(alloc_slab(true)->first_unit));
        alloc_large_block();
    }
    check_eq(page_heaps[0].newest[true].first_unit, SIZE_MAX);
}

fresh_test(who_wants_huge_pages_everywhere_has_no_dense_chunks)
{
    initialise();
    options.thp_min_heap_mb = 0;
    check(!unit_is_dense(alloc_slab(true)->first_unit));
    check_eq(page_heaps[0].newest[false].huge_count, page_heaps[0].newest[false].unit_count);
}

fresh_test(slabs_of_long_blocks_stand_among_large_ones)
{
    begin();
    for (unsigned round = 0; round < 200; round++)
        check(!unit_is_dense(alloc_slab(false)->first_unit));
}

/* No growth for small blocks while their chunk has room. */
fresh_test(a_dense_chunk_is_used_up)
{
    begin();
    const size_t first = alloc_slab(true)->first_unit;
    const size_t mapped = page_heaps[0].mapped_units;
    const size_t count = page_heaps[0].newest[true].unit_count;
    for (size_t slab = 1; slab < count / SLAB_UNITS; slab++)
        check_eq(alloc_slab(true)->first_unit, first + slab * SLAB_UNITS);
    check_eq(page_heaps[0].mapped_units, mapped);
    alloc_slab(true);
    check(page_heaps[0].mapped_units > mapped);
}

fresh_test(large_blocks_that_are_filled_use_dense_chunks_too)
{
    begin();
    alloc_slab(true);
    const size_t first = page_heaps[0].newest[false].first_unit;
    memset(unit_address(first), 1, CHUNK_UNITS * UNIT_SIZE);
    while (page_heaps[0].newest[false].first_unit == first)
        alloc_large_block();
    check(page_heaps[0].newest[false].is_filled);
    const size_t mapped = page_heaps[0].mapped_units;
    bool has_taken = false;
    while (page_heaps[0].mapped_units == mapped)
        has_taken |= unit_is_dense(alloc_large_block()->first_unit);
    check(has_taken);
    check_heaps_are_valid();
}

fresh_test(where_the_kernel_refuses_each_uses_what_the_other_left)
{
    begin();
    alloc_slab(true);
    fake_os_set_address_space_limit(1);
    bool is_dense;
    do {
        span_t *span = page_heap_alloc(LARGE_UNITS, UNIT_SIZE, &is_zero);
        is_dense = span != NULL && unit_is_dense(span->first_unit);
        check(span != NULL || is_dense);
    } while (!is_dense);
    span_t *slab;
    do {
        slab = page_heap_alloc_slab(SLAB_UNITS, 1, true);
        check(slab != NULL);
    } while (unit_is_dense(slab->first_unit));
    check_heaps_are_valid();
}

/* What was touched serves anybody. */
fresh_test(memory_that_is_there_goes_first_whatever_chunk_it_is_in)
{
    begin();
    span_t *slab = alloc_slab(true);
    alloc_slab(true);
    const size_t first = slab->first_unit;
    page_heap_free_slab(slab, 0, 1);
    span_t *span = page_heap_alloc(SLAB_UNITS, UNIT_SIZE, &is_zero);
    check_eq(span->first_unit, first);
}

/* Else chunks of one kind would end in spans of the other. */
fresh_test(spans_of_two_kinds_of_chunk_are_not_joined)
{
    begin();
    alloc_slab(true); /* its chunk is the last one now */
    const size_t dense = page_heaps[0].newest[true].first_unit;
    span_t *before = span_at(unit_address(dense - 1));
    check(before != NULL);
    if (span_state(before) != SPAN_FREE)
        page_heap_free(before, 1);
    span_t *first = span_at(unit_address(dense));
    page_heap_free_slab(first, 0, 1);
    check_eq(span_at(unit_address(dense))->first_unit, dense);
    check_heaps_are_valid();
}

/* ... and a block would have to be cut in two when it is freed. */
fresh_test(a_large_block_does_not_grow_into_a_chunk_of_the_other_kind)
{
    begin();
    span_t *span;
    do {
        span = alloc_large_block();
    } while (span->first_unit + span->unit_count != window_unit_count &&
             page_heaps[0].mapped_units < 64 * CHUNK_UNITS);
    size_t rest = window_unit_count - span->first_unit - span->unit_count;
    check(rest == 0 || page_heap_extend(span, span->unit_count + rest));
    page_heap_free_slab(alloc_slab(true), 0, 1); /* it stands right behind */
    check_eq(page_heaps[0].newest[true].first_unit, span->first_unit + span->unit_count);
    check(!page_heap_extend(span, span->unit_count + SLAB_UNITS));
    check_heaps_are_valid();
}

check_main()
