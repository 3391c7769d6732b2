/* keep/pressure.h: when files are read, and what limits make of memory that is free. */
#include "keep/keep.h"
#include "keep/pressure.h"

#include "options/tuning.h"
#include "upkeep/purge.h"
#include "unit/fresh.h"

#define CURRENT "/sys/fs/cgroup/memory.current"

enum { ROUND_MS = 100 };

/* So many MiB of large blocks, in pieces that the span cache would not keep. */
static void use(size_t mebibytes)
{
    bool is_zero;
    for (; mebibytes != 0; mebibytes--)
        check(page_heap_alloc(MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero) != NULL);
}

static void in_group(const char *limit, const char *used)
{
    fake_os_set_file("/proc/self/cgroup", "0::/\n");
    fake_os_set_file("/sys/fs/cgroup/memory.max", limit);
    fake_os_set_file(CURRENT, used);
}

fresh_test(a_small_process_reads_no_file)
{
    initialise();
    in_group("67108864\n", "67108864\n");
    use(30);
    for (uint64_t now_ms = 1; now_ms < 100000; now_ms += ROUND_MS)
        look_at_limits(now_ms);
    check_eq(fake_os_file_reads(), 0);
    check_eq(pressure_wait_ms(1000), 1000);
    use(2);
    look_at_limits(100001);
    check(fake_os_file_reads() != 0);
    check(pressure_is_full());
}

fresh_test(a_process_that_has_become_small_forgets_what_it_read)
{
    initialise();
    in_group("67108864\n", "67108864\n");
    bool is_zero;
    void *huge = huge_alloc(HUGE_MIN, 16, &is_zero);
    look_at_limits(1);
    check(pressure_is_full());
    check(huge_free(huge, 2));
    huge_release_cached();
    size_t reads = fake_os_file_reads();
    look_at_limits(3);
    check_eq(pressure_wait_ms(1000), 1000);
    check(!pressure_wants_look());
    check_eq(fake_os_file_reads(), reads);
}

/* Not even where next to nothing is missing to the size at which files are read. */
fresh_test(looks_by_growth_are_a_mib_apart)
{
    initialise();
    bool is_zero;
    check(huge_alloc(32 * MIB - 4 * KIB, 16, &is_zero) != NULL);
    look_at_limits(1);
    check(!pressure_wants_look());
    use(1);
    check(pressure_wants_look());
}

fresh_test(where_nothing_is_known_nothing_is_kept_back)
{
    initialise();
    use(40);
    look_at_limits(1);
    check_eq(pressure_wait_ms(1000), 1000);
    check_eq(pressure_cap(SIZE_MAX >> UNIT_SHIFT), SIZE_MAX >> UNIT_SHIFT);
    use(2000);
    check(!pressure_wants_look());
}

fresh_test(no_file_is_read_if_the_options_say_so)
{
    initialise();
    options.watch_limits = 0;
    in_group("67108864\n", "67108864\n");
    use(200);
    look_at_limits(1);
    check(!pressure_wants_look());
    check_eq(fake_os_file_reads(), 0);
}

fresh_test(files_are_read_less_often_where_there_is_room)
{
    initialise();
    in_group("1073741824\n", "104857600\n");
    use(40);
    for (uint64_t now_ms = 1; now_ms <= 60000; now_ms += ROUND_MS)
        look_at_limits(now_ms);
    check(fake_os_reads_of(CURRENT) <= 61);
    check(fake_os_reads_of("/proc/self/cgroup") <= 7);
    fake_os_set_file(CURRENT, "1003741824\n");
    size_t before = fake_os_reads_of(CURRENT);
    for (uint64_t now_ms = 61001; now_ms <= 71000; now_ms += ROUND_MS)
        look_at_limits(now_ms);
    check(fake_os_reads_of(CURRENT) - before >= 100);
}

fresh_test(near_the_limit_less_is_kept_and_not_so_long)
{
    initialise();
    in_group("536870912\n", "104857600\n");
    use(40);
    look_at_limits(1);
    check_eq(pressure_wait_ms(1000), 1000);
    check_eq(pressure_cap(SIZE_MAX) << UNIT_SHIFT, 128 * MIB);
    fake_os_set_file(CURRENT, "483183820\n"); /* 90 % */
    look_at_limits(2001);
    check_eq(pressure_wait_ms(1000), 100);
    check_eq(pressure_cap(SIZE_MAX) << UNIT_SHIFT, 32 * MIB);
    check(!pressure_is_full());
    fake_os_set_file(CURRENT, "531502202\n"); /* 99 % */
    look_at_limits(2101);
    check_eq(pressure_wait_ms(1000), 0);
    check_eq(pressure_cap(SIZE_MAX) << UNIT_SHIFT, 4 * MIB);
    check(pressure_is_full());
    check_eq(pressure_missing_addresses(), 0);
    fake_os_set_file(CURRENT, "104857600\n");
    look_at_limits(2201);
    check_eq(pressure_wait_ms(1000), 1000);
}

/* What was handed out counts before it is touched: the group's use does not show it yet. */
fresh_test(half_of_the_room_handed_out_makes_a_look_due_whatever_the_time)
{
    initialise();
    in_group("536870912\n", "104857600\n"); /* 412 MiB of room */
    use(40);
    look_at_limits(1);
    look_at_limits(1101);
    use(205);
    check(!pressure_wants_look());
    use(1);
    check(pressure_wants_look());
    bool is_zero;
    check(huge_alloc(200 * MIB, 16, &is_zero) != NULL);
    look_at_limits(1102);
    check(pressure_is_full());
    check(!pressure_wants_look());
    look_at_limits(1202); /* the group says that there is room after all */
    check(!pressure_is_full());
}

fresh_test(a_look_that_reads_nothing_puts_the_next_one_off_no_further)
{
    initialise();
    in_group("536870912\n", "104857600\n");
    use(40);
    look_at_limits(1);
    look_at_limits(1101);
    for (unsigned look = 1; look <= 7; look++) {
        use(29);
        look_at_limits(1101 + look * ROUND_MS);
        check_eq(fake_os_reads_of(CURRENT), 2);
    }
    use(3); /* 206 MiB in all */
    check(pressure_wants_look());
    look_at_limits(1900);
    check_eq(fake_os_reads_of(CURRENT), 3);
}

fresh_test(a_huge_block_makes_the_first_look_due)
{
    initialise();
    bool is_zero;
    check(!pressure_wants_look());
    check(huge_alloc(40 * MIB, 16, &is_zero) != NULL);
    check(pressure_wants_look());
}

fresh_test(long_waits_for_memory_shorten_those_of_free_memory)
{
    initialise();
    fake_os_set_file("/proc/pressure/memory", "some avg10=7.00 avg60=0.00 avg300=0.00 total=1\n");
    use(40);
    look_at_limits(1);
    check_eq(pressure_wait_ms(1000), 100);
    fake_os_set_file("/proc/pressure/memory", "some avg10=0.20 avg60=0.00 avg300=0.00 total=1\n");
    look_at_limits(LIMITS_PERIOD_MS);
    check_eq(pressure_wait_ms(1000), 100);
    look_at_limits(1 + LIMITS_PERIOD_MS);
    check_eq(pressure_wait_ms(1000), 1000);
}

/* GiB of 4 KiB pages: 262144. What has gone back still counts. */
fresh_test(a_limit_of_addresses_counts_what_the_process_has_mapped)
{
    fake_os_set_address_space_limit(GIB);
    initialise();
    use(40);
    look_at_limits(1);
    check_eq(pressure_missing_addresses(), 0);
    fake_os_set_file("/proc/self/statm", "230000 1 1 1 0 1 0\n"); /* 88 %: may be kept mapped */
    look_at_limits(1001);
    check_eq(pressure_missing_addresses(), 0);
    check_eq(pressure_cap(SIZE_MAX) << UNIT_SHIFT, 256 * MIB);
    fake_os_set_file("/proc/self/statm", "260096 1 1 1 0 1 0\n"); /* 8 MiB are left */
    look_at_limits(2001);
    check_eq(pressure_missing_addresses(), 56 * MIB);
    check_eq(pressure_wait_ms(1000), 1000);
    look_at_limits(2101); /* nothing has been read since */
    check_eq(pressure_missing_addresses(), 0);
    fake_os_set_file("/proc/self/statm", "100000 1 1 1 0 1 0\n");
    look_at_limits(3001);
    check_eq(pressure_missing_addresses(), 0);
}

fresh_test(a_limit_of_data_counts_data)
{
    fake_os_set_data_limit(GIB);
    initialise();
    use(40);
    fake_os_set_file("/proc/self/statm", "9000000 1 1 1 0 1000 0\n");
    look_at_limits(1);
    check_eq(pressure_missing_addresses(), 0);
    fake_os_set_file("/proc/self/statm", "9000000 1 1 1 0 260096 0\n");
    look_at_limits(1001);
    check_eq(pressure_missing_addresses(), 56 * MIB);
}

fresh_test(the_soft_limit_counts_what_is_held_and_reads_no_file)
{
    initialise();
    options.watch_limits = 0;
    options.limit_mb = 16;
    use(13);
    look_at_limits(1);
    check_eq(pressure_wait_ms(1000), 1000);
    check_eq(pressure_cap(SIZE_MAX) << UNIT_SHIFT, 4 * MIB);
    use(2);
    check(pressure_wants_look());
    look_at_limits(2);
    check_eq(pressure_wait_ms(1000), 100);
    use(10); /* no request fails for it */
    look_at_limits(3);
    check(pressure_is_full());
    check_eq(fake_os_file_reads(), 0);
}

fresh_test(free_pages_that_hold_memory_count_against_the_soft_limit)
{
    initialise();
    options.limit_mb = 64;
    bool is_zero;
    span_t *span = page_heap_alloc(30 * MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    check(page_heap_alloc(CHUNK_UNITS, UNIT_SIZE, &is_zero) != NULL); /* it is joined with none */
    page_heap_free(span, 1);
    span = page_heap_alloc(32 * MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    look_at_limits(1);
    check(pressure_is_full());
    check_eq(purge_idle(2), 30 * MIB);
    look_at_limits(3);
    check_eq(pressure_wait_ms(1000), 1000);
}

/* Of a range of a delay only its last part counts. */
fresh_test(near_a_limit_pages_go_after_a_tenth_of_the_delay)
{
    initialise();
    options.limit_mb = 100;
    options.purge_delay_ms = 1000;
    use(80);
    bool is_zero;
    span_t *span = page_heap_alloc(10 * MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    uint64_t now_ms = 5000;
    for (; now_ms < 6000; now_ms += ROUND_MS)
        check_eq(purge_idle(now_ms), 0);
    page_heap_free(span, now_ms);
    look_at_limits(now_ms);
    check_eq(pressure_wait_ms(1000), 100);
    check_eq(purge_idle(now_ms), 0);
    size_t purged = 0;
    uint64_t freed_ms = now_ms;
    while (purged == 0 && now_ms < freed_ms + 1000)
        purged = purge_idle(now_ms += 10);
    check_eq(purged, 10 * MIB);
    check(now_ms - freed_ms >= 100 && now_ms - freed_ms <= 250);
}

fresh_test(little_room_leaves_little_to_wait)
{
    initialise();
    options.limit_mb = 128;
    check_eq(keep_allowed_units(0) << UNIT_SHIFT, KEEP_ALWAYS);
    look_at_limits(1);
    check_eq(keep_allowed_units(0) << UNIT_SHIFT, 32 * MIB); /* a quarter of the limit */
}

fresh_test(little_room_leaves_little_in_the_caches)
{
    initialise();
    options.limit_mb = 32;
    look_at_limits(1);
    bool is_zero;
    span_t *spans[10];
    for (unsigned index = 0; index < 10; index++)
        spans[index] = page_heap_alloc(MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    for (unsigned index = 0; index < 10; index++)
        check(span_cache_give(spans[index], 1));
    check_eq(span_cache_units(), 8 * MIB >> UNIT_SHIFT);
    void *huge = huge_alloc(HUGE_MIN, 16, &is_zero);
    check(huge_free(huge, 1));
    check_eq(huge_cached_size(), 0);
    options.limit_mb = 0;
    look_at_limits(2);
    huge = huge_alloc(HUGE_MIN, 16, &is_zero);
    check(huge_free(huge, 1));
    check_eq(huge_cached_size(), HUGE_MIN);
}

check_main()
