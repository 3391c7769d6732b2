/* learn/in_run.h: epochs from upkeep, on the fake kernel; what a strategy does to the layers. */
#include "cache/reclaim.h"
#include "learn/in_run.h"

#include "policy/strategy.h"
#include "span/keep.h"
#include "span/pressure.h"
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

static void begin_to_learn(void)
{
    initialise();
    options.learn = 1;
    fake_os_set_clock(5000);
    in_run_prepare();
}

static trial_t seen;

static void look(const trial_t *trial)
{
    seen = *trial;
}

fresh_test(without_the_option_nobody_looks)
{
    initialise();
    in_run_prepare();
    check(upkeep_observer == NULL);
    check(!in_run_show(look));
    work(100, 50);
    check(thread_caches_told_bytes != 0); /* they tell what they hold all the same */
    check(strategy_is_same(&strategy_in_force, &strategy_default));
}

fresh_test(with_it_strategies_are_tried_and_decisions_made)
{
    begin_to_learn();
    work(3000, 100);
    check(in_run_show(look));
    check(seen.epochs > 100);
    check(seen.switches > 10);
    check(seen.record_count > 3);
    check(trial_is_valid(&seen));
    check(strategy_is_same(&strategy_in_force, trial_strategy(&seen)));
    for (unsigned class = CLASS; class < CLASS + 3; class++)
        check_conserved(class, 0);
}

static unsigned logged;

static void note_epoch(const trial_epoch_t *told, const trial_t *trial)
{
    check_eq(trial->epochs, ++logged);
    check(told->ms != 0 && told->misses != 0);
}

fresh_test(each_epoch_that_is_decided_on_is_logged)
{
    begin_to_learn();
    in_run_logger = note_epoch;
    work(300, 100);
    check(in_run_show(look));
    check(logged > 10);
    check_eq(logged, seen.epochs);
}

fresh_test(it_begins_with_the_strategy_of_the_policy)
{
    const strategy_t learnt = {{1, 0, -1}};
    strategy_set(&learnt);
    begin_to_learn();
    check(in_run_show(look));
    check(strategy_is_same(trial_strategy(&seen), &learnt));
    work(300, 100);
    check(in_run_show(look));
    check(strategy_is_same(&strategy_in_force, trial_strategy(&seen)));
    check(trial_is_valid(&seen));
}

fresh_test(a_program_that_rests_has_no_epochs)
{
    begin_to_learn();
    for (unsigned round = 0; round < 1000; round++) {
        fake_os_advance(200);
        upkeep(os_clock_ms());
    }
    check(in_run_show(look));
    check_eq(seen.epochs, 0);
}

fresh_test(where_memory_is_short_the_default_runs_and_nothing_is_tried)
{
    begin_to_learn();
    for (unsigned index = 0; index < 40 * KIB; index++) /* little is never short */
        check(cached_alloc(CLASS) != NULL);
    do {
        work(10, 100);
        check(in_run_show(look));
    } while (trial_running(&seen) == seen.incumbent);
    fake_os_set_file("/proc/pressure/memory", "some avg10=7.00 avg60=0.00 avg300=0.00 total=1\n");
    work(200, 100); /* until somebody looks at that */
    check(pressure_is_near());
    check(in_run_show(look));
    uint64_t epochs = seen.epochs;
    for (unsigned turn = 0; turn < 100; turn++) {
        work(5, 100);
        check(strategy_is_same(&strategy_in_force, &strategy_default));
    }
    check(in_run_show(look));
    check_eq(seen.epochs, epochs);
    fake_os_set_file("/proc/pressure/memory", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\n");
    work(500, 100);
    check(!pressure_is_near());
    check(in_run_show(look));
    check(seen.epochs > epochs + 10);
}

static uint64_t counted_misses;

static void note_misses(const upkeep_view_t *view)
{
    counted_misses = view->misses;
}

fresh_test(misses_are_counted_as_they_are)
{
    initialise();
    fake_os_set_clock(5000);
    upkeep_observer = note_misses;
    work(200, 20);
    fake_os_advance(200);
    upkeep_look(thread_cache_own);
    check(miss_count > 1000);
    check(counted_misses >= miss_count && counted_misses <= miss_count + MISSES_BETWEEN_LOOKS);
}

static uint64_t counted_refusals;

static void note_refusals(const upkeep_view_t *view)
{
    counted_refusals = view->refusals;
}

fresh_test(what_the_kernel_refuses_is_counted_but_not_what_nobody_could_have)
{
    fake_os_set_address_space_limit(GIB);
    initialise();
    upkeep_observer = note_refusals;
    fake_os_set_clock(5000);
    check(!reclaim_gather(SIZE_MAX));
    upkeep(5000);
    check_eq(counted_refusals, 0);
    check(!reclaim_gather(GIB));
    upkeep(6000);
    check_eq(counted_refusals, 1);
}

static void force(strategy_t strategy)
{
    upkeep_observer = note_misses;
    strategy_set(&strategy);
    size_classes_follow_strategy();
}

static strategy_t any_strategy(uint64_t *random)
{
    strategy_t strategy;
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++) {
        int least = strategy_least((parameter_t)parameter);
        int most = strategy_most((parameter_t)parameter);
        unsigned range = (unsigned)(most - least + 1);
        strategy.doublings[parameter] = (int8_t)(least + (int)(next_random(random) % range));
    }
    return strategy;
}

/* Any that there may be, with blocks on their way meanwhile. */
fresh_test(the_laws_hold_whatever_strategy_follows_which)
{
    uint64_t random = check_seed(11);
    initialise();
    fake_os_set_clock(5000);
    for (unsigned turn = 0; turn < 300; turn++) {
        force(any_strategy(&random));
        work(2, 60);
        for (unsigned class = CLASS; class < CLASS + 3; class++)
            check_conserved(class, 0);
    }
}

enum { CHURNERS = 3, OWN = 500, TURNS = 300 };

static void *churn(void *argument)
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
    return argument;
}

static void *change_strategies(void *argument)
{
    uint64_t random = check_seed(12);
    for (unsigned turn = 0; turn < TURNS * 20; turn++) {
        strategy_t strategy = any_strategy(&random);
        strategy_set(&strategy);
        size_classes_follow_strategy();
    }
    return argument;
}

static void *churn_or_change(void *argument)
{
    static unsigned started;
    bool is_first = __atomic_fetch_add(&started, 1, __ATOMIC_RELAXED) == 0;
    return is_first ? change_strategies(argument) : churn(argument);
}

/* They change at any moment, whatever the threads are at. */
fresh_test(threads_work_on_while_strategies_change)
{
    initialise();
    force(strategy_default); /* from here on threads heed limits */
    run_threads(CHURNERS + 1, churn_or_change);
    for (unsigned class = CLASS; class < CLASS + 3; class++)
        check_conserved(class, 0);
}

static size_t most_in_bins(int8_t doublings)
{
    force((strategy_t){{doublings, 0, 0}});
    work(6, 10);
    return thread_cache_own->capacity[CLASS + 2];
}

fresh_test(bins_grow_to_what_the_strategy_says)
{
    initialise();
    size_t usual = most_in_bins(0);
    check_eq(usual, size_classes[CLASS + 2].bin_max);
    check_eq(most_in_bins(-1), usual / 2);
    check_eq(most_in_bins(-2), usual / 4);
    check_eq(most_in_bins(2), smaller_of(4 * usual, BIN_MOST));
    check_eq(most_in_bins(0), usual);
}

static size_t most_in_depot(int8_t doublings)
{
    size_t most = 0;
    force((strategy_t){{0, doublings, 0}});
    for (unsigned index = 0; index < MANY; index++)
        check((many[index] = cached_alloc(CLASS + 2)) != NULL);
    for (unsigned index = 0; index < MANY; index++) {
        cached_free(CLASS + 2, many[index]);
        most = larger_of(most, depot_block_count(CLASS + 2));
    }
    return most / size_classes[CLASS + 2].bin_max;
}

fresh_test(depots_have_the_room_that_the_strategy_says)
{
    initialise();
    size_t usual = size_classes[CLASS + 2].depot_max;
    check_eq(most_in_depot(0), usual);
    check_eq(most_in_depot(2), 4 * usual);
    reclaim_all();
    check_eq(most_in_depot(-2), usual / 4);
}

fresh_test(free_memory_waits_as_long_as_the_strategy_says_and_never_longer_than_the_delay)
{
    initialise();
    uint64_t delay = (uint64_t)options.purge_delay_ms;
    static const uint64_t halvings[] = {0, 1, 2, 3};
    for (unsigned index = 0; index < 4; index++) {
        force((strategy_t){{0, 0, (int8_t)-halvings[index]}});
        check_eq(keep_wait_ms(), delay >> halvings[index]);
    }
    force((strategy_t){{0, 0, LEARN_WAIT_LONGER}});
    check_eq(keep_wait_ms(), delay);
}

check_main()
