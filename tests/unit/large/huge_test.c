/* large/huge.h: a mapping of its own for each block, a cache of freed ones, remapping in place. */
#include "large/huge.h"

#include "base/bits.h"
#include "unit/huge_blocks.h"

lawful_test(a_block_is_a_mapping_of_whole_pages)
{
    size_t before = fake_os_mapped_bytes();
    char *block = alloc(HUGE_GROWN_MIN + 1);
    check(is_zero);
    check_is(block, HUGE_LIVE, HUGE_GROWN_MIN + 4096);
    check(fake_os_mapped_bytes() - before >= HUGE_GROWN_MIN + 4096);
    block[0] = block[HUGE_GROWN_MIN + 4095] = 1;
    check_eq(huge_statistics().live_bytes, HUGE_GROWN_MIN + 4096);
    check_eq(huge_statistics().live_count, 1);
}

lawful_test(every_alignment_is_kept)
{
    for (size_t alignment = 16; alignment <= 64 * MIB; alignment *= 2) {
        void *block = huge_alloc(HUGE_GROWN_MIN, alignment, &is_zero);
        check(block != NULL && is_aligned(block, alignment));
        check(huge_free(block, 1));
    }
}

lawful_test(addresses_are_told_apart)
{
    char *block = alloc(HUGE_GROWN_MIN);
    check_is(block, HUGE_LIVE, HUGE_GROWN_MIN);
    check_is(block + 1, HUGE_INSIDE, HUGE_GROWN_MIN);
    check_is(block + 4096, HUGE_INSIDE, HUGE_GROWN_MIN);
    check_is(block + HUGE_GROWN_MIN - 1, HUGE_INSIDE, HUGE_GROWN_MIN);
    check_is(block + HUGE_GROWN_MIN, HUGE_NONE, 0);
    check_is(block - 1, HUGE_NONE, 0);
    check_is(NULL, HUGE_NONE, 0);
    check_is((void *)UINTPTR_MAX, HUGE_NONE, 0);
    check(!huge_free(block + 4096, 1) && !huge_free(block + 1, 1) && !huge_free(&block, 1));
}

lawful_test(a_freed_block_is_kept_and_a_second_free_is_seen)
{
    char *block = alloc(HUGE_GROWN_MIN);
    check(huge_free(block, 1));
    check_is(block, HUGE_CACHED, HUGE_GROWN_MIN);
    check(!huge_free(block, 1));
    check_eq(huge_statistics().cached_bytes, HUGE_GROWN_MIN);
    check_eq(huge_statistics().live_count, 0);
}

/* Whatever else may be live. */
lawful_test(an_address_inside_a_cached_block_is_inside)
{
    char *block = alloc(HUGE_GROWN_MIN);
    check(huge_free(block, 1));
    check_is(block + 64, HUGE_INSIDE, HUGE_GROWN_MIN);
}

lawful_test(a_kept_block_serves_requests_of_nearly_its_size)
{
    char *block = alloc(9 * MIB);
    block[0] = 1;
    check(huge_free(block, 1));
    check(alloc(9 * MIB) == block);
    check(!is_zero);
    check_eq(huge_statistics().cached_bytes, 0);
    check(huge_free(block, 1));
    check(alloc(8 * MIB) == block);
    check_is(block, HUGE_LIVE, 9 * MIB);
    check(huge_free(block, 1));
    check(alloc(8 * MIB - 4096) != block);
    check(alloc(9 * MIB + 1) != block);
    check(huge_alloc(9 * MIB, 256 * GIB, &is_zero) != block);
}

lawful_test(the_smallest_kept_block_that_fits_is_taken)
{
    char *larger = alloc(17 * MIB);
    char *smaller = alloc(16 * MIB);
    check(huge_free(smaller, 1) && huge_free(larger, 1));
    check(alloc(16 * MIB) == smaller);
    check(alloc(16 * MIB) == larger);
}

lawful_test(no_more_is_kept_than_the_options_allow)
{
    options.bigcache_max_mb = 10;
    char *blocks[3] = {alloc(5 * MIB), alloc(5 * MIB), alloc(5 * MIB)};
    size_t before = fake_os_mapped_bytes();
    for (unsigned index = 0; index < 3; index++)
        check(huge_free(blocks[index], 1));
    check_eq(huge_statistics().cached_bytes, 10 * MIB);
    check_eq(fake_os_mapped_bytes(), before - 5 * MIB);
    check_is(blocks[2], HUGE_NONE, 0);
    check(!huge_free(blocks[2], 1));
    options.bigcache = 0;
    char *block = alloc(5 * MIB);
    check(huge_free(block, 1));
    check_eq(huge_statistics().cached_bytes, 5 * MIB);
}

lawful_test(kept_blocks_go_in_the_order_of_their_age)
{
    char *blocks[3] = {alloc(5 * MIB), alloc(6 * MIB), alloc(7 * MIB)};
    check(huge_free(blocks[1], 100) && huge_free(blocks[0], 200) && huge_free(blocks[2], 300));
    check_eq(huge_give_back(99, SIZE_MAX / 2, 99), 0);
    check_eq(huge_give_back(100, SIZE_MAX / 2, 100), 6 * MIB);
    check_is(blocks[1], HUGE_NONE, 0);
    check_eq(huge_give_back(299, SIZE_MAX / 2, 299), 5 * MIB);
    check_eq(huge_release_cached(), 7 * MIB);
    check_eq(huge_statistics().cached_bytes, 0);
    check_eq(huge_release_cached(), 0);
}

/* A locked page keeps the kernel from giving back a part of the mapping. */
lawful_test(a_page_that_cannot_go_keeps_nothing_behind_it)
{
    char *locked = alloc(9 * MIB);
    char *other = alloc(5 * MIB);
    check(huge_free(locked, 100) && huge_free(other, 200));
    fake_os_fail(FAKE_PURGE, 1, 1);
    check_eq(huge_give_back(300, 3 * MIB, 300), 9 * MIB);
    check_is(locked, HUGE_NONE, 0);
    check_eq(huge_give_back(300, SIZE_MAX, 300), 5 * MIB);
    check_eq(huge_statistics().cached_bytes, 0);
}

lawful_test(fresh_memory_takes_the_place_of_what_is_kept)
{
    char *old = alloc(HUGE_GROWN_MIN);
    char *young = alloc(2 * HUGE_GROWN_MIN);
    check(huge_free(old, 1) && huge_free(young, 2));
    check_eq(huge_statistics().cached_bytes, 3 * HUGE_GROWN_MIN);
    size_t before = fake_os_purged_bytes();
    char *fresh = alloc(HUGE_GROWN_MIN + HUGE_GROWN_MIN / 2); /* fits into neither */
    check(is_zero && fresh != old && fresh != young);
    check_eq(fake_os_purged_bytes() - before, HUGE_GROWN_MIN / 2);
    check_eq(huge_statistics().cached_bytes, HUGE_GROWN_MIN + HUGE_GROWN_MIN / 2);
    check_is(old, HUGE_NONE, 0);
    check_is(young, HUGE_CACHED, 2 * HUGE_GROWN_MIN);
    /* What is left of it serves on. */
    check(alloc(2 * HUGE_GROWN_MIN) == young && !is_zero);
    check(huge_free(young, 3));
    check_eq(huge_statistics().cached_bytes, 2 * HUGE_GROWN_MIN);
    /* Growth takes the rest, and no more than there is. */
    check(huge_resize(fresh, 8 * HUGE_GROWN_MIN) != NULL);
    check_eq(huge_statistics().cached_bytes, 0);
    check_is(young, HUGE_NONE, 0);
}

lawful_test(a_block_grows_and_shrinks_with_its_contents)
{
    char *block = alloc(HUGE_GROWN_MIN);
    memset(block, 7, HUGE_GROWN_MIN);
    char *grown = huge_resize(block, 3 * HUGE_GROWN_MIN - 5);
    check(grown != NULL);
    check_is(grown, HUGE_LIVE, 3 * HUGE_GROWN_MIN);
    check(grown[0] == 7 && grown[HUGE_GROWN_MIN - 1] == 7 && grown[HUGE_GROWN_MIN] == 0);
    check_eq(huge_statistics().live_bytes, 3 * HUGE_GROWN_MIN);
    char *shrunk = huge_resize(grown, HUGE_GROWN_MIN);
    check(shrunk[HUGE_GROWN_MIN - 1] == 7);
    check_is(shrunk, HUGE_LIVE, HUGE_GROWN_MIN);
    check(huge_resize(shrunk, HUGE_GROWN_MIN - 1) == shrunk);
    check_eq(huge_statistics().live_bytes, HUGE_GROWN_MIN);
    check_eq(huge_statistics().live_count, 1);
}

lawful_test(a_refused_resize_changes_nothing)
{
    char *block = alloc(HUGE_GROWN_MIN);
    block[5] = 7;
    fake_os_fail(FAKE_REMAP, 1, 1);
    check(huge_resize(block, 2 * HUGE_GROWN_MIN) == NULL);
    check_is(block, HUGE_LIVE, HUGE_GROWN_MIN);
    check_eq(block[5], 7);
    check_eq(huge_statistics().live_bytes, HUGE_GROWN_MIN);
    check(huge_free(block, 1));
}

lawful_test(without_memory_there_is_no_block_and_no_loss)
{
    check(huge_free(alloc(HUGE_GROWN_MIN), 1)); /* so that our own structures have memory */
    huge_release_cached();
    size_t before = fake_os_mapped_bytes();
    fake_os_fail_always(FAKE_MAP);
    for (unsigned round = 0; round < 100000; round++)
        check(huge_alloc(HUGE_GROWN_MIN, 16, &is_zero) == NULL);
    check_eq(fake_os_mapped_bytes(), before);
    fake_os_fail_never();
    alloc(HUGE_GROWN_MIN);
    check_eq(huge_statistics().live_count, 1);
}

lawful_test(a_mapping_that_cannot_be_given_back_loses_its_contents)
{
    options.bigcache = 0;
    char *block = alloc(HUGE_GROWN_MIN);
    block[0] = 1;
    fake_os_fail(FAKE_RELEASE, 1, 1);
    check(huge_free(block, 1));
    check_eq(fake_os_purged_bytes(), HUGE_GROWN_MIN);
    check_eq(block[0], 0);
    check_is(block, HUGE_CACHED, HUGE_GROWN_MIN);
    check_eq(huge_statistics().cached_bytes, 0);
    /* Its addresses are not lost. */
    fake_os_forget_calls();
    check(alloc(HUGE_GROWN_MIN) == block && is_zero);
    check_eq(fake_os_count(FAKE_ANY), 0);
    check(huge_free(block, 2));
    check_is(block, HUGE_NONE, 0);
}

static void check_nothing_is_lost(size_t mapped_before)
{
    check_eq(fake_os_mapped_bytes() - mapped_before, huge_statistics().mapped_bytes);
}

fresh_test(what_alignment_leaves_over_is_not_lost_where_it_cannot_be_unmapped)
{
    enum { ALIGNMENT = 64 * MIB };
    initialise();
    check(huge_free(alloc(HUGE_GROWN_MIN), 1)); /* what describes blocks is there */
    huge_release_cached();
    size_t before = fake_os_mapped_bytes();
    fake_os_fail_always(FAKE_RELEASE);
    char *block;
    size_t mapped = 0;
    do { /* the kernel may happen to map one where it is aligned */
        block = huge_alloc(HUGE_GROWN_MIN, ALIGNMENT, &is_zero);
        check(block != NULL && is_aligned(block, ALIGNMENT));
        mapped += HUGE_GROWN_MIN;
    } while (huge_statistics().mapped_bytes == mapped);
    check(huge_statistics().mapped_bytes >= mapped + ALIGNMENT);
    check_nothing_is_lost(before);
    /* It serves, */
    fake_os_forget_calls();
    check(huge_from_cache(32 * MIB, 16) != NULL);
    check_eq(fake_os_count(FAKE_ANY), 0);
    /* and goes back once the kernel takes it. */
    fake_os_fail_never();
    check_eq(huge_release_cached(), 0);
    check_nothing_is_lost(before);
    check_eq(huge_cached_size(), 0);
}

lawful_test(a_trial_that_cannot_be_unmapped_is_not_lost)
{
    check(huge_could_map(1)); /* what describes it is there */
    size_t before = fake_os_mapped_bytes();
    fake_os_fail(FAKE_RELEASE, 1, 1);
    check(huge_could_map(3 * MIB + 1));
    check_eq(huge_statistics().mapped_bytes, 3 * MIB + 4096);
    check_nothing_is_lost(before);
    check(huge_could_map(3 * MIB + 1));
    check_eq(huge_statistics().mapped_bytes, 3 * MIB + 4096);
    fake_os_fail(FAKE_MAP, 1, 1);
    check(!huge_could_map(1));
    huge_release_cached();
    check_eq(huge_cached_size(), 0);
}

lawful_test(trials_leave_no_descriptors_behind)
{
    check(huge_could_map(MIB)); /* what describes it is there */
    size_t before = meta_size();
    for (unsigned round = 0; round < 10000; round++)
        check(huge_could_map(MIB));
    check_eq(meta_size(), before);
}

lawful_test(huge_pages_are_not_asked_for_a_program_may_touch_a_few_bytes_only)
{
    alloc(HUGE_GROWN_MIN);
    alloc(100 * MIB);
    check_eq(fake_os_count(FAKE_ADVISE), 0);
}

lawful_test(huge_pages_are_asked_for_once_when_a_block_grows_large)
{
    options.thp_min_heap_mb = 16;
    char *block = huge_resize(alloc(HUGE_GROWN_MIN), 2 * HUGE_GROWN_MIN);
    check_eq(fake_os_count(FAKE_ADVISE), 0); /* it is still small */
    block = huge_resize(block, 5 * HUGE_GROWN_MIN);
    check_eq(fake_os_count(FAKE_ADVISE), 1);
    block = huge_resize(block, 6 * HUGE_GROWN_MIN);
    block = huge_resize(block, 5 * HUGE_GROWN_MIN);
    check_eq(fake_os_count(FAKE_ADVISE), 1);
    check(block != NULL);
}

lawful_test(a_block_that_shrinks_has_no_huge_pages_asked_for)
{
    options.thp_min_heap_mb = 0;
    check(huge_resize(alloc(5 * HUGE_GROWN_MIN), 4 * HUGE_GROWN_MIN) != NULL);
    check_eq(fake_os_count(FAKE_ADVISE), 0);
}

fresh_test(every_page_size_serves)
{
    fake_os_set_page_size(64 * KIB);
    initialise();
    char *block = alloc(HUGE_GROWN_MIN + 1);
    check_is(block, HUGE_LIVE, HUGE_GROWN_MIN + 64 * KIB);
    check_is(block + 4096, HUGE_INSIDE, HUGE_GROWN_MIN + 64 * KIB);
    check(huge_resize(block, HUGE_GROWN_MIN) != NULL);
}

fresh_test(thousands_of_blocks_are_all_found)
{
    enum { COUNT = 5000 };
    static char *blocks[COUNT];
    initialise();
    for (unsigned index = 0; index < COUNT; index++)
        blocks[index] = alloc(HUGE_GROWN_MIN + index % 7 * 4096);
    for (unsigned index = 0; index < COUNT; index++)
        check_is(blocks[index], HUGE_LIVE, HUGE_GROWN_MIN + index % 7 * 4096);
    for (unsigned index = 0; index < COUNT; index++)
        check(huge_free(blocks[index], 1));
    check_eq(huge_statistics().live_bytes, 0);
    check(huge_statistics().cached_bytes <= (size_t)options.bigcache_max_mb * MIB);
}

/* ---- holes in the table of mappings ---- */

enum { MANY = 1000, LONG = 64 * KIB };
static char *many[MANY];

static void alloc_many(size_t from, size_t step)
{
    for (size_t index = from; index < MANY; index += step) {
        many[index] = alloc(LONG);
        check(is_zero);
    }
}

static size_t kept_of_many(size_t from, size_t step)
{
    size_t kept = 0;
    for (size_t index = from; index < MANY; index += step) {
        size_t size;
        kept += huge_find(many[index], &size) == HUGE_CACHED;
    }
    return kept;
}

/* As where the table is full. */
lawful_test(blocks_that_the_kernel_does_not_unmap_give_back_memory_and_serve_again)
{
    options.bigcache = 0;
    size_t before = fake_os_mapped_bytes();
    alloc_many(0, 1);
    fake_os_forget_calls();
    fake_os_fail_always(FAKE_RELEASE);
    for (size_t index = 0; index < MANY; index += 2)
        check(huge_free(many[index], 1));
    check_eq(fake_os_count(FAKE_PURGE), MANY / 2);
    check_eq(kept_of_many(0, 2), MANY / 2);
    check_eq(huge_statistics().cached_bytes, 0);
    check_eq(huge_statistics().mapped_bytes, MANY * LONG);
    /* What is kept serves, and reads as zero. */
    fake_os_forget_calls();
    alloc_many(0, 2);
    check_eq(fake_os_count(FAKE_MAP), 0);
    for (size_t index = 0; index < MANY; index++) /* 7919 is prime: in any order */
        check(huge_free(many[index * 7919 % MANY], 2));
    fake_os_fail_never();
    /* Upkeep unmaps the rest little by little: the table has room again. */
    for (size_t kept = kept_of_many(0, 1); kept > 0; kept -= smaller_of(kept, 64)) {
        huge_give_back(2, SIZE_MAX / 2, 2);
        huge_release_some_idle();
    }
    check_eq(huge_statistics().mapped_bytes, 0);
    check(fake_os_mapped_bytes() - before < 16 * MIB); /* descriptors */
}

lawful_test(a_block_that_holds_memory_is_taken_before_mere_addresses)
{
    options.bigcache = 0;
    char *addresses = alloc(9 * MIB);
    char *warm = alloc(10 * MIB);
    fake_os_fail(FAKE_RELEASE, 1, 1);
    check(huge_free(addresses, 1));
    options.bigcache = 1;
    warm[0] = 1;
    check(huge_free(warm, 2));
    check(alloc(9 * MIB) == warm && !is_zero);
    check(alloc(9 * MIB) == addresses && is_zero);
    check(huge_free(addresses, 3) && !huge_free(addresses, 3));
}

/* Locked memory: nothing can be taken away, and what is handed out again is not called zero. */
lawful_test(a_block_that_can_be_neither_unmapped_nor_purged_is_known_to_be_dirty)
{
    options.bigcache = 0;
    char *block = alloc(HUGE_GROWN_MIN);
    block[0] = 1;
    fake_os_fail(FAKE_RELEASE, 1, 1);
    fake_os_fail(FAKE_PURGE, 1, 1);
    check(huge_free(block, 1));
    check(alloc(HUGE_GROWN_MIN) == block && !is_zero);
    check_eq(block[0], 1);
}

static void *churn(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    unsigned char *mine[8] = {NULL};
    for (unsigned step = 1; step < 2000; step++) {
        size_t index = next_random(&state) % 8;
        size_t size = HUGE_GROWN_MIN + (next_random(&state) % 4) * MIB;
        bool zero;
        if (mine[index] == NULL) {
            mine[index] = huge_alloc(size, 16, &zero);
            check(!zero || mine[index][4096] == 0);
        } else if (next_random(&state) % 4 == 0) {
            check_eq(mine[index][4096], index + 1);
            mine[index] = huge_resize(mine[index], size);
        } else {
            check_eq(mine[index][4096], index + 1);
            check(huge_free(mine[index], step));
            mine[index] = NULL;
        }
        if (mine[index] != NULL)
            mine[index][4096] = (unsigned char)(index + 1);
        if (step % 50 == 0)
            huge_give_back(step - 20, SIZE_MAX / 2, step - 20);
    }
    return NULL;
}

lawful_test(threads_share_the_cache)
{
    run_threads(4, churn);
}

lawful_test(at_a_pinch_a_cached_block_of_any_length_serves)
{
    char *longer = alloc(20 * MIB);
    char *shorter = alloc(10 * MIB);
    check(huge_free(longer, 1) && huge_free(shorter, 2));
    check_eq(huge_cached_size(), 30 * MIB);
    fake_os_fail_always(FAKE_ANY);
    check(huge_alloc(5 * MIB, 16, &is_zero) == NULL);
    check(huge_from_cache(21 * MIB, 16) == NULL);
    check(huge_from_cache(100, 16) == shorter);
    check_is(shorter, HUGE_LIVE, 10 * MIB);
    check(huge_from_cache(5 * MIB, 16) == longer);
    check(huge_from_cache(16, 16) == NULL);
    check_eq(huge_cached_size(), 0);
    check_eq(huge_statistics().live_bytes, 30 * MIB);
}

check_main()
