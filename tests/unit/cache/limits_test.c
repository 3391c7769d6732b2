/* Limits of size classes that change while thread caches and depots are at work. */
#include "upkeep/reclaim.h"

#include "unit/cached.h"

/* About 2 KiB: bins of such blocks are not as long as magazines. */
enum { CLASS = 38, ROUND = 3000, MANY = 8192 };

static void *blocks[ROUND], *many[MANY];

/* Takes and gives back more than bins and depots hold, and lets time pass. */
static void work(unsigned rounds, uint64_t ms)
{
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned index = 0; index < ROUND; index++)
            check((blocks[index] = cached_alloc(CLASS + index % 3)) != NULL);
        fake_os_advance(ms / 2);
        for (unsigned index = 0; index < ROUND; index++)
            cached_free(CLASS + index % 3, blocks[index]);
        fake_os_advance(ms / 2);
    }
}

static void check_blocks(void)
{
    for (unsigned class = CLASS; class < CLASS + 3; class++)
        check_conserved(class, 0);
}

/* Halves the first limits of the three classes so often, down to the least that there may be. */
static void set_limits(unsigned bin_halvings, unsigned depot_halvings)
{
    for (unsigned class = CLASS; class < CLASS + 3; class++) {
        const size_class_t *shape = &size_classes[class];
        size_class_set_limits(class, larger_of(shape->bin_max >> bin_halvings, FIRST_LEAST),
                              larger_of(shape->depot_max >> depot_halvings, 1));
    }
}

fresh_test(at_first_limits_are_those_of_the_table)
{
    initialise();
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        check_eq(size_classes[class].bin_limit, size_classes[class].bin_max);
        check_eq(size_classes[class].depot_limit, size_classes[class].depot_max);
    }
    check_eq(thread_cache_provide()->limits_age, size_class_limits_age);
}

static size_t most_in_bins(size_t limit)
{
    size_class_set_limits(CLASS + 2, limit, size_classes[CLASS + 2].depot_max);
    work(6, 10);
    return thread_cache_own->capacity[CLASS + 2];
}

fresh_test(bins_of_a_cache_that_exists_grow_and_shrink_to_their_limit)
{
    initialise();
    size_t usual = size_classes[CLASS + 2].bin_max;
    check_eq(most_in_bins(usual), usual);
    check_eq(most_in_bins(usual / 2), usual / 2);
    check_eq(most_in_bins(usual / 4), usual / 4);
    check_eq(most_in_bins(BIN_MOST), BIN_MOST);
    check_eq(most_in_bins(usual), usual);
}

static size_t most_in_depot(size_t limit)
{
    size_t most = 0;
    size_class_set_limits(CLASS + 2, size_classes[CLASS + 2].bin_max, limit);
    for (unsigned index = 0; index < MANY; index++)
        check((many[index] = cached_alloc(CLASS + 2)) != NULL);
    for (unsigned index = 0; index < MANY; index++) {
        cached_free(CLASS + 2, many[index]);
        most = larger_of(most, depot_block_count(CLASS + 2));
    }
    return most / size_classes[CLASS + 2].bin_max;
}

fresh_test(depots_hold_as_many_magazines_as_their_limit_says)
{
    initialise();
    size_t usual = size_classes[CLASS + 2].depot_max;
    check_eq(most_in_depot(usual), usual);
    check_eq(most_in_depot(4 * usual), 4 * usual);
    reclaim_all();
    check_eq(most_in_depot(usual / 4), usual / 4);
}

fresh_test(the_laws_hold_whatever_limits_follow_which)
{
    uint64_t random = check_seed(11);
    initialise();
    fake_os_set_clock(5000);
    for (unsigned turn = 0; turn < 300; turn++) {
        set_limits((unsigned)(next_random(&random) % 4), (unsigned)(next_random(&random) % 4));
        work(2, 60);
        check_blocks();
    }
}

enum { CHURNERS = 3, OWN = 500, TURNS = 300 };

static void churn(void)
{
    static _Thread_local void *own[OWN];
    for (unsigned turn = 0; turn < TURNS; turn++) {
        for (unsigned index = 0; index < OWN; index++) {
            check((own[index] = cached_alloc(CLASS + index % 3)) != NULL);
            *(unsigned *)own[index] = index;
        }
        for (unsigned index = 0; index < OWN; index++) {
            check_eq(*(unsigned *)own[index], index);
            cached_free(CLASS + index % 3, own[index]);
        }
    }
}

static void change_limits(void)
{
    uint64_t random = check_seed(12);
    for (unsigned turn = 0; turn < TURNS * 20; turn++)
        set_limits((unsigned)(next_random(&random) % 4), (unsigned)(next_random(&random) % 4));
}

static void *churn_or_change(void *argument)
{
    static unsigned started;
    if (__atomic_fetch_add(&started, 1, __ATOMIC_RELAXED) == 0)
        change_limits();
    else
        churn();
    return argument;
}

/* Limits change at any moment, whatever the threads are doing. */
fresh_test(threads_work_on_while_limits_change)
{
    initialise();
    run_threads(CHURNERS + 1, churn_or_change);
    check_blocks();
}

check_main()
