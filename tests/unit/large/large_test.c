/* large/large.h: which blocks are whole units, which are mappings, and what a resize may do. */
#include "large/large.h"

#include "base/bits.h"
#include "heap/span_cache.h"
#include "unit/fresh.h"

static bool is_zero;

static span_t *alloc(size_t size)
{
    char *block = large_alloc(size, 16, &is_zero);
    check(block != NULL);
    span_t *span = span_of(block);
    check(span != NULL && span_start(span) == block && span_state(span) == SPAN_LARGE);
    check(span_size(span) >= size);
    return span;
}

static void check_is_huge(void *block, size_t size)
{
    size_t found = 0;
    check(block != NULL && span_of(block) == NULL);
    check_eq(huge_find(block, &found), HUGE_LIVE);
    check(found >= size);
}

lawful_test(a_block_has_the_fewest_units_that_hold_it)
{
    check_eq(alloc(1)->unit_count, 1);
    check_eq(alloc(UNIT_SIZE)->unit_count, 1);
    check_eq(alloc(UNIT_SIZE + 1)->unit_count, 2);
    check_eq(alloc(32 * KIB + 1)->unit_count, 5);
    check_eq(alloc(HUGE_MIN - 1)->unit_count, HUGE_MIN >> UNIT_SHIFT);
}

lawful_test(blocks_from_32_mib_on_are_mappings)
{
    check_is_huge(large_alloc(HUGE_MIN, 16, &is_zero), HUGE_MIN);
    check_is_huge(large_alloc(HUGE_MIN + 1, 16, &is_zero), HUGE_MIN + 1);
    check_eq(page_heap.used_units, 0);
}

lawful_test(every_alignment_is_kept)
{
    for (size_t alignment = 16; alignment <= 32 * MIB; alignment *= 2)
        for (size_t size = 1; size < 16 * MIB; size = 3 * size + 1) {
            void *block = large_alloc(size, alignment, &is_zero);
            check(block != NULL && is_aligned(block, alignment));
            memset(block, 1, smaller_of(size, 4096));
        }
}

lawful_test(what_no_address_space_holds_is_refused)
{
    fake_os_forget_calls();
    check(large_alloc((size_t)PTRDIFF_MAX + 1, 16, &is_zero) == NULL);
    check(large_alloc(SIZE_MAX, 16, &is_zero) == NULL);
    check(large_alloc(PTRDIFF_MAX, 16, &is_zero) == NULL);
    check(large_alloc(1, (size_t)1 << 63, &is_zero) == NULL);
    check_eq(fake_os_count(FAKE_ANY), 0);
    check(large_alloc(PTRDIFF_MAX / 2, 16, &is_zero) == NULL);
    check(large_alloc(1, (size_t)1 << 62, &is_zero) == NULL);
}

fresh_test(a_full_window_sends_blocks_to_mappings)
{
    fake_os_set_address_space_limit(8 * MIB / WINDOW_TIMES_SOFT_LIMIT);
    initialise();
    fake_os_set_address_space_limit(SIZE_MAX);
    unsigned in_window = 0;
    void *block = large_alloc(MIB, 16, &is_zero);
    while (span_of(block) != NULL && in_window++ < 100)
        block = large_alloc(MIB, 16, &is_zero);
    check_eq(in_window, 4); /* half of it */
    check_is_huge(block, MIB);
}

fresh_test(what_large_blocks_leave_of_the_window_is_for_slabs)
{
    void *block;
    fake_os_set_address_space_limit(8 * MIB / WINDOW_TIMES_SOFT_LIMIT);
    initialise();
    fake_os_set_address_space_limit(SIZE_MAX);
    for (unsigned index = 0; index < 10; index++)
        check(large_alloc(MIB, 16, &is_zero) != NULL);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class += 8)
        check_eq(central_list_take(class, &block + 1, 1), 1);
    check_heaps_are_valid();
}

lawful_test(obstructed_addresses_send_blocks_to_mappings)
{
    fake_os_fail_always(FAKE_MAP_AT);
    check_is_huge(large_alloc(MIB, 16, &is_zero), MIB);
    fake_os_fail_always(FAKE_MAP);
    check(large_alloc(MIB, 16, &is_zero) == NULL);
}

lawful_test(what_the_heap_of_small_blocks_has_free_serves_when_the_kernel_refuses)
{
    span_t *small = page_heap_alloc(1, UNIT_SIZE, &is_zero);
    check(small != NULL);
    fake_os_fail_always(FAKE_ANY);
    char *block = large_alloc(MIB, 16, &is_zero);
    check(block != NULL && is_zero &&
          window_tables.kinds[span_of(block)->first_unit / CHUNK_UNITS] == 0);
    check_eq(page_heap.used_units, 1 + (MIB >> UNIT_SHIFT));
    check_eq(page_heap.slab_units, 0);
    memset(block, 1, MIB);
    check(large_alloc(MIB, 16, &is_zero) == NULL);
    large_free(span_of(block), 1);
    check(large_alloc(MIB, 16, &is_zero) == block && !is_zero);
    large_free(span_of(block), 1);
    span_cache_trim(UINT64_MAX, 1);
    page_heap_free(small, 1);
    check_eq(page_heap.used_units, 0);
}

lawful_test(free_pages_serve_huge_blocks_when_the_kernel_refuses)
{
    span_t *free_one = page_heap_alloc(160 * MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    check(free_one != NULL);
    page_heap_free(free_one, 1);
    check_is_huge(large_alloc(40 * MIB, 16, &is_zero), 40 * MIB);
    fake_os_fail_always(FAKE_ANY);
    for (unsigned index = 0; index < 4; index++) {
        char *block = large_alloc(40 * MIB, MIB, &is_zero);
        check(block != NULL && is_aligned(block, MIB));
        check(span_size(span_of(block)) == 40 * MIB);
        if (index % 2 != 0)
            large_free(span_of(block), 1);
    }
}

fresh_test(the_cache_alone_serves_what_was_freed_and_nothing_else)
{
    static const size_t never[] = {
        0, SPAN_CACHED_MAX + 1, HUGE_MIN, HUGE_MIN + 1, (size_t)PTRDIFF_MAX + 1, SIZE_MAX};
    check(large_from_cache(10 * UNIT_SIZE) == NULL); /* before initialisation */
    initialise();
    check(large_from_cache(10 * UNIT_SIZE) == NULL);
    large_free(alloc(SPAN_CACHED_MAX - 1), 1);
    check(large_from_cache(SPAN_CACHED_MAX + 1) == NULL);
    check(large_from_cache(SPAN_CACHED_MAX - 1) != NULL);
    span_t *span = alloc(10 * UNIT_SIZE);
    void *block = span_start(span);
    large_free(span, 1);
    for (unsigned index = 0; index < sizeof never / sizeof never[0]; index++)
        check(large_from_cache(never[index]) == NULL);
    check(large_from_cache(10 * UNIT_SIZE + 1) == NULL);
    check(large_from_cache(9 * UNIT_SIZE + 1) == block);
    check(large_from_cache(9 * UNIT_SIZE + 1) == NULL);
}

/* A list that grows by realloc leaves every length behind that it ever had. */
lawful_test(cached_neighbours_serve_a_longer_block_together)
{
    const page_heap_t *heap = &page_heap;
    span_t *spans[4];
    for (unsigned index = 0; index < 4; index++)
        spans[index] = alloc(10 * UNIT_SIZE);
    const span_t *behind = alloc(UNIT_SIZE);
    const char *start = span_start(spans[0]);
    for (unsigned index = 0; index < 4; index++)
        large_free(spans[index], index);
    check_eq(span_cache_units(), 40);
    const span_t *longer = alloc(30 * UNIT_SIZE);
    check(span_start(longer) == start && !is_zero);
    check_eq(span_cache_units(), 10); /* the youngest stays */
    check_eq(heap->free.dirty_units, 0);
    check(span_start(behind) == start + 40 * UNIT_SIZE);
}

lawful_test(the_cache_keeps_what_free_pages_can_serve)
{
    span_t *cached = alloc(10 * UNIT_SIZE);
    alloc(UNIT_SIZE);
    span_t *aged = alloc(30 * UNIT_SIZE);
    const char *start = span_start(aged);
    alloc(UNIT_SIZE);
    page_heap_free(aged, 1);
    large_free(cached, 1);
    check(span_start(alloc(30 * UNIT_SIZE)) == start);
    check_eq(span_cache_units(), 10);
}

lawful_test(a_block_shrinks_in_its_place)
{
    span_t *span = alloc(64 * UNIT_SIZE);
    check(large_resize(span, 40 * UNIT_SIZE, 1));
    check_eq(span->unit_count, 40);
    check(large_resize(span, 1, 1));
    check_eq(span->unit_count, 1);
}

lawful_test(a_block_that_keeps_its_length_gives_nothing_up)
{
    span_t *span = alloc(64 * UNIT_SIZE);
    span_t *wall = alloc(UNIT_SIZE);
    check(large_resize(span, 64 * UNIT_SIZE, 1));
    check_eq(span->unit_count, 64);
    check_eq(page_heap.free.dirty_units, 0);
    check(span_of(span_start(span) + 63 * UNIT_SIZE) == span);
    check(span_of(span_start(wall)) == wall);
}

lawful_test(a_block_grows_in_place_while_there_is_room)
{
    span_t *span = alloc(4 * UNIT_SIZE);
    check(large_resize(span, 5 * UNIT_SIZE - 1, 1));
    check_eq(span->unit_count, 5);
    span_t *wall = alloc(UNIT_SIZE);
    check(!large_resize(span, 6 * UNIT_SIZE, 1));
    check_eq(span->unit_count, 5);
    page_heap_free(wall, 1);
    check(large_resize(span, 6 * UNIT_SIZE, 1));
}

lawful_test(a_block_does_not_become_huge_in_its_place)
{
    span_t *span = alloc(MIB);
    check(!large_resize(span, HUGE_MIN, 1));
    check(!large_resize(span, (size_t)PTRDIFF_MAX + 1, 1));
    check(!large_resize(span, SIZE_MAX, 1));
    check_eq(span->unit_count, MIB >> UNIT_SHIFT);
}

lawful_test(a_block_keeps_its_length_when_the_rest_cannot_be_described)
{
    span_t *span = alloc(64 * UNIT_SIZE);
    alloc(UNIT_SIZE);
    refuse_descriptors();
    check(large_resize(span, 40 * UNIT_SIZE, 1));
    check_eq(span->unit_count, 64);
    fake_os_fail_never();
    check(large_resize(span, 40 * UNIT_SIZE, 1));
    check_eq(span->unit_count, 40);
}

check_main()
