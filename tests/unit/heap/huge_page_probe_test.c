/* heap/huge_page_probe.h, by blocks with mappings of their own that grow. (The page heap:
 * page_heap_warm_test.c.) */
#include "heap/huge_page_probe.h"

#include "unit/fresh.h"

#define REPORTING "/sys/module/page_reporting/parameters/page_reporting_order"

enum { LIMIT_MB = 16, SMALL_NS = 4000, SLOW_NS = 5 * 512 * 1000 };
#define STEP (4 * MIB) /* one or two whole chunks, wherever the block lies */

static char *block;
static size_t size;

static void begin(const char *order)
{
    bool is_zero;
    fake_os_set_file(REPORTING, order);
    initialise();
    options.thp_min_heap_mb = LIMIT_MB;
    fake_os_set_touch_cost(SMALL_NS);
    size = HUGE_GROWN_MIN;
    block = huge_alloc(size, 16, &is_zero);
    check(block != NULL);
}

static void grow(void)
{
    size += STEP;
    block = huge_resize(block, size);
    check(block != NULL);
}

/* Grows until the kernel is asked for huge pages; returns by how many steps above the limit. */
static size_t steps_to_huge_pages(void)
{
    for (unsigned step = 0; fake_os_count(FAKE_ADVISE) == 0; step++) {
        check(step < 100);
        grow();
    }
    check(fake_os_last(FAKE_ADVISE, 0)->wanted);
    check_eq(fake_os_last(FAKE_ADVISE, 0)->size, huge_statistics().live_bytes); /* with its room */
    return (size - LIMIT_MB * MIB) / STEP;
}

fresh_test(without_a_doubt_a_block_has_huge_pages_once_it_is_long)
{
    begin("-1\n");
    check_eq(steps_to_huge_pages(), 0);
}

fresh_test(in_doubt_a_block_tries_them_after_some_chunks)
{
    begin("9\n");
    const size_t steps = steps_to_huge_pages();
    check(steps >= HUGE_PAGE_REST / 2 && steps <= HUGE_PAGE_REST);
    grow();
    check_eq(fake_os_count(FAKE_ADVISE), 1); /* the trial was quick */
    check(huge_page_trial_pays());
}

fresh_test(a_block_whose_trial_is_slow_does_without_as_a_whole)
{
    begin("9\n");
    while (size < LIMIT_MB * MIB) grow();              /* what small pages cost is known */
    check_eq(huge_page_trial_chunks(HUGE_PAGE_REST), 0); /* and a trial is due */
    fake_os_set_touch_cost(SLOW_NS);
    grow();
    const fake_record_t *call = fake_os_last(FAKE_ADVISE, 0);
    check(!call->wanted && call->address == block);
    check_eq(call->size, size);
    check(!huge_page_trial_pays());
    grow();
    check_eq(fake_os_count(FAKE_ADVISE), 2);
}

fresh_test(who_lets_no_files_be_read_has_no_doubt)
{
    begin("9\n");
    options.watch_limits = 0;
    check_eq(steps_to_huge_pages(), 0);
    check_eq(fake_os_reads_of(REPORTING), 0);
}

fresh_test(one_long_growth_in_doubt_has_small_pages)
{
    begin("9\n");
    size += 100 * MIB;
    check((block = huge_resize(block, size)) != NULL);
    check_eq(fake_os_count(FAKE_ADVISE), 0);
    check(!huge_page_trial_pays());
}

fresh_test(who_does_not_adapt_has_no_doubt)
{
    begin("9\n");
    options.thp_adaptive = 0;
    check_eq(steps_to_huge_pages(), 0);
    check_eq(fake_os_reads_of(REPORTING), 0);
    check(huge_page_trial_pays());
}

check_main()
