/* upkeep/upkeep.h: what time brings, for programs that allocate and for those that only free. */
#include "upkeep/upkeep.h"

#include "upkeep/reclaim.h"

#include <pthread.h>

#include "base/bits.h"
#include "large/large.h"
#include "unit/cached.h"

enum { CLASS = 40, MOST = 65536, FREED_UNITS = 20 };

static void *blocks[MOST];

static void alloc_many(unsigned class, unsigned count)
{
    for (unsigned index = 0; index < count; index++) {
        blocks[index] = cached_alloc(class);
        check(blocks[index] != NULL);
    }
}

/* Misses that look at the clock, without anything moving. */
static void miss(unsigned count)
{
    for (unsigned index = 0; index < count; index++)
        upkeep_miss(thread_cache_provide());
}

/* Behind it stands one in use, so that nothing is joined with it. */
static void free_a_dirty_span(void)
{
    bool is_zero;
    span_t *span = page_heap_alloc(FREED_UNITS, UNIT_SIZE, &is_zero);
    check(page_heap_alloc(1, UNIT_SIZE, &is_zero) != NULL);
    page_heap_free(span, os_clock_ms());
}

fresh_test(pages_go_after_the_delay_and_not_before)
{
    initialise();
    fake_os_set_clock(5000);
    free_a_dirty_span();
    uint64_t end = 5000 + (uint64_t)options.purge_delay_ms;
    for (uint64_t now_ms = 5000; now_ms < end; now_ms += 50)
        upkeep(now_ms);
    check_eq(fake_os_purged_bytes(), 0);
    upkeep(end + 100);
    check_eq(fake_os_purged_bytes(), FREED_UNITS * UNIT_SIZE);
}

fresh_test(the_clock_decides_and_not_the_number_of_calls)
{
    initialise();
    fake_os_set_clock(5000);
    free_a_dirty_span();
    miss(100000);
    check_eq(fake_os_purged_bytes(), 0);
    fake_os_advance((uint64_t)options.purge_delay_ms + 100);
    miss(64);
    check_eq(fake_os_purged_bytes(), FREED_UNITS * UNIT_SIZE);
}

fresh_test(a_miss_that_reaches_the_slabs_looks_at_the_clock_at_once)
{
    initialise();
    fake_os_set_clock(5000);
    free_a_dirty_span();
    check(cached_alloc(CLASS) != NULL); /* its slab is cut from that */
    fake_os_advance((uint64_t)options.purge_delay_ms + 100);
    miss(1);
    check_eq(fake_os_purged_bytes(), 0);
    check(cached_alloc(CLASS + 1) != NULL);
    const size_t taken = size_classes[CLASS].unit_count;
    check_eq(fake_os_purged_bytes(), (FREED_UNITS - taken) * UNIT_SIZE);
}

fresh_test(where_misses_are_rare_each_looks_at_the_clock)
{
    initialise();
    fake_os_set_clock(5000);
    miss(100);
    for (unsigned look = 0; look < 10; look++) {
        fake_os_advance(200);
        miss(1);
    }
    free_a_dirty_span();
    for (uint64_t ms = 200; ms < (uint64_t)options.purge_delay_ms; ms += 200) {
        fake_os_advance(200);
        miss(1);
        check_eq(fake_os_purged_bytes(), 0);
    }
    for (unsigned look = 0; look < 3; look++) {
        fake_os_advance(200);
        miss(1);
    }
    check_eq(fake_os_purged_bytes(), FREED_UNITS * UNIT_SIZE);
}

/* A bin and its spare change places: no slab, no depot, no work to do. */
fresh_test(where_misses_are_frequent_one_in_eight_looks_at_the_clock)
{
    initialise();
    fake_os_set_clock(5000);
    alloc_many(8, 300);
    for (unsigned index = 0; index < 300; index++) cached_free(8, blocks[index]);
    unsigned long looks = 0;
    unsigned long before_it = miss_count;
    for (unsigned round = 0; round < 160; round++) {
        for (unsigned index = 0; index < 200; index++) {
            uint32_t before = thread_cache_own->upkeep_in;
            blocks[index] = cached_alloc(8);
            looks += thread_cache_own->upkeep_in > before;
        }
        for (unsigned index = 0; index < 200; index++) {
            uint32_t before = thread_cache_own->upkeep_in;
            cached_free(8, blocks[index]);
            looks += thread_cache_own->upkeep_in > before;
        }
    }
    unsigned long misses = miss_count - before_it;
    check(misses >= 160 && looks >= misses / 8 - 1 && looks <= misses / 8 + 1);
}

static void *use_and_end(void *argument)
{
    cached_free(CLASS, cached_alloc(CLASS));
    return argument;
}

fresh_test(the_cache_of_a_thread_that_ended_is_taken_apart_after_half_a_second)
{
    initialise();
    fake_os_set_clock(5000);
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, use_and_end, NULL), 0);
    check_eq(pthread_join(thread, NULL), 0);
    upkeep(5400);
    check(thread_caches_block_count(CLASS) > 0);
    upkeep(6000);
    check_eq(thread_caches_block_count(CLASS), 0);
}

fresh_test(kept_huge_blocks_go_after_the_delay)
{
    initialise();
    bool is_zero;
    fake_os_set_clock(5000);
    check(huge_free(huge_alloc(HUGE_GROWN_MIN, 16, &is_zero), 5000));
    upkeep(5000 + (uint64_t)options.purge_delay_ms - 1);
    check_eq(huge_statistics().cached_bytes, HUGE_GROWN_MIN);
    upkeep(5000 + (uint64_t)options.purge_delay_ms + 100);
    check_eq(huge_statistics().cached_bytes, 0);
}

fresh_test(an_idle_bin_shrinks_while_another_is_busy)
{
    initialise();
    fake_os_set_clock(5000);
    alloc_many(CLASS, 200);
    for (unsigned index = 0; index < 200; index++)
        cached_free(CLASS, blocks[index]);
    size_t before = thread_caches_block_count(CLASS);
    check(before > size_classes[CLASS].bin_max);
    for (unsigned second = 0; second < 12; second++) {
        fake_os_advance(1000);
        miss(64);
    }
    check_eq(thread_caches_block_count(CLASS), 0);
    check_conserved(CLASS, 0);
}

fresh_test(an_idle_depot_empties)
{
    initialise();
    fake_os_set_clock(5000);
    alloc_many(1, 2000);
    for (unsigned index = 0; index < 2000; index++)
        cached_free(1, blocks[index]);
    check(depot_block_count(1) > 0);
    for (unsigned second = 0; second < 12; second++) {
        fake_os_advance(1000);
        upkeep(os_clock_ms());
    }
    check_eq(depot_block_count(1), 0);
}

/* Nothing is allocated once the clock runs. */
fresh_test(memory_comes_back_while_the_program_only_frees)
{
    initialise();
    fake_os_set_clock(5000);
    alloc_many(CLASS, MOST);
    size_t held = page_heap.used_units;
    for (unsigned index = 0; index < MOST; index++) {
        cached_free(CLASS, blocks[index]);
        if (index % 16 == 0)
            fake_os_advance(1);
    }
    check(page_heap.used_units < held / 4);
    check(fake_os_purged_bytes() > (held << UNIT_SHIFT) / 4);
    check_heaps_are_valid();
}

fresh_test(upkeep_works_at_most_ten_times_a_second)
{
    initialise();
    fake_os_set_clock(5000);
    options.purge_delay_ms = 0;
    upkeep(5000);
    for (uint64_t now_ms = 5000; now_ms < 5100; now_ms++) {
        free_a_dirty_span();
        upkeep(now_ms);
        check_eq(fake_os_purged_bytes(), 0);
    }
    fake_os_set_clock(5100);
    upkeep(5100);
    check_eq(fake_os_purged_bytes(), FREED_UNITS * UNIT_SIZE);
}

fresh_test(everything_idle_goes_when_asked_for)
{
    initialise();
    fake_os_set_clock(5000);
    bool is_zero;
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class += 5) {
        alloc_many(class, 500);
        for (unsigned index = 0; index < 500; index++)
            cached_free(class, blocks[index]);
    }
    check(huge_free(huge_alloc(HUGE_GROWN_MIN, 16, &is_zero), 5000));
    size_t purged = reclaim_all();
    size_t units = page_heap.purged_units;
    check_eq(purged, (units << UNIT_SHIFT) + HUGE_GROWN_MIN);
    check(fake_os_purged_bytes() >= units << UNIT_SHIFT); /* clean parts of chunks go along */
    check_eq(page_heap.used_units + page_heap.free.dirty_units, 0);
    check_eq(huge_statistics().cached_bytes, 0);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
        check_conserved(class, 0);
    check_eq(reclaim_all(), 0);
}

fresh_test(what_is_in_use_stays_when_everything_idle_goes)
{
    initialise();
    alloc_many(CLASS, 1000);
    for (unsigned index = 0; index < 1000; index++)
        memset(blocks[index], (int)index, size_classes[CLASS].size);
    for (unsigned index = 0; index < 1000; index += 2)
        cached_free(CLASS, blocks[index]);
    reclaim_all();
    for (unsigned index = 1; index < 1000; index += 2)
        check_eq(*(unsigned char *)blocks[index], index % 256);
    check_conserved(CLASS, 500);
}

fresh_test(a_thread_without_a_cache_may_ask_too)
{
    initialise();
    check_eq(reclaim_all(), 0);
    check(thread_cache_is_empty_cache(thread_cache_own));
}

fresh_test(at_a_memory_limit_everything_idle_is_unmapped)
{
    initialise();
    bool is_zero;
    alloc_many(CLASS, 20000);
    for (unsigned index = 0; index < 20000; index++)
        cached_free(CLASS, blocks[index]);
    check(huge_free(huge_alloc(HUGE_GROWN_MIN, 16, &is_zero), 1));
    check(reclaim_any(1));
    check_eq(page_heap.mapped_units, 0);
    check_eq(huge_statistics().cached_bytes, 0);
    check(!reclaim_any(SIZE_MAX)); /* no use in trying for that */
    alloc_many(CLASS, 20000);
    check_conserved(CLASS, 20000);
    check_heaps_are_valid();
}

fresh_test(a_limit_that_one_use_has_reached_leaves_room_for_the_next)
{
    fake_os_set_address_space_limit(48 * MIB);
    initialise();
    for (unsigned class = 30; class < FIXED_CLASS_COUNT; class += 3) {
        unsigned count = (unsigned)(24 * MIB / size_of_fixed_class(class));
        for (unsigned index = 0; index < count; index++) {
            blocks[index] = cached_alloc(class);
            if (blocks[index] == NULL && reclaim_any(1))
                blocks[index] = cached_alloc(class);
            check(blocks[index] != NULL);
        }
        for (unsigned index = 0; index < count; index++)
            cached_free(class, blocks[index]);
    }
    check_heaps_are_valid();
}

/* What the thread cache, the depots, the span cache and the cache of huge blocks hold. */
static size_t cached_things(void)
{
    size_t sum = span_cache_count() + huge_statistics().cached_bytes / MIB;
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
        sum += depot_block_count(class) + thread_caches_block_count(class);
    return sum;
}

static void fill_caches(void)
{
    bool is_zero;
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class += 5) {
        alloc_many(class, 500);
        for (unsigned index = 0; index < 500; index++)
            cached_free(class, blocks[index]);
    }
    for (unsigned index = 0; index < 20; index++)
        blocks[index] = large_alloc(300 * KIB, 16, &is_zero);
    for (unsigned index = 0; index < 20; index++)
        large_free(span_of(blocks[index]), os_clock_ms());
    check(huge_free(huge_alloc(10 * MIB, 16, &is_zero), os_clock_ms()));
}

fresh_test(a_request_that_cannot_be_had_costs_no_cache_and_few_calls)
{
    fake_os_set_address_space_limit(GIB);
    initialise();
    fill_caches();
    size_t before = cached_things();
    size_t mapped = fake_os_mapped_bytes();
    check(before > 500 && span_cache_count() == 20);
    fake_os_forget_calls();
    for (unsigned request = 0; request < 10; request++) {
        check(!reclaim_gather(GIB + request)); /* the limit is on all together */
        check(!reclaim_gather(20 * GIB));
    }
    check_eq(fake_os_count(FAKE_ANY), 20);
    check_eq(cached_things(), before);
    fake_os_forget_calls();
    check(!reclaim_gather(SIZE_MAX) && !reclaim_gather(64 * GIB + 1)); /* absurd: not even asked */
    check_eq(fake_os_count(FAKE_ANY), 0);
    check_eq(fake_os_mapped_bytes(), mapped);
}

fresh_test(a_request_that_idle_memory_makes_room_for_is_worth_it)
{
    fake_os_set_address_space_limit(GIB);
    initialise();
    fill_caches();
    size_t room = GIB - fake_os_mapped_bytes();
    bool is_zero;
    check(large_alloc(room + 9 * MIB, 16, &is_zero) == NULL);
    check(reclaim_gather(room + 9 * MIB));
    check(large_alloc(room + 9 * MIB, 16, &is_zero) == NULL);
    check(reclaim_unmap(room + 9 * MIB));
    check(large_alloc(room + 9 * MIB, 16, &is_zero) != NULL);
}

fresh_test(what_is_idle_is_gathered_before_anything_is_unmapped)
{
    initialise();
    fill_caches();
    size_t mapped = page_heap.mapped_units;
    fake_os_forget_calls();
    check(reclaim_gather(100));
    check_eq(fake_os_count(FAKE_ANY), 0);
    check_eq(page_heap.mapped_units, mapped);
    check_eq(page_heap.used_units, 0);
    check_eq(huge_cached_size(), 10 * MIB);
    check_heaps_are_valid();
}

/* Unmapping would lose what cannot be had again. */
fresh_test(nothing_is_unmapped_while_nothing_can_be_mapped)
{
    initialise();
    fill_caches();
    check(reclaim_gather(100));
    size_t mapped = fake_os_mapped_bytes();
    fake_os_fail_always(FAKE_MAP_AT);
    fake_os_fail_always(FAKE_MAP);
    check(!reclaim_unmap(100) && !reclaim_unmap(20 * MIB) && !reclaim_any(20 * MIB));
    check_eq(fake_os_mapped_bytes(), mapped);
    fake_os_fail_never();
    check(reclaim_unmap(20 * MIB));
    check_eq(page_heap.mapped_units + huge_cached_size(), 0);
    check(!reclaim_unmap(20 * MIB)); /* there is nothing left */
}

/* Nor where the limit does not allow for the request even then. */
fresh_test(nothing_is_unmapped_for_what_is_too_long_even_then)
{
    fake_os_set_address_space_limit(GIB);
    initialise();
    fill_caches();
    check(reclaim_gather(100));
    size_t mapped = fake_os_mapped_bytes();
    check(!reclaim_unmap(GIB));
    check_eq(fake_os_mapped_bytes(), mapped);
}

/* A block of `size` bytes as entry/slow.c finds one; NULL: there is none. */
static void *any_block(size_t size)
{
    bool is_zero;
    for (unsigned step = 0; step < 3; step++) {
        void *block = size <= MID_MAX ? cached_alloc(size_class_of(size))
                                      : large_alloc(size, 16, &is_zero);
        if (block != NULL || (step == 0 && !reclaim_gather(size)) ||
            (step == 1 && !reclaim_unmap(size)))
            return block;
    }
    return NULL;
}

/* Each size fills memory up to the limit; all is freed; then the kernel maps nothing any more. */
fresh_test(what_was_freed_serves_every_size_when_nothing_can_be_mapped)
{
    static const size_t sizes[] = {64 * KIB, 200, 3000, 20000, 300 * KIB, 3 * MIB, 6 * MIB};
    fake_os_set_address_space_limit(96 * MIB);
    initialise();
    for (unsigned index = 0; index < sizeof sizes / sizeof sizes[0]; index++) {
        unsigned count = 0;
        while (count < MOST && (blocks[count] = any_block(sizes[index])) != NULL)
            memset(blocks[count++], 0x5a, sizes[index]);
        check(count * sizes[index] >= smaller_of(50 * MIB, MOST * sizes[index]));
        while (count-- != 0) {
            if (sizes[index] <= MID_MAX)
                cached_free(size_class_of(sizes[index]), blocks[count]);
            else if (span_of(blocks[count]) != NULL)
                large_free(span_of(blocks[count]), 1);
            else
                check(huge_free(blocks[count], 1));
        }
        fake_os_fail_always(FAKE_MAP_AT);
        fake_os_fail_always(FAKE_MAP);
    }
    check(fake_os_count(FAKE_RELEASE) < 25);
    check_heaps_are_valid();
}

fresh_test(a_clock_that_has_just_begun_does_no_harm)
{
    initialise();
    for (uint64_t now_ms = 0; now_ms < 3000; now_ms += 10)
        upkeep(now_ms);
    check_eq(fake_os_purged_bytes(), 0);
}

/* mlockall, say. What is free in excess would be tried at every free. */
fresh_test(a_kernel_that_refuses_is_left_alone_for_a_while)
{
    initialise();
    fake_os_set_clock(5000);
    fake_os_fail_always(FAKE_PURGE);
    bool is_zero;
    span_t *excess = page_heap_alloc(200 * MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    page_heap_free(excess, os_clock_ms());
    fake_os_forget_calls();
    for (unsigned round = 0; round < 100000; round++) { /* 100 s */
        free_a_dirty_span();
        fake_os_advance(1);
        upkeep(os_clock_ms());
    }
    size_t refused = fake_os_count(FAKE_PURGE);
    check(refused > 0 && refused <= 20); /* after 1, 2, 4, 8, 16, 32 and 60 s, from two rules */
    fake_os_fail_never();
    fake_os_advance(60000);
    upkeep(os_clock_ms());
    fake_os_advance(60000);
    upkeep(os_clock_ms());
    check_eq(page_heap.free.dirty_units, 0);
    /* And is asked at once when there is something to give back. */
    free_a_dirty_span();
    upkeep(os_clock_ms());
    fake_os_advance(2 * (uint64_t)options.purge_delay_ms);
    upkeep(os_clock_ms());
    fake_os_advance(2 * (uint64_t)options.purge_delay_ms);
    upkeep(os_clock_ms());
    check_eq(page_heap.free.dirty_units, 0);
}

check_main()
