/* cache/upkeep.h where limits leave little room. */
#include "os/helper.h"
#include "span/huge.h"
#include "span/large.h"
#include "span/pressure.h"
#include "span/purge.h"
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

static span_t *spans[MOST];
static size_t span_count;

static void free_a_span(void)
{
    if (span_count != 0)
        page_heap_free(spans[--span_count], os_clock_ms());
}

static size_t held(void)
{
    size_t units = 0;
    units += page_heaps[0].used_units + page_heaps[0].free.dirty_units;
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
    size_t mapped = page_heaps[0].mapped_units;
    fake_os_set_file("/proc/self/statm", "1048320 1 1 1 0 1 0\n");
    fake_os_advance(1000);
    upkeep(os_clock_ms());
    size_t unmapped = (mapped - page_heaps[0].mapped_units) << UNIT_SHIFT;
    check(unmapped >= 252 * MIB && unmapped <= 256 * MIB);
    fake_os_set_file("/proc/self/statm", "900000 1 1 1 0 1 0\n");
    fake_os_advance(1000);
    upkeep(os_clock_ms());
    check_eq((mapped - page_heaps[0].mapped_units) << UNIT_SHIFT, unmapped);
    for (unsigned index = 0; index < 20; index++)
        check(large_alloc(31 * MIB, 16, &is_zero) != NULL);
    check_heaps_are_valid();
}

/* A program that closes a file and opens another must get the number that it expects. */
fresh_test(the_helper_gives_back_and_reads_no_file)
{
    initialise();
    fake_os_set_clock(5000);
    fake_os_allow_helper();
    options.limit_mb = 64;
    bool is_zero;
    check(large_alloc(31 * MIB, 16, &is_zero) != NULL);
    span_t *span = page_heap_alloc(40 * MIB >> UNIT_SHIFT, UNIT_SIZE, &is_zero);
    upkeep(os_clock_ms());
    page_heap_free(span, os_clock_ms());
    upkeep(os_clock_ms()); /* no more calls */
    check_eq(fake_os_purged_bytes(), 0);
    size_t reads = fake_os_file_reads();
    check(reads != 0);
    fake_os_run_helper();
    check_eq(fake_os_purged_bytes(), 40 * MIB);
    check_eq(fake_os_file_reads(), reads);
}

/* With no further call: only blocks that have a mapping of their own are free. */
fresh_test(the_helper_gives_back_kept_huge_blocks)
{
    initialise();
    fake_os_set_clock(5000);
    fake_os_allow_helper();
    bool is_zero;
    void *block = huge_alloc(40 * MIB, 16, &is_zero);
    check(huge_free(block, os_clock_ms()));
    check_eq(huge_statistics().cached_bytes, 40 * MIB);
    upkeep(os_clock_ms());
    check(os_helper_is_running());
    fake_os_run_helper();
    check_eq(huge_statistics().cached_bytes, 0);
}

/* What is freed shortly before the helper's life is over goes back as well. */
fresh_test(the_helper_goes_on_while_it_has_work)
{
    initialise();
    fake_os_set_clock(5000);
    fake_os_allow_helper();
    bool is_zero;
    size_t units = 160 * MIB >> UNIT_SHIFT; /* more than all others together, which are in use */
    span_t *first = page_heap_alloc(units, UNIT_SIZE, &is_zero);
    uint64_t life_ms = (uint64_t)options.purge_delay_ms + HELPER_LIFE_MS;
    for (span_count = 0; span_count < life_ms / PURGE_PERIOD_MS; span_count++)
        spans[span_count] = page_heap_alloc(units / 80, UNIT_SIZE, &is_zero);
    page_heap_free(first, os_clock_ms());
    fake_os_while_helper_sleeps(free_a_span);
    upkeep(os_clock_ms());
    check(os_helper_is_running());
    fake_os_run_helper();
    fake_os_while_helper_sleeps(NULL);
    check(held() <= HELPER_LEAVES);
}

check_main()
