/* upkeep/upkeep.h: free memory goes back in the calls that free it; what is wanted again stays. */
#include "upkeep/upkeep.h"

#include "base/bits.h"
#include "large/large.h"
#include "unit/cached.h"

enum { LARGE_COUNT = 400 };

static void *blocks[LARGE_COUNT];

/* The totals may not know of a MiB. */
#define MOST_KEPT (KEEP_LEAST + 2 * MIB)

static void alloc_first(unsigned count)
{
    bool is_zero;
    for (unsigned index = 0; index < count; index++) {
        check((blocks[index] = large_alloc(MIB, 16, &is_zero)) != NULL);
        upkeep_call();
    }
}

static void alloc_larges(void)
{
    alloc_first(LARGE_COUNT);
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

/* The faults of a round of 32 MiB take 11 ms, a sixteenth of its time. */
fresh_test(rounds_of_little_memory_lose_their_pages_once)
{
    enum { LITTLE = 32 };
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    for (unsigned round = 0; round < 10; round++) {
        alloc_first(LITTLE);
        fake_os_spend(90);
        free_larges(LITTLE);
        fake_os_spend(90);
    }
    check(fake_os_purged_bytes() >= LITTLE / 2 * MIB);
    check(fake_os_purged_bytes() <= 2 * LITTLE * MIB);
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

/* Rounds between 100 and 400 MiB, then a fall below: no round came back from there. */
fresh_test(a_fall_below_all_rounds_ends_their_phase)
{
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    alloc_larges();
    for (unsigned round = 0; round < 6; round++) {
        check(free_larges(LARGE_COUNT * 3 / 4) != 0 || round != 0);
        check(free_and_dirty() > LARGE_COUNT / 2 * MIB || round == 0);
        alloc_first(LARGE_COUNT * 3 / 4);
        fake_os_spend(20);
    }
    free_larges(LARGE_COUNT);
    check(free_and_dirty() <= MOST_KEPT);
}

/* The page faults of 400 MiB take 137 ms. */
fresh_test(rounds_that_cost_little_keep_nothing)
{
    static const struct {
        uint64_t work_ms;
        bool is_kept;
    } rows[] = {{100, true}, {1000, true}, {2000, false}, {1000, true}};
    initialise();
    options.purge_delay_ms = 20000; /* the rounds are longer than half a second */
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    for (unsigned row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        size_t kept = 0;
        for (unsigned round = 0; round < 120; round++) {
            alloc_larges();
            fake_os_spend(rows[row].work_ms);
            free_larges(LARGE_COUNT);
            kept = free_and_dirty();
        }
        check(rows[row].is_kept ? kept > LARGE_COUNT / 2 * MIB : kept <= MOST_KEPT + 20 * MIB);
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

/* One call in each tenth of a second gives back what it finds in a millisecond, the others a little
 * each. */
fresh_test(due_memory_goes_by_time)
{
    initialise();
    bool is_zero;
    fake_os_set_clock(5000);
    for (unsigned index = 0; index < 8; index++)
        check((blocks[index] = huge_alloc(HUGE_GROWN_MIN, 16, &is_zero)) != NULL);
    for (unsigned index = 0; index < 8; index++)
        check(huge_free(blocks[index], 5000));
    const size_t kept = huge_statistics().cached_bytes;
    check(kept >= HUGE_GROWN_MIN);
    const uint64_t due_ms = 5000 + (uint64_t)options.purge_delay_ms + 100;
    fake_os_set_piece_cost(GIVE_BACK_MOST_US * 1000 / 4);
    upkeep(due_ms);
    const size_t first = kept - huge_statistics().cached_bytes;
    check(first >= 3 * GIVE_BACK_PIECE && first <= 12 * GIVE_BACK_PIECE); /* whole huge pages */
    upkeep(due_ms);
    const size_t second = kept - first - huge_statistics().cached_bytes;
    check(second <= 2 * MIB);
    upkeep(due_ms + PURGE_PERIOD_MS);
    check(kept - first - second - huge_statistics().cached_bytes >= 3 * GIVE_BACK_PIECE);
}

/* What went now would be touched anew at once. */
fresh_test(due_memory_waits_while_use_rises)
{
    initialise();
    bool is_zero;
    fake_os_set_clock(5000);
    check((blocks[0] = huge_alloc(HUGE_GROWN_MIN, 16, &is_zero)) != NULL);
    check(huge_free(blocks[0], 5000));
    upkeep(5000);
    const size_t kept = huge_statistics().cached_bytes;
    check(kept >= HUGE_GROWN_MIN);
    const uint64_t due_ms = 5000 + (uint64_t)options.purge_delay_ms + 100;
    check(large_alloc(2 * MIB, 16, &is_zero) != NULL);
    upkeep(due_ms);
    check(kept - huge_statistics().cached_bytes <= 2 * MIB);
    upkeep(due_ms + PURGE_PERIOD_MS);
    check_eq(huge_statistics().cached_bytes, 0);
}

/* Each page of the slabs has a block in use when they are looked through, and hardly a page has a
 * moment later. All further calls hit. Returns the bytes that go. */
static size_t free_what_is_stuck(size_t size, unsigned count, unsigned apart, unsigned far_apart)
{
    enum { MOST = 2400000, LARGE_LEFT = 60 };
    static void *small[MOST];
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(5000);
    const unsigned class = size_class_of(size);
    alloc_first(LARGE_LEFT); /* most of what is in use stays in use */
    for (unsigned index = 0; index < count; index++)
        check((small[index] = cached_alloc(class)) != NULL);
    for (unsigned index = 0; index < count; index++)
        if (index % apart != 0)
            cached_free(class, small[index]);
    for (unsigned look = 0; look < 100; look++) {
        fake_os_advance(PURGE_PERIOD_MS);
        upkeep_call();
    }
    check_eq(window_watched_granules, 0); /* nothing comes of it */
    size_t before = fake_os_purged_bytes();
    for (unsigned index = 0; index < count; index += apart)
        if (index % far_apart != 0)
            cached_free(class, small[index]);
    upkeep_call();
    for (unsigned call = 0; call < 100; call++) {
        fake_os_advance(PURGE_PERIOD_MS);
        if (window_watched_granules != 0)
            upkeep_watched_look();
    }
    check_heaps_are_valid();
    return fake_os_purged_bytes() - before;
}

fresh_test(what_seemed_stuck_is_looked_for_again_when_use_has_fallen)
{
    check(free_what_is_stuck(208, 250000, 16, 256) > (size_t)250000 * 208 / 4 * 3);
}

fresh_test(tiny_blocks_that_hold_pages_are_few_bytes)
{
    check(free_what_is_stuck(16, 2400000, 256, 2048) > (size_t)2400000 * 16 / 4 * 3);
}

check_main()
