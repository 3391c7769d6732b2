/* heap/page_heap.h at a pinch: what is mapped serves without growth, units are given up, chunks
 * are released. */
#include "heap/page_heap.h"

#include "base/bits.h"
#include "os/meta.h"
#include "unit/spans.h"

lawful_test(what_is_mapped_serves_and_the_heap_does_not_grow)
{
    check(page_heap_alloc_mapped(1, UNIT_SIZE, &is_zero) == NULL);
    alloc(1);
    span_t *span = page_heap_alloc_mapped(CHUNK_UNITS - 1, UNIT_SIZE, &is_zero);
    check(span != NULL && is_zero);
    check(page_heap_alloc_mapped(1, UNIT_SIZE, &is_zero) == NULL);
    release(span, 1);
    check(page_heap_alloc_mapped(1, UNIT_SIZE, &is_zero) == span && !is_zero);
    check_eq(heap->mapped_units, CHUNK_UNITS);
}

/* A large block can have a mapping of its own; slabs have no other place. */
fresh_test(slabs_get_what_room_there_is)
{
    fake_os_set_address_space_limit(8 * MIB / WINDOW_TIMES_SOFT_LIMIT); /* of short tables */
    initialise();
    fake_os_set_address_space_limit(fake_os_mapped_bytes() + 3 * UNIT_SIZE + META_CHUNK);
    check(page_heap_alloc(1, UNIT_SIZE, &is_zero) == NULL);
    span_t *slab = page_heap_alloc_slab(4, 1, UNIT_SIZE, 1, true);
    check(slab != NULL && slab->unit_count == 2);
    slab = page_heap_alloc_slab(4, 1, UNIT_SIZE, 1, true);
    check(slab != NULL && slab->unit_count == 1);
    check(page_heap_alloc_slab(4, 1, UNIT_SIZE, 1, true) == NULL);
    check_eq(heap->mapped_units, 3);
    page_heap_free_slab(slab, 0, 1);
    check_eq(page_heap_releasable(), 0);
    fake_os_set_address_space_limit(SIZE_MAX);
    alloc(CHUNK_UNITS);
}

/* The heap grows by an eighth of itself where that still is within its share. */
fresh_test(large_blocks_take_half_of_the_window_and_no_more)
{
    fake_os_set_physical_memory(256 * MIB);
    initialise();
    size_t share = window_tables.unit_limit / 2;
    while (page_heap_alloc(CHUNK_UNITS, UNIT_SIZE, &is_zero) != NULL)
        check(heap->mapped_units <= share);
    check_eq(heap->mapped_units, share);
    check_eq(free_units(), 0);
}

lawful_test(units_that_are_given_up_leave_the_heap_for_good)
{
    span_t *used = alloc(CHUNK_UNITS - 28);
    release(alloc(10), 1); /* and 18 clean ones behind them */
    fake_os_fail_always(FAKE_ANY);
    char *given = page_heap_give_up(5);
    check(given == span_start(used) + (CHUNK_UNITS - 5) * UNIT_SIZE);
    check(page_heap_is_valid());
    check_eq(heap->mapped_units, CHUNK_UNITS - 5);
    check_eq(heap->free.dirty_units, 10);
    memset(given, 1, 5 * UNIT_SIZE);
    check(page_heap_give_up(24) == NULL);
    check(page_heap_give_up(14) != NULL);
    check_eq(heap->free.dirty_units, 9);
    check(page_heap_give_up(9) != NULL);
    check(page_heap_give_up(1) == NULL);
    check_eq(free_units(), 0);
    check(span_of(given) == NULL);
    fake_os_fail_never();
    release(used, 2);
    check_eq(free_units(), CHUNK_UNITS - 28);
    check_eq(page_heap_releasable(), 0);
    check_eq(page_heap_release(SIZE_MAX), 0);
}

lawful_test(what_can_be_released_is_known_before)
{
    span_t *spans[3] = {alloc(CHUNK_UNITS / 2), alloc(3 * CHUNK_UNITS), alloc(CHUNK_UNITS)};
    check_eq(page_heap_releasable(), page_heap_releasable());
    release(spans[1], 1);
    check_eq(page_heap_releasable(), 4 * MIB);
    release(spans[2], 1);
    size_t releasable = page_heap_releasable();
    check(releasable >= 6 * MIB);
    check_eq(page_heap_release(SIZE_MAX), releasable);
    check_eq(page_heap_releasable(), 0);
}

check_main()
