/* keep/keep.h, purge.h: what the option free_policy says of free pages that nobody asks to go. */
#include "keep/keep.h"
#include "upkeep/purge.h"

#include "upkeep/upkeep.h"
#include "large/large.h"
#include "keep/pressure.h"
#include "unit/fresh.h"

static span_t *alloc(size_t unit_count)
{
    bool is_zero;
    span_t *span = page_heap_alloc(unit_count, UNIT_SIZE, &is_zero);
    check(span != NULL);
    return span;
}

/* Bursts of use, and rest for three delays after each. Returns how long the pages of the last one
 * stay. */
static uint64_t last_of_bursts(void)
{
    const uint64_t delay = (uint64_t)options.purge_delay_ms;
    uint64_t now_ms = 10000;
    uint64_t freed_ms = 0;
    for (unsigned burst = 0; burst < 4; burst++) {
        span_t *span = alloc(100);
        for (unsigned look = 0; look < 3; look++, now_ms += 100)
            purge_idle(now_ms);
        page_heap_free(span, now_ms);
        freed_ms = now_ms;
        for (; now_ms < freed_ms + 3 * delay; now_ms += 100)
            if (purge_idle(now_ms) != 0 && burst == 3)
                return now_ms - freed_ms;
    }
    return UINT64_MAX;
}

fresh_test(a_batch_waits_the_delay_however_often_that_was_too_long)
{
    initialise();
    options.free_policy = FREE_BATCH;
    const uint64_t batch_ms = last_of_bursts();
    check(batch_ms >= (uint64_t)options.purge_delay_ms);
    check_eq(keep_wait_ms(), (uint64_t)options.purge_delay_ms);
}

fresh_test(where_memory_is_short_what_is_free_waits_less)
{
    initialise();
    fake_os_set_file("/proc/pressure/memory", "some avg10=7.00 avg60=0.00 avg300=0.00 total=1\n");
    (void)alloc(40 * MIB / UNIT_SIZE); /* little is never short */
    look_at_limits(60000);
    check(keep_wait_ms() < (uint64_t)options.purge_delay_ms);
}

/* Large blocks come and go, and then less than a delay goes by. All of a round is over between two
 * looks, and what it leaves is in the span cache. */
static void go_round(void)
{
    enum { COUNT = 400 };
    void *blocks[COUNT];
    bool is_zero;
    for (unsigned index = 0; index < COUNT; index++)
        blocks[index] = large_alloc(200000, 16, &is_zero);
    for (unsigned index = 0; index < COUNT; index++) {
        large_free(span_of(blocks[index]), os_clock_ms());
        upkeep(os_clock_ms());
    }
    for (unsigned call = 0; call < 400; call++) {
        fake_os_advance(1);
        upkeep(os_clock_ms());
    }
}

static void learn_rounds(void)
{
    enum { KNOWN = 6 }; /* the first rounds lose pages */
    initialise();
    options.free_policy = FREE_ADAPTIVE;
    fake_os_set_clock(10000);
    for (unsigned round = 0; round < KNOWN; round++)
        go_round();
}

fresh_test(the_adaptive_policy_sees_rounds_of_large_blocks)
{
    learn_rounds();
    size_t purged = fake_os_purged_bytes();
    for (unsigned round = 0; round < 6; round++)
        go_round();
    check_eq(fake_os_purged_bytes(), purged);
}

fresh_test(the_child_of_a_fork_learns_anew)
{
    learn_rounds();
    size_t wanted = keep_wanted_units();
    check(wanted != 0);
    keep_at_fork(FORK_PREPARE);
    keep_at_fork(FORK_PARENT);
    check_eq(keep_wanted_units(), wanted);
    keep_at_fork(FORK_PREPARE);
    keep_at_fork(FORK_CHILD);
    check_eq(keep_wanted_units(), 0);
}

fresh_test(what_is_kept_goes_on_demand_only)
{
    initialise();
    options.free_policy = FREE_KEEP;
    check_eq(last_of_bursts(), UINT64_MAX);
    page_heap_free(alloc(200 * MIB >> UNIT_SHIFT), 20000);
    upkeep(20000);
    check_eq(fake_os_purged_bytes(), 0);
    check_eq(purge_everything(20000) >> UNIT_SHIFT, 200 * MIB >> UNIT_SHIFT);
}

check_main()
