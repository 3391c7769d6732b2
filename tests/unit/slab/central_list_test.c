/* slab/central_list.h: batches in and out, slabs that empty, and the final message of a misuse. */
#include "slab/central_list.h"

#include "os/os.h"
#include "options/tuning.h"
#include "slab/slab.h"
#include "keep/keep.h"
#include "unit/fresh.h"

enum { CLASS = 1, LARGEST = FIXED_CLASS_COUNT - 1, MOST = 20000 };

static void *blocks[MOST];

static unsigned take(unsigned class, unsigned count)
{
    return central_list_take(class, blocks + count, count);
}

static size_t blocks_per_slab(unsigned class)
{
    return size_classes[class].block_count;
}

static void check_counts(unsigned class, size_t slabs, size_t free_blocks)
{
    central_statistics_t statistics = central_list_statistics(class);
    check_eq(statistics.slab_count, slabs);
    check_eq(statistics.block_count, slabs * blocks_per_slab(class));
    check_eq(statistics.free_count, free_blocks);
}

lawful_test(the_lowest_address_is_on_top)
{
    check_eq(take(CLASS, 100), 100);
    for (unsigned index = 1; index < 100; index++)
        check((char *)blocks[index - 1] == (char *)blocks[index] + 16);
    check_counts(CLASS, 1, blocks_per_slab(CLASS) - 100);
}

lawful_test(a_batch_may_span_slabs)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        unsigned count = (unsigned)blocks_per_slab(class) + 3;
        check_eq(take(class, count), count);
        check_counts(class, 2, blocks_per_slab(class) - 3);
        central_list_give(class, blocks, count);
    }
}

lawful_test(no_block_is_handed_out_twice)
{
    unsigned count = 3 * (unsigned)blocks_per_slab(20) + 7;
    check_eq(take(20, count), count);
    for (unsigned index = 0; index < count; index++)
        memset(blocks[index], 0, size_classes[20].size);
    for (unsigned index = 0; index < count; index++) {
        check_eq(*(unsigned char *)blocks[index], 0);
        *(unsigned char *)blocks[index] = 1;
    }
}

lawful_test(one_empty_slab_is_kept_and_the_next_is_given_back)
{
    unsigned count = 3 * (unsigned)blocks_per_slab(LARGEST);
    check_eq(take(LARGEST, count), count);
    check_counts(LARGEST, 3, 0);
    central_list_give(LARGEST, blocks, count);
    check_counts(LARGEST, 1, blocks_per_slab(LARGEST));
    check_eq(page_heap.used_units, size_classes[LARGEST].unit_count);
    check_eq(take(LARGEST, 1), 1);
    check_counts(LARGEST, 1, blocks_per_slab(LARGEST) - 1);
}

lawful_test(the_kept_slab_goes_at_the_second_trim)
{
    check_eq(take(CLASS, 1), 1);
    central_list_give(CLASS, blocks, 1);
    central_lists_trim(1, false);
    check_counts(CLASS, 1, blocks_per_slab(CLASS));
    central_lists_trim(1, false);
    check_counts(CLASS, 0, 0);
    check_eq(page_heap.used_units, 0);
}

lawful_test(the_kept_slab_goes_at_once_when_all_has_to)
{
    check_eq(take(CLASS, 1), 1);
    central_list_give(CLASS, blocks, 1);
    central_lists_trim(1, true);
    check_counts(CLASS, 0, 0);
}

lawful_test(a_slab_that_was_wanted_again_is_not_old)
{
    for (unsigned round = 0; round < 5; round++) {
        check_eq(take(CLASS, 1), 1);
        central_list_give(CLASS, blocks, 1);
        central_lists_trim(1, false);
        check_counts(CLASS, 1, blocks_per_slab(CLASS));
    }
}

lawful_test(nearly_full_slabs_are_filled_first)
{
    unsigned whole = (unsigned)blocks_per_slab(LARGEST);
    check_eq(take(LARGEST, 2 * whole), 2 * whole);
    /* `blocks` is written downwards: the first slab stands in the second half. */
    slab_t *first = slab_of(blocks[2 * whole - 1]);
    slab_t *second = slab_of(blocks[0]);
    check(first != second);
    central_list_give(LARGEST, &blocks[2 * whole - 4], 4);
    central_list_give(LARGEST, &blocks[0], 1);
    void *block = NULL;
    check_eq(central_list_take(LARGEST, &block + 1, 1), 1);
    check(slab_of(block) == second);
}

lawful_test(without_memory_what_is_there_is_taken)
{
    check_eq(take(LARGEST, 1), 1);
    fake_os_fail_always(FAKE_MAP_AT);
    unsigned rest = 0;
    while (take(LARGEST, 5) == 5)
        rest += 5;
    check(rest > 0);
    check_eq(take(LARGEST, 5), 0);
    fake_os_fail_never();
    check_eq(take(LARGEST, 5), 5);
}

/* ---- misuse ---- */

static void give_twice(void)
{
    initialise();
    take(CLASS, 2);
    central_list_give(CLASS, blocks, 1);
    central_list_give(CLASS, blocks, 1);
}

static void give_an_inner_address(void)
{
    initialise();
    take(CLASS, 2);
    void *inside = (char *)blocks[0] + 8;
    central_list_give(CLASS, &inside, 1);
}

static void give_after_the_slab_is_gone(void)
{
    initialise();
    take(CLASS, 1);
    central_list_give(CLASS, blocks, 1);
    central_lists_trim(1, true);
    central_list_give(CLASS, blocks, 1);
}

static void check_line(void (*misuse)(void), const char *begin, const char *end)
{
    char words[256];
    check_eq(fresh_status(misuse, words, sizeof words), FAKE_ABORT_STATUS);
    check(strncmp(words, begin, strlen(begin)) == 0);
    check(strstr(words, end) == words + strlen(words) - strlen(end));
}

test(misuse_ends_the_program_with_a_line)
{
    check_line(give_twice, "hakmem: double free of 0x", " (16 bytes)\n");
    check_line(give_after_the_slab_is_gone, "hakmem: double free of 0x", " (16 bytes)\n");
    check_line(give_an_inner_address, "hakmem: free of 0x",
               ", which points inside a block of 16 bytes\n");
}

static void give_two_of_another_class(void)
{
    central_list_give(CLASS, blocks, 2);
}

lawful_test(a_block_of_another_class_is_named)
{
    char words[256];
    char expected[256];
    take(2, 2);
    check_eq(fresh_status(give_two_of_another_class, words, sizeof words), FAKE_ABORT_STATUS);
    (void)snprintf(expected, sizeof expected, "hakmem: double free of 0x%zx (16 bytes)\n",
                   (size_t)(uintptr_t)blocks[0]);
    check(strcmp(words, expected) == 0);
}

/* ---- threads ---- */

static void *churn(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    void *mine[64];
    for (unsigned round = 0; round < 3000; round++) {
        unsigned class = 40 + (unsigned)(next_random(&state) % 3);
        unsigned count = 1 + (unsigned)(next_random(&state) % 64);
        check_eq(central_list_take(class, mine + count, count), count);
        for (unsigned index = 0; index < count; index++)
            memset(mine[index], (int)round, 64);
        if (round % 100 == 0)
            central_lists_trim(os_clock_ms(), false);
        central_list_give(class, mine, count);
    }
    return NULL;
}

lawful_test(threads_share_a_list)
{
    run_threads(4, churn);
    central_lists_trim(os_clock_ms(), true);
    check_eq(page_heap.used_units, 0);
}

/* Of so many blocks one in twenty stays in use. Returns how many are free. */
static unsigned free_nearly_all(unsigned class, unsigned count)
{
    unsigned freed = 0;
    check_eq(take(class, count), count);
    for (unsigned index = 0; index < count; index++) {
        memset(blocks[index], 5, size_classes[class].size);
        if (index % 20 != 0)
            central_list_give(class, &blocks[index], 1);
        freed += index % 20 != 0;
    }
    return freed;
}

/* Fills slabs of the class, and gives this part of the blocks of each back (in hundredths). */
static void free_of_each(unsigned class, const unsigned *parts, unsigned slab_count)
{
    const unsigned in_slab = (unsigned)blocks_per_slab(class);
    check_eq(take(class, slab_count * in_slab), slab_count * in_slab);
    for (unsigned slab = 0; slab < slab_count; slab++)
        for (unsigned index = 0; index < in_slab * parts[slab] / 100; index++)
            central_list_give(class, &blocks[slab * in_slab + index], 1);
}

static slab_t *slab_filled(unsigned class, unsigned number)
{
    return slab_of(blocks[number * blocks_per_slab(class)]);
}

fresh_test(slabs_whose_pages_went_are_filled_last)
{
    static const unsigned parts[] = {50, 0};
    initialise();
    unsigned class = size_class_aligned(512, 16);
    const unsigned in_slab = (unsigned)blocks_per_slab(class);
    free_of_each(class, parts, 2);
    slab_t *purged = slab_filled(class, 0);
    slab_t *resident = slab_filled(class, 1);
    check(central_lists_purge_all_pages() != 0 && slab_purged_bytes(purged) != 0);
    const unsigned most = in_slab - 1; /* emptier than the other */
    central_list_give(class, &blocks[in_slab], most);
    void *again[1024];
    check_eq(central_list_take(class, again + most, most), most);
    for (unsigned index = 0; index < most; index++)
        check(slab_of(again[index]) == resident);
    check_eq(central_list_take(class, again + 1, 1), 1);
    check(slab_of(again[0]) == purged);
    check(central_lists_are_valid());
}

static void check_kept(unsigned class, unsigned count)
{
    for (unsigned index = 0; index < count; index += 20)
        for (size_t at = 0; at < size_classes[class].size; at++)
            check_eq(((char *)blocks[index])[at], 5);
    check(central_lists_are_valid());
}

static uint64_t now_ms = 10000;

/* Looks at pages for so long, as upkeep does. Returns what has gone. */
static size_t look_for(uint64_t wait_ms)
{
    size_t purged = 0;
    for (uint64_t end_ms = now_ms + wait_ms; now_ms < end_ms; now_ms += PURGE_PERIOD_MS) {
        central_lists_look(now_ms);
        while (central_lists_totals.due_bytes != 0)
            purged += central_lists_purge_due(SIZE_MAX);
    }
    return purged;
}

static uint64_t delay(void)
{
    return (uint64_t)options.purge_delay_ms;
}

lawful_test(pages_that_nobody_wanted_for_the_delay_go)
{
    unsigned class = size_class_aligned(1024, 16);
    check_eq(look_for(delay() * 2), 0);
    size_t bytes = (size_t)free_nearly_all(class, 8000) * 1024;
    check_eq(look_for(delay()), 0);
    size_t purged = look_for(delay());
    check(purged > bytes / 2 && purged <= bytes);
    check_eq(fake_os_purged_bytes(), purged);
    check_eq(look_for(delay() * 4), 0);
    check_kept(class, 8000);
}

fresh_test(pages_that_are_wanted_within_the_delay_stay)
{
    static void *others[MOST];
    initialise();
    unsigned class = size_class_aligned(1024, 16);
    free_nearly_all(class, 8000);
    for (unsigned round = 0; round < 10; round++) {
        check_eq(look_for(delay() / 2), 0);
        unsigned count = (unsigned)central_list_statistics(class).free_count;
        check_eq(central_list_take(class, others + count, count), count);
        central_list_give(class, others, count);
    }
}

lawful_test(pages_of_blocks_that_were_idle_before_do_not_wait_again)
{
    unsigned class = size_class_aligned(1024, 16);
    check_eq(take(class, 8000), 8000);
    check_eq(look_for(delay() * 2), 0);
    size_t bytes = 0;
    for (unsigned index = 0; index < 8000; index++) {
        if (index % 20 == 0)
            continue;
        central_list_give_idle(class, &blocks[index], 1);
        bytes += 1024;
    }
    size_t purged = look_for(PURGE_PERIOD_MS);
    check(purged > bytes / 2 && purged <= bytes);
}

lawful_test(a_class_with_little_free_memory_keeps_its_pages)
{
    free_nearly_all(size_class_aligned(1024, 16), 1000);
    check_eq(look_for(delay() * 4), 0);
}

lawful_test(who_asks_for_all_pages_is_not_kept_waiting)
{
    unsigned class = size_class_aligned(1024, 16);
    size_t bytes = (size_t)free_nearly_all(class, 1000) * 1024;
    size_t purged = central_lists_purge_all_pages();
    check(purged > bytes / 2 && purged <= bytes);
    check_eq(central_lists_purge_all_pages(), 0);
    check_kept(class, 1000);
}

/* Where more is free than may stay: at once, and of each class in turn. */
lawful_test(pages_go_at_once_by_as_much_as_the_caller_wants)
{
    unsigned class = size_class_aligned(1024, 16);
    free_nearly_all(class, 8000);
    check_eq(central_lists_purge_pages(MIB), MIB);
    check_eq(central_lists_purge_pages(256 * KIB), 256 * KIB);
    check_kept(class, 8000);
    check(central_lists_purge_pages(SIZE_MAX) > MIB);
    check_eq(central_lists_purge_pages(SIZE_MAX), 0);
    check_kept(class, 8000);
}

fresh_test(lists_that_do_not_add_up_are_found_out)
{
    void *block;
    initialise();
    check_eq(central_list_take(5, &block + 1, 1), 1);
    check(central_lists_are_valid());
    slab_t *slab = slab_of(block);
    slab->free_count++;
    check(!central_lists_are_valid());
    slab->free_count--;
    slab->class = 6;
    check(!central_lists_are_valid());
    slab->class = 5;
    central_list_give(5, &block, 1); /* the slab is kept aside */
    check(central_lists_are_valid());
    slab->free_count--;
    check(!central_lists_are_valid());
}

check_main()
