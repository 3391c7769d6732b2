/* Large blocks that grow, come again a little longer, or are zeroed and used in part. */
#include "base/bits.h"
#include "heap/sparse_chunks.h"
#include "keep/pressure.h"
#include "large/large.h"
#include "unit/huge_blocks.h"

static char *alloc_growing(size_t size)
{
    char *block = huge_alloc_growing(size);
    check(block != NULL);
    return block;
}

lawful_test(a_block_that_grows_takes_the_start_of_a_longer_kept_one)
{
    char *old = alloc(16 * MIB);
    check(huge_free(old, 7));
    size_t mapped = fake_os_mapped_bytes();
    check(alloc_growing(4 * MIB) == old);
    check_is(old, HUGE_LIVE, 4 * MIB);
    check_is(old + 4 * MIB, HUGE_CACHED, 12 * MIB);
    check_eq(huge_statistics().cached_bytes, 12 * MIB);
    check_eq(huge_give_back(6, SIZE_MAX / 2, 8), 0);
    check_eq(fake_os_mapped_bytes(), mapped);
    check_eq(huge_give_back(7, SIZE_MAX / 2, 8), 12 * MIB); /* it was free since then */
    check_is(old, HUGE_LIVE, 4 * MIB);
}

lawful_test(a_block_that_grows_takes_in_the_kept_memory_behind_it)
{
    char *old = alloc(16 * MIB);
    check(huge_free(old, 1));
    char *block = alloc_growing(4 * MIB);
    fake_os_forget_calls();
    check(huge_resize(block, 8 * MIB) == block);
    check_eq(huge_statistics().cached_bytes, 8 * MIB);
    check(huge_resize(block, 16 * MIB) == block);
    check_is(block, HUGE_LIVE, 16 * MIB);
    check_eq(huge_statistics().cached_bytes, 0);
    check_eq(fake_os_count(FAKE_ANY), 0);
    check(huge_resize(block, 24 * MIB) != NULL);
    check_eq(fake_os_count(FAKE_REMAP), 1);
}

/* The rest of the first would hold the second, too, and neither could grow on. */
fresh_test(blocks_that_grow_side_by_side_take_kept_blocks_of_their_own)
{
    enum { COUNT = 4 };
    char *blocks[COUNT];
    initialise();
    for (unsigned index = 0; index < COUNT; index++)
        blocks[index] = alloc(4 * MIB);
    for (unsigned index = 0; index < COUNT; index++)
        check(huge_free(blocks[index], 1));
    for (unsigned index = 0; index < COUNT; index++)
        blocks[index] = alloc_growing(MIB);
    fake_os_forget_calls();
    for (size_t size = 2 * MIB; size <= 4 * MIB; size *= 2)
        for (unsigned index = 0; index < COUNT; index++)
            check(huge_resize(blocks[index], size) == blocks[index]);
    check_eq(fake_os_count(FAKE_ANY), 0);
}

lawful_test(a_block_of_another_mapping_is_not_taken_in)
{
    char *moved = alloc(8 * MIB);
    moved = huge_resize(moved, 24 * MIB); /* the kernel joins it with no other from now on */
    check(huge_free(moved, 1));
    char *block = alloc_growing(8 * MIB);
    check(block == moved);
    check(huge_resize(block, 16 * MIB) == block); /* it is one mapping with what it was cut off */
    check_eq(huge_statistics().live_bytes, 16 * MIB);
}

/* The kernel may keep them as two, as where a fork lies between, and then moves no whole. */
lawful_test(a_block_that_was_mapped_by_itself_is_not_taken_in)
{
    char *first = alloc(8 * MIB);
    char *second = alloc(8 * MIB);
    char *low = first < second ? first : second;
    char *high = low == first ? second : first;
    if (low + 8 * MIB != high)
        check_skip("the kernel does not map them side by side");
    check(huge_free(high, 1));
    fake_os_forget_calls();
    check(huge_resize(low, 10 * MIB) != NULL);
    check_eq(fake_os_count(FAKE_REMAP), 1);
}

/* The kernel refuses to take the block back, and its pages. */
lawful_test(an_idle_block_is_not_cut)
{
    char *old = alloc(32 * MIB);
    check(huge_free(old, 1));
    fake_os_fail_always(FAKE_RELEASE);
    fake_os_fail(FAKE_PURGE, 1, 1000);
    (void)huge_give_back(1, SIZE_MAX / 2, 1);
    for (unsigned round = 0; round < 3; round++)
        alloc_growing(4 * MIB);
    check_is(old, HUGE_CACHED, 32 * MIB);
    (void)huge_release_cached(); /* it ends */
    fake_os_fail_never();
    check_eq(huge_release_cached(), 0);
}

/* Else what a growing block was given beyond its need would never be purged. */
lawful_test(what_a_growing_block_does_not_need_goes_back)
{
    options.bigcache_max_mb = 1024;
    enum { COUNT = 16 };
    for (uint64_t round = 1; round <= COUNT; round++) {
        check(huge_free(alloc(32 * MIB), round));
        alloc_growing(4 * MIB);
    }
    check(huge_give_back(COUNT, SIZE_MAX / 2, COUNT) != 0);
    check_eq(huge_statistics().cached_bytes, 0);
    check_eq(huge_statistics().live_bytes, COUNT * 4 * MIB);
}

lawful_test(a_block_is_not_cut_where_the_rest_cannot_be_described)
{
    char *old = alloc(16 * MIB);
    check(huge_free(old, 1));
    refuse_descriptors();
    check(huge_alloc_growing(4 * MIB) == NULL);
    fake_os_fail_never();
    check_is(old, HUGE_CACHED, 16 * MIB);
}

lawful_test(a_request_slightly_longer_than_a_kept_block_gets_it_lengthened)
{
    char *old = alloc(32 * MIB);
    old[0] = 1;
    check(huge_free(old, 1));
    fake_os_forget_calls();
    const char *block = alloc(33 * MIB);
    check(!is_zero && block[0] == 1);
    check_eq(fake_os_count(FAKE_MAP), 0);
    check_eq(huge_statistics().cached_bytes, 0);
    check_is(block, HUGE_LIVE, 33 * MIB);
}

lawful_test(a_kept_block_that_cannot_be_lengthened_stays_kept)
{
    char *old = alloc(32 * MIB);
    check(huge_free(old, 1));
    fake_os_fail_always(FAKE_REMAP);
    fake_os_forget_calls();
    check(alloc(33 * MIB) != old);
    check(is_zero);
    fake_os_fail_never();
    check_eq(fake_os_count(FAKE_MAP), 1);
}

lawful_test(a_huge_block_that_grows_in_small_steps_is_seldom_remapped)
{
    size_t size = 8 * MIB;
    char *block = alloc(size);
    fake_os_forget_calls();
    while (size < 16 * MIB)
        block = huge_resize(block, size += 64 * KIB);
    check(fake_os_count(FAKE_REMAP) <= 8);
    check(huge_statistics().live_bytes >= size && huge_statistics().live_bytes < 18 * MIB);
    block = huge_resize(block, size - 64 * KIB); /* it grows no more */
    check_is(block, HUGE_LIVE, size - 64 * KIB);
}

lawful_test(a_huge_block_that_doubles_gets_no_room)
{
    char *block = alloc(8 * MIB);
    for (size_t size = 16 * MIB; size <= 64 * MIB; size *= 2) {
        block = huge_resize(block, size);
        check_is(block, HUGE_LIVE, size);
    }
}

lawful_test(room_is_given_to_a_span_that_was_moved_for_a_small_step)
{
    bool zero;
    const span_t *first = large_alloc_span(MIB, 16, &zero);
    span_t *second = large_alloc_span(MIB + MIB / 16, 16, &zero);
    check_eq(large_size_with_room(NULL, MIB), MIB);
    check_eq(large_size_with_room(first, MIB + UNIT_SIZE), MIB + UNIT_SIZE); /* the first move */
    large_note_moved(first, second, MIB);
    size_t wanted = MIB + MIB / 8;
    check(large_size_with_room(second, wanted) > wanted);
    check_eq(large_size_with_room(second, 2 * MIB), 2 * MIB); /* no small step */
    large_note_stayed(second, MIB + UNIT_SIZE, 1);
    check_eq(span_size(second), MIB + MIB / 16);
    large_note_stayed(second, MIB, 1); /* it shrinks */
    check_eq(span_size(second), MIB);
    check_eq(large_size_with_room(second, wanted), wanted);
}

/* Of `share` touched pages of 100 of a zeroed block that is freed then: did they go? */
static bool pages_go(size_t size, bool is_dense)
{
    char *block = large_alloc_zeroed(size, 16, &is_zero);
    check(block != NULL && is_zero);
    for (size_t at = 0; at < size; at += is_dense ? 4096 : MIB)
        block[at] = 1;
    fake_os_forget_calls();
    if (huge_find(block, &(size_t){0}) == HUGE_LIVE)
        check(huge_free(block, 1));
    else
        large_free(span_of(block), 1);
    return fake_os_count(FAKE_PURGE) + fake_os_count(FAKE_RELEASE) != 0;
}

lawful_test(a_zeroed_block_of_which_little_was_touched_keeps_no_page)
{
    check(pages_go(16 * MIB, false));
    check_eq(page_heap.free.dirty_units, 0);
    check(pages_go(40 * MIB, false));
    check(!pages_go(16 * MIB, true));
    check(!pages_go(40 * MIB, true));
}

lawful_test(one_touched_page_is_few)
{
    char *block = large_alloc_zeroed(16 * MIB, 16, &is_zero);
    check(block != NULL && is_zero);
    block[0] = 1;
    large_free(span_of(block), 1);
    check_eq(page_heap.free.dirty_units, 0);
}

/* Its pages are fresh again, which limits of memory have to know. */
lawful_test(a_kept_block_that_is_zeroed_by_the_kernel_counts_as_fresh)
{
    for (unsigned round = 0; round < 8; round++)
        check(pages_go(16 * MIB, false));
    char *block = alloc(40 * MIB);
    check(huge_free(block, 1));
    uint64_t before = pressure_figures.fresh_units;
    check(huge_alloc_zeroed(40 * MIB, 16, &is_zero) == block && is_zero);
    check_eq(pressure_figures.fresh_units - before, (40 * MIB) >> UNIT_SHIFT);
}

lawful_test(where_zeroed_blocks_are_sparse_they_leave_dirty_memory_to_others)
{
    for (unsigned round = 0; round < 8; round++)
        check(pages_go(24 * MIB, false));
    bool zero;
    span_t *dirty = large_alloc_span(8 * MIB, 16, &zero);
    memset(span_start(dirty), 1, span_size(dirty));
    page_heap_free(dirty, 1);
    size_t before = page_heap.free.dirty_units;
    char *block = large_alloc_zeroed(8 * MIB, 16, &is_zero);
    check(is_zero && block[0] == 0);
    check_eq(page_heap.free.dirty_units, before);
    fake_os_fail_always(FAKE_COMMIT); /* the heap cannot grow: dirty units have to serve */
    while ((block = large_alloc_zeroed(8 * MIB, 16, &is_zero)) != NULL &&
           page_heap.free.dirty_units == before) {
    }
    check(block != NULL && is_zero);
    for (size_t at = 0; at < 8 * MIB; at += 4096)
        check_eq(block[at], 0);
}

static unsigned huge_chunks(const char *block, size_t size)
{
    unsigned count = 0;
    for (size_t at = 0; at < size; at += CHUNK_UNITS * UNIT_SIZE)
        count += sparse_chunks_may_be_huge(unit_of(block + at));
    return count;
}

/* A page that is touched would bring 2 MiB. */
fresh_test(where_zeroed_blocks_are_sparse_they_have_no_huge_pages)
{
    bool zero;
    initialise();
    options.thp_min_heap_mb = 0;
    options.thp_adaptive = 0;
    for (unsigned round = 0; round < 8; round++)
        check(pages_go(16 * MIB, false));
    char *block = large_alloc_zeroed(16 * MIB, 16, &is_zero);
    check(is_zero);
    check_eq(huge_chunks(block, 16 * MIB), 0);
    large_free(span_of(block), 1);
    span_t *filled = large_alloc_span(16 * MIB, 16, &zero);
    check(huge_chunks(span_start(filled), 16 * MIB) >= 7);
}

/* Else each dense block among sparse ones would make the heap longer. */
lawful_test(dirty_memory_serves_before_the_heap_grows)
{
    for (unsigned round = 0; round < 8; round++)
        check(pages_go(16 * MIB, false));
    bool zero;
    size_t all = page_heap.mapped_units - page_heap.used_units;
    span_t *dirty = large_alloc_span(all << UNIT_SHIFT, 16, &zero);
    memset(span_start(dirty), 1, span_size(dirty));
    page_heap_free(dirty, 1);
    size_t mapped = page_heap.mapped_units;
    check(large_alloc_zeroed(4 * MIB, 16, &is_zero) != NULL && is_zero);
    check_eq(page_heap.mapped_units, mapped);
}

/* The kernel takes whole pages, and a unit is less than one. */
fresh_test(a_block_that_fills_no_whole_pages_keeps_them)
{
    fake_os_set_page_size(64 * KIB);
    initialise();
    check(!pages_go(16 * MIB + UNIT_SIZE, false));
}

check_main()
