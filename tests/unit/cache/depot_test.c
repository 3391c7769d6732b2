/* cache/depot.h: magazines move whole, no more than so many stay, and the unwanted go down. */
#include "cache/depot.h"

#include "unit/fresh.h"

enum { CLASS = 8, LARGEST = FIXED_CLASS_COUNT - 1 };

static magazine_t *full_of(unsigned class, unsigned count)
{
    magazine_t *magazine = magazine_create();
    check(magazine != NULL);
    check_eq(central_list_take(class, magazine->slots + count, count), count);
    magazine->count = count;
    return magazine;
}

static size_t blocks_out(unsigned class)
{
    central_statistics_t statistics = central_list_statistics(class);
    return statistics.block_count - statistics.free_count;
}

lawful_test(an_empty_depot_gives_nothing_and_takes_no_empty_magazine)
{
    magazine_t *empty = magazine_create();
    check(depot_take(CLASS, empty) == NULL);
    check(depot_take(CLASS, NULL) == NULL);
    magazine_destroy(empty);
    check(magazine_create() == empty);
}

lawful_test(the_warmest_magazine_comes_back_first)
{
    magazine_t *first = full_of(CLASS, 5);
    magazine_t *second = full_of(CLASS, 7);
    check(depot_give(CLASS, first) != NULL);
    check(depot_give(CLASS, second) != NULL);
    check_eq(depot_block_count(CLASS), 12);
    check(depot_take(CLASS, NULL) == second);
    check(depot_take(CLASS, NULL) == first);
    check(depot_take(CLASS, NULL) == NULL);
    check_eq(first->count, 5);
}

lawful_test(depots_of_different_classes_are_apart)
{
    check(depot_give(CLASS, full_of(CLASS, 5)) != NULL);
    check(depot_take(CLASS + 1, NULL) == NULL);
    check_eq(depot_block_count(CLASS + 1), 0);
}

lawful_test(empty_magazines_flow_back)
{
    check(depot_give(CLASS, full_of(CLASS, 5)) != NULL);
    magazine_t *empty = magazine_create();
    check(depot_take(CLASS, empty) != NULL);
    magazine_t *full = full_of(CLASS, 5);
    check(depot_give(CLASS, full) == empty);
}

/* Between one who only fills and one who only empties, no magazine is made after the first few. */
lawful_test(one_way_traffic_makes_no_magazines)
{
    magazine_t *of_giver = magazine_create();
    magazine_t *of_taker = magazine_create();
    size_t memory = 0;
    for (unsigned round = 0; round < 20000; round++) {
        check_eq(central_list_take(CLASS, of_giver->slots + 10, 10), 10);
        of_giver->count = 10;
        of_giver = depot_give(CLASS, of_giver);
        of_taker->count = 0;
        of_taker = depot_take(CLASS, of_taker);
        check(of_giver != NULL && of_taker != NULL);
        central_list_give(CLASS, of_taker->slots, 10);
        if (round == 100)
            memory = meta_size();
    }
    check_eq(meta_size(), memory);
}

lawful_test(a_depot_holds_a_mebibyte_but_2_to_64_magazines)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        size_t limit = MIB / ((size_t)size_classes[class].bin_max * size_classes[class].size);
        limit = limit < 2 ? 2 : limit > 64 ? 64 : limit;
        for (unsigned index = 0; index < limit + 3; index++) {
            magazine_t *full = full_of(class, 2);
            magazine_t *empty = depot_give(class, full);
            check(empty != NULL);
            check_eq(empty == full, index >= limit);
            check(empty != full || full->count == 0);
        }
        check_eq(depot_block_count(class), 2 * limit);
        check_eq(blocks_out(class), 2 * limit);
    }
}

/* Of so many magazines, the blocks in no order: each from another end of a run. */
static void full_of_scattered(magazine_t **magazines, size_t count)
{
    static void *blocks[32 * MAGAZINE_SLOTS];
    const size_t total = count * size_classes[CLASS].bin_max;
    check(total <= sizeof blocks / sizeof *blocks);
    check_eq(central_list_take(CLASS, blocks + total, (unsigned)total), total);
    for (size_t index = 0; index < total; index++) {
        if (index < count)
            magazines[index] = magazine_create();
        magazine_t *magazine = magazines[index % count];
        magazine->slots[magazine->count++] = blocks[index];
    }
}

lawful_test(of_blocks_in_no_order_few_stay)
{
    magazine_t *magazines[16];
    full_of_scattered(magazines, 16);
    size_t kept = larger_of(size_classes[CLASS].depot_max / DEPOT_SCATTERED_SHARE, DEPOT_LEAST);
    check(kept < 16);
    for (size_t index = 0; index < 16; index++) {
        magazine_t *empty = depot_give(CLASS, magazines[index]);
        check_eq(empty == magazines[index], index >= kept);
    }
    check_eq(depot_block_count(CLASS), kept * size_classes[CLASS].bin_max);
    check_eq(blocks_out(CLASS), depot_block_count(CLASS));
}

static void *give_scattered(void *unused)
{
    magazine_t *magazines[4];
    (void)unused;
    for (size_t index = 0; index < 4; index++) {
        magazines[index] = magazine_create();
        magazines[index]->count = 3;
        for (size_t slot = 0; slot < 3; slot++)
            magazines[index]->slots[slot] = (void *)(64 * (1 + index * 7 + slot * 5 % 3 * 100));
        check(depot_give(CLASS, magazines[index]) != magazines[index]);
    }
    return NULL;
}

lawful_test(who_would_have_to_wait_at_the_slabs_leaves_them_in_the_depot)
{
    central_lists_at_fork(FORK_PREPARE); /* takes their locks */
    run_threads(1, give_scattered);
    central_lists_at_fork(FORK_PARENT);
    check_eq(depot_block_count(CLASS), 4 * 3);
}

lawful_test(what_nobody_wanted_goes_down_at_a_trim)
{
    for (unsigned index = 0; index < 9; index++)
        check(depot_give(CLASS, full_of(CLASS, 3)) != NULL);
    depots_trim(false); /* nothing was unwanted all the time so far */
    check_eq(depot_block_count(CLASS), 9 * 3);
    depots_trim(false);
    check_eq(depot_block_count(CLASS), 0);
    check_eq(blocks_out(CLASS), 0);
}

lawful_test(what_is_in_use_stays_at_a_trim)
{
    for (unsigned index = 0; index < 4; index++)
        check(depot_give(CLASS, full_of(CLASS, 3)) != NULL);
    depots_trim(false);
    for (unsigned round = 0; round < 5; round++) {
        magazine_t *taken[4];
        for (unsigned index = 0; index < 4; index++)
            taken[index] = depot_take(CLASS, NULL);
        for (unsigned index = 0; index < 4; index++)
            check(depot_give(CLASS, taken[index]) != NULL);
        depots_trim(false);
        check_eq(depot_block_count(CLASS), 4 * 3);
    }
}

lawful_test(everything_goes_down_when_all_has_to)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
        for (unsigned index = 0; index < 2; index++)
            check(depot_give(class, full_of(class, 4)) != NULL);
    depots_trim(true);
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        check_eq(depot_block_count(class), 0);
        check_eq(blocks_out(class), 0);
    }
    check(depot_take(1, NULL) == NULL);
}

lawful_test(magazines_are_used_again)
{
    magazine_t *magazine = magazine_create();
    check(((uintptr_t)magazine & (MAGAZINE_SIZE - 1)) == 0);
    check(magazine->bottom == NULL);
    check_eq(magazine->count, 0);
    magazine_destroy(magazine);
    check(magazine_create() == magazine);
}

/* What comes back is an empty magazine, always. */
lawful_test(without_memory_for_an_empty_magazine_the_full_one_is_emptied)
{
    magazine_t *full = full_of(LARGEST, 4);
    refuse_magazines();
    check(depot_give(LARGEST, full) == full);
    check_eq(full->count, 0);
    check_eq(depot_block_count(LARGEST), 0);
    check_eq(blocks_out(LARGEST), 0);
}

static void *trade(void *argument)
{
    uint64_t state = (uint64_t)(uintptr_t)argument;
    for (unsigned step = 0; step < 4000; step++) {
        unsigned class = 1 + (unsigned)(next_random(&state) % 2);
        if (next_random(&state) % 2 == 0) {
            magazine_destroy(depot_give(class, full_of(class, 4)));
        } else {
            magazine_t *full = depot_take(class, magazine_create());
            if (full != NULL) {
                check_eq(full->count, 4);
                central_list_give(class, full->slots, 4);
                full->count = 0;
                magazine_destroy(full);
            }
        }
        if (step % 500 == 0)
            depots_trim(false);
    }
    return NULL;
}

lawful_test(threads_trade_magazines)
{
    run_threads(4, trade);
    depots_trim(true);
    check_eq(blocks_out(1) + blocks_out(2), 0);
}

static void check_found_out(unsigned class)
{
    magazine_t *first = full_of(class, 5);
    check(depot_give(class, first) != NULL && depot_give(class, full_of(class, 7)) != NULL);
    check(depots_are_valid());
    first->count = 0;
    check(!depots_are_valid());
    first->count = 5;
    magazine_t extra = {.count = 1};
    first->next = &extra; /* one too many */
    check(!depots_are_valid());
    first->next = NULL;
    check(depots_are_valid());
}

lawful_test(depots_that_do_not_add_up_are_found_out)
{
    check_found_out(1);
    check_found_out(CLASS);
    check_found_out(LARGEST);
}

check_main()
