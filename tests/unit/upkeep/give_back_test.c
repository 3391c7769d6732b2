/* upkeep/upkeep.h: free memory goes back in the calls that free it; what is wanted again stays. */
#include "upkeep/upkeep.h"

#include "base/bits.h"
#include "large/large.h"
#include "unit/cached.h"

enum { LARGE_COUNT = 400 };

static void *blocks[LARGE_COUNT];

/* The totals may not know of a MiB. */
#define MOST_KEPT (KEEP_LEAST + 2 * MIB)

static void alloc_larges(void)
{
    bool is_zero;
    for (unsigned index = 0; index < LARGE_COUNT; index++) {
        check((blocks[index] = large_alloc(MIB, 16, &is_zero)) != NULL);
        upkeep_call();
    }
}

/* As free does. Returns the most bytes that one call gave back. */
static size_t free_larges(unsigned count)
{
    size_t most = 0;
    for (unsigned index = 0; index < count; index++) {
        size_t before = fake_os_purged_bytes();
        large_free(span_of(blocks[index]), os_clock_ms());
        upkeep(os_clock_ms());
        most = larger_of(most, fake_os_purged_bytes() - before);
    }
    return most;
}

static size_t free_and_dirty(void)
{
    return (page_heap.free.dirty_units + span_cache_units()) << UNIT_SHIFT;
}

fresh_test(calls_that_free_give_back_what_is_more_than_may_stay)
{
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    alloc_larges();
    check(free_larges(LARGE_COUNT) <= 2 * MIB); /* twice what a call frees */
    check(free_and_dirty() <= MOST_KEPT);
    check_heaps_are_valid();
}

fresh_test(a_share_of_what_is_in_use_may_stay_beside)
{
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    alloc_larges();
    free_larges(LARGE_COUNT / 2);
    const size_t allowed = KEEP_LEAST + LARGE_COUNT / 2 * MIB / KEEP_SHARE;
    check(free_and_dirty() <= allowed + 2 * MIB && free_and_dirty() >= allowed - 2 * MIB);
}

/* The span cache serves one length, the page heap any. */
fresh_test(what_stays_is_not_all_in_spans_of_one_length)
{
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    alloc_larges();
    free_larges(LARGE_COUNT);
    check(span_cache_units() <= page_heap.free.dirty_units + 4 * MIB / UNIT_SIZE);
}

/* The first round loses its pages. The second wants them again, and keeps them. Where free pages
 * lie in other places than before, some more go. */
fresh_test(rounds_lose_their_pages_once)
{
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    size_t purged = 0;
    for (unsigned round = 0; round < 10; round++) {
        alloc_larges();
        fake_os_advance(100);
        free_larges(LARGE_COUNT);
        if (round == 0)
            purged = fake_os_purged_bytes();
        fake_os_advance(100);
    }
    check(purged >= (LARGE_COUNT - 20) * MIB);
    check(fake_os_purged_bytes() <= purged * 3 / 2);
    check(free_and_dirty() > LARGE_COUNT * MIB - MIB);
}

fresh_test(rounds_with_long_pauses_lose_their_pages_each_time)
{
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    for (unsigned round = 1; round <= 4; round++) {
        alloc_larges();
        free_larges(LARGE_COUNT);
        check(free_and_dirty() <= MOST_KEPT + LARGE_COUNT * MIB / 50);
        fake_os_advance(3 * (uint64_t)options.purge_delay_ms);
    }
}

/* What rounds had kept goes with the calls of a program that does something else. */
fresh_test(what_was_kept_for_rounds_goes_when_there_are_no_more)
{
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    for (unsigned round = 0; round < 4; round++) {
        alloc_larges();
        free_larges(LARGE_COUNT);
    }
    check(free_and_dirty() > LARGE_COUNT / 2 * MIB);
    for (unsigned call = 0; call < 5000; call++) {
        fake_os_advance(1);
        upkeep(os_clock_ms());
    }
    check(free_and_dirty() <= MOST_KEPT);
}

check_main()
