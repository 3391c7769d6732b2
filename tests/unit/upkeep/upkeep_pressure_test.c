/* upkeep/upkeep.h where limits leave little room. */
#include "large/huge.h"
#include "large/large.h"
#include "keep/pressure.h"
#include "upkeep/purge.h"
#include "unit/cached.h"

enum { CLASS = 40, MOST = 5000 };

static void *blocks[MOST];

/* Blocks come and go, and caches keep them. */
static void fill_caches(void)
{
    bool is_zero;
    for (unsigned index = 0; index < MOST; index++)
        blocks[index] = cached_alloc(CLASS);
    for (unsigned index = 0; index < MOST; index++)
        cached_free(CLASS, blocks[index]);
    for (unsigned index = 0; index < 20; index++)
        blocks[index] = large_alloc(MIB, 16, &is_zero);
    for (unsigned index = 0; index < 20; index++)
        large_free(span_of(blocks[index]), os_clock_ms());
}

static size_t held(void)
{
    size_t units = 0;
    units += page_heap.used_units + page_heap.free.dirty_units;
    return units << UNIT_SHIFT;
}

/* A second of looks, within which a thread misses now and then. */
static void let_a_second_pass(void)
{
    for (unsigned look = 0; look < 11; look++) {
        fake_os_advance(100);
        upkeep_look(thread_cache_provide());
    }
}

fresh_test(at_the_soft_limit_nothing_that_is_free_is_kept)
{
    initialise();
    fake_os_set_clock(5000);
    options.purge_delay_ms = 3600000;
    options.limit_mb = 8;
    bool is_zero;
    void *used = large_alloc(10 * MIB, 16, &is_zero);
    fill_caches();
    let_a_second_pass();
    let_a_second_pass();
    check_eq(held(), 10 * MIB);
    check_conserved(CLASS, 0);
    large_free(span_of(used), os_clock_ms());
}

fresh_test(without_a_limit_all_of_it_is_kept_for_the_delay)
{
    initialise();
    fake_os_set_clock(5000);
    options.purge_delay_ms = 3600000;
    bool is_zero;
    check(large_alloc(10 * MIB, 16, &is_zero) != NULL);
    fill_caches();
    let_a_second_pass();
    let_a_second_pass();
    check(held() >= 30 * MIB);
}

/* What is free goes before the program touches what it has just got. */
fresh_test(free_memory_goes_before_a_group_is_full)
{
    initialise();
    fake_os_set_clock(5000);
    fake_os_set_file("/proc/self/cgroup", "0::/\n");
    fake_os_set_file("/sys/fs/cgroup/memory.max", "134217728\n"); /* 128 MiB */
    fake_os_set_file("/sys/fs/cgroup/memory.current", "67108864\n");
    bool is_zero;
    span_t *span = page_heap_alloc(30 * MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    check(page_heap_alloc(CHUNK_UNITS, UNIT_SIZE, &is_zero) != NULL); /* it is joined with none */
    page_heap_free(span, os_clock_ms());
    upkeep(os_clock_ms());
    fake_os_advance(100);
    check(large_alloc(31 * MIB, 16, &is_zero) != NULL);
    upkeep(os_clock_ms());
    check_eq(fake_os_purged_bytes(), 0);
    check(huge_alloc(62 * MIB, 16, &is_zero) != NULL);
    upkeep(os_clock_ms()); /* within the same millisecond */
    check_eq(fake_os_purged_bytes(), 30 * MIB);
}

/* What the process needs for something else: here 1 MiB is left, and 255 more should be. */
fresh_test(near_a_limit_of_addresses_some_free_chunks_are_unmapped)
{
    fake_os_set_address_space_limit(4 * GIB);
    initialise();
    fake_os_set_clock(5000);
    fake_os_set_file("/proc/self/statm", "100000 1 1 1 0 1 0\n");
    bool is_zero;
    void *given[20];
    for (unsigned index = 0; index < 20; index++)
        given[index] = large_alloc(31 * MIB, 16, &is_zero);
    for (unsigned index = 0; index < 20; index++)
        large_free(span_of(given[index]), os_clock_ms());
    upkeep(os_clock_ms());
    size_t mapped = page_heap.mapped_units;
    fake_os_set_file("/proc/self/statm", "1048320 1 1 1 0 1 0\n");
    fake_os_advance(1000);
    upkeep(os_clock_ms());
    size_t unmapped = (mapped - page_heap.mapped_units) << UNIT_SHIFT;
    check(unmapped >= 252 * MIB && unmapped <= 256 * MIB);
    fake_os_set_file("/proc/self/statm", "900000 1 1 1 0 1 0\n");
    fake_os_advance(1000);
    upkeep(os_clock_ms());
    check_eq((mapped - page_heap.mapped_units) << UNIT_SHIFT, unmapped);
    for (unsigned index = 0; index < 20; index++)
        check(large_alloc(31 * MIB, 16, &is_zero) != NULL);
    check_heaps_are_valid();
}

check_main()
