/* learn/trial.h: what is decided in simulated programs. */
#include "unit/learn/simulated.h"

enum { LOG_MOST = 20000, COMPLETE = 1500 };

static unsigned events(trial_event_t event)
{
    unsigned count = 0;
    for (uint64_t index = 0; index < trial.record_count && index < LEARN_RECORDS; index++)
        count += trial.records[index].event == event;
    return count;
}

static const trial_record_t *last_record(void)
{
    check(trial.record_count != 0);
    return &trial.records[(trial.record_count - 1) % LEARN_RECORDS];
}

/* ---- worlds ---- */

static strategy_t best;

/* Each step away from the best costs a fifth more. */
static uint64_t with_a_best(const strategy_t *strategy)
{
    uint64_t cost = 100 * MILLION;
    for (unsigned parameter = 0; parameter < PARAMETER_COUNT; parameter++) {
        int distance = strategy->doublings[parameter] - best.doublings[parameter];
        cost += (uint64_t)(distance < 0 ? -distance : distance) * 20 * MILLION;
    }
    return cost;
}

static uint64_t all_alike(const strategy_t *strategy)
{
    (void)strategy;
    return 100 * MILLION;
}

/* ---- what is decided ---- */

test(what_an_earlier_run_has_learnt_is_the_incumbent)
{
    best = (strategy_t){{1, 0, -1}};
    trial_begin(&trial, 700, &best);
    check(trial_is_valid(&trial));
    check(strategy_is_same(trial_strategy(&trial), &best));
    live(with_a_best, COMPLETE, 1);
    check_eq(trial.state, TRIAL_FROZEN);
    check(strategy_is_same(incumbent(), &best));
    check_eq(events(EVENT_PROMOTED), 0);
}

/* As any other that learning has chosen. */
test(what_an_earlier_run_has_learnt_is_taken_back_where_it_does_not_hold)
{
    best = strategy_default;
    trial_begin(&trial, 700, &(strategy_t){{2, 0, -2}});
    live(with_a_best, COMPLETE, 1);
    check(strategy_is_same(incumbent(), &best));
    trial_begin(&trial, 700, &(strategy_t){{2, 0, -2}});
    trial_take(&trial, &(trial_epoch_t){.ms = 1000, .refusals = 1});
    check_eq(last_record()->event, EVENT_ROLLED_BACK);
    check(strategy_is_same(incumbent(), &strategy_default));
}

test(costs_are_those_of_the_tuning_table_for_a_second)
{
    trial_epoch_t epoch = {.ms = 500, .misses = 1000, .slab_misses = 10, .purge_ns = 7000};
    uint64_t ns = 1000 * LEARN_MISS_NS + 10 * LEARN_SLAB_NS + 7000;
    check_eq(trial_cost(&epoch, 700), 2 * ns);
    /* A GiB that is made anew, and one that is held free for a second. */
    epoch = (trial_epoch_t){.ms = 1000, .fresh_kib = MIB};
    check_eq(trial_cost(&epoch, 700), (uint64_t)REFAULT_GIB_MS * MILLION);
    epoch = (trial_epoch_t){.ms = 1000, .idle_kib_ms = 1000 * MIB};
    check_eq(trial_cost(&epoch, 700), (uint64_t)700 * MILLION);
}

test(at_first_the_default_runs_alone)
{
    trial_begin(&trial, 700, &strategy_default);
    for (unsigned turn = 0; turn < LEARN_REST_EPOCHS; turn++) {
        check_eq(trial_running(&trial), 0);
        live(all_alike, 1, 0);
    }
    check_eq(trial.switches, 0);
}

test(a_round_is_incumbent_challenger_challenger_incumbent)
{
    trial_begin(&trial, 700, &strategy_default);
    live(all_alike, LEARN_REST_EPOCHS, 0);
    for (unsigned turn = 0; turn < 8; turn++) {
        bool is_challenged = turn % 4 == 1 || turn % 4 == 2;
        check_eq(trial_running(&trial) == trial.incumbent, !is_challenged);
        live(all_alike, 1, 0);
    }
}

test(a_cheaper_strategy_is_found_step_by_step_and_frozen)
{
    best = (strategy_t){{2, -1, -3}};
    trial_begin(&trial, 700, &strategy_default);
    live(with_a_best, COMPLETE, 0);
    check_eq(trial.state, TRIAL_FROZEN);
    check(strategy_is_same(incumbent(), &best));
    check_eq(events(EVENT_PROMOTED), 6);
    check_eq(events(EVENT_FROZEN), 1);
    uint64_t switches = trial.switches;
    live(with_a_best, 500, 10);
    check_eq(trial.switches, switches); /* frozen: nothing is tried */
}

test(it_is_found_in_noise_of_a_tenth_too)
{
    unsigned found = 0;
    best = (strategy_t){{1, 0, -1}};
    for (unsigned run = 0; run < 200; run++) {
        seed = run;
        trial_begin(&trial, 700, &strategy_default);
        live(with_a_best, COMPLETE, 10);
        found += strategy_is_same(incumbent(), &best);
    }
    (void)printf("found in %u of 200\n", found);
    check(found >= 190);
}

/* The sequential test lets one in a hundred through in each of six matches, the canary half of
 * these; and most rounds of equals lie within the margin. */
test(what_is_no_better_is_not_promoted)
{
    unsigned promoted = 0;
    for (unsigned percent = 0; percent <= 20; percent += 10)
        for (unsigned run = 0; run < 400; run++) {
            seed = run;
            trial_begin(&trial, 700, &strategy_default);
            live(all_alike, 600, percent);
            promoted += trial.incumbent != 0 || events(EVENT_PROMOTED) != 0;
        }
    (void)printf("promoted in %u of 1200\n", promoted);
    check(promoted <= 36);
}

test(a_gain_that_is_not_worth_a_change_changes_nothing)
{
    trial_begin(&trial, 700, &strategy_default);
    for (unsigned turn = 0; turn < COMPLETE; turn++) { /* a tenth less, of next to nothing */
        trial_epoch_t epoch = epoch_of(trial_running(&trial) == 0 ? 500000 : 450000);
        trial_take(&trial, &epoch);
    }
    check_eq(trial.state, TRIAL_FROZEN);
    check_eq(trial.incumbent, 0);
    check_eq(events(EVENT_PROMOTED), 0);
}

/* ---- ratings ---- */

test(the_winner_takes_from_the_loser_what_the_loser_loses)
{
    best = (strategy_t){{1, 0, 0}};
    trial_begin(&trial, 700, &strategy_default);
    while (events(EVENT_WON) == 0)
        live(with_a_best, 1, 0);
    const contender_t *winner = &trial.contenders[trial.challenger];
    check_eq(winner->rating, LEARN_RATING + LEARN_RATING_STEP / 2); /* of equals: half */
    check_eq(trial.contenders[0].rating, LEARN_RATING - LEARN_RATING_STEP / 2);
    check_eq(winner->matches, 1);
    check_eq(winner->wins, 1);
    check_eq(winner->age, 2 * trial.match.rounds);
    live(with_a_best, COMPLETE, 0);
    int64_t sum = 0;
    for (unsigned who = 0; who < LEARN_STRATEGIES; who++)
        sum += trial.contenders[who].is_known ? trial.contenders[who].rating - LEARN_RATING : 0;
    check_eq(sum, 0);
    check(trial.contenders[trial.incumbent].rating > LEARN_RATING);
}

/* ---- the same log ---- */

static trial_epoch_t the_log[LOG_MOST];
static trial_record_t first[LOG_MOST], second[LOG_MOST];

static unsigned replay(trial_record_t *records, unsigned count)
{
    unsigned known = 0;
    trial_begin(&trial, 700, &strategy_default);
    for (unsigned turn = 0; turn < count; turn++) {
        trial_take(&trial, &the_log[turn]);
        for (; known < trial.record_count; known++)
            records[known] = trial.records[known % LEARN_RECORDS];
    }
    return known;
}

test(the_same_log_brings_the_same_decisions)
{
    seed = check_seed(7);
    for (unsigned turn = 0; turn < LOG_MOST; turn++) {
        uint64_t scale = 1 + turn / 500 % 3;
        the_log[turn] = epoch_of(noisy(100 * MILLION * scale, 30));
        the_log[turn].used_kib = next_random(&seed) % (64 * KIB);
        the_log[turn].idle_kib = next_random(&seed) % (16 * KIB);
        the_log[turn].refusals = next_random(&seed) % 500 == 0;
    }
    unsigned count = replay(first, LOG_MOST);
    check(count > 20);
    check_eq(replay(second, LOG_MOST), count);
    check(memcmp(first, second, count * sizeof *first) == 0);
    check_eq(sizeof *first, 3 * sizeof(uint64_t) + 2 * sizeof(strategy_t) + 2); /* no padding */
}

/* Twice as long with twice of everything is the same program, looked at half as often. */
test(the_length_of_epochs_changes_no_decision)
{
    seed = check_seed(5);
    for (unsigned turn = 0; turn < LOG_MOST; turn++) {
        the_log[turn] = epoch_of(noisy(100 * MILLION * (1 + turn / 500 % 3), 30));
        the_log[turn].misses = next_random(&seed) % MILLION;
        the_log[turn].slab_misses = next_random(&seed) % MILLION;
    }
    unsigned count = replay(first, LOG_MOST);
    check(count > 20);
    for (unsigned turn = 0; turn < LOG_MOST; turn++) {
        trial_epoch_t *epoch = &the_log[turn];
        epoch->ms *= 2;
        epoch->misses *= 2;
        epoch->slab_misses *= 2;
        epoch->purge_ns *= 2;
    }
    check_eq(replay(second, LOG_MOST), count);
    check(memcmp(first, second, count * sizeof *first) == 0);
}

/* ---- guards ---- */

static const trial_epoch_t usual = {
    .ms = 1000, .purge_ns = 100 * MILLION, .fresh_kib = 1024, .idle_kib = 64 * KIB,
    .used_kib = 256 * KIB};

/* Until a challenger runs. */
static void begin_with_challenger(void)
{
    trial_begin(&trial, 1, &strategy_default);
    while (trial_running(&trial) == trial.incumbent)
        trial_take(&trial, &usual);
}

static void check_rolls_back(trial_epoch_t epoch, trial_reason_t reason)
{
    begin_with_challenger();
    unsigned challenger = trial.challenger;
    check_eq(trial_broken_guard(&trial, &usual, true), REASON_NONE);
    check_eq(trial_broken_guard(&trial, &epoch, true), reason);
    trial_take(&trial, &epoch);
    check_eq(trial_running(&trial), 0);
    check_eq(last_record()->event, EVENT_ROLLED_BACK);
    check_eq(last_record()->reason, reason);
    check_eq(trial.contenders[challenger].quarantined_until,
             trial.epochs + LEARN_QUARANTINE_EPOCHS);
    check(trial.challenger != challenger);
}

test(a_guard_that_breaks_rolls_back_at_once)
{
    trial_epoch_t epoch = usual;
    epoch.idle_kib += 48 * KIB + 1; /* of 320 MiB a tenth, and 16 MiB */
    check_rolls_back(epoch, REASON_HELD);
    epoch = usual;
    epoch.fresh_kib = 2 * usual.fresh_kib + 16 * KIB + 1;
    check_rolls_back(epoch, REASON_FRESH);
    epoch = usual;
    epoch.purge_ns = 205 * MILLION;
    check_rolls_back(epoch, REASON_COST);
    epoch = usual;
    epoch.refusals = 1;
    check_rolls_back(epoch, REASON_REFUSED);
}

test(what_the_program_itself_takes_breaks_no_guard)
{
    begin_with_challenger();
    trial_epoch_t epoch = usual;
    epoch.used_kib *= 3;
    epoch.fresh_kib = 2 * usual.used_kib;
    check_eq(trial_broken_guard(&trial, &epoch, false), REASON_NONE);
    epoch = usual; /* what it frees is held free for a while */
    epoch.used_kib -= 100 * KIB;
    epoch.idle_kib += 100 * KIB;
    check_eq(trial_broken_guard(&trial, &epoch, false), REASON_NONE);
    epoch.idle_kib += 200 * KIB; /* and so is what it has taken and freed meanwhile */
    epoch.peak_kib = usual.used_kib + 300 * KIB;
    epoch.fresh_kib += epoch.taken_kib = 600 * KIB;
    check_eq(trial_broken_guard(&trial, &epoch, false), REASON_NONE);
}

test(the_canary_is_watched_too)
{
    best = (strategy_t){{1, 0, 0}};
    trial_begin(&trial, 1, &strategy_default);
    while (trial.state != TRIAL_CANARY)
        live(with_a_best, 1, 0);
    trial_t before = trial;
    trial_epoch_t epoch = {.ms = 100, .refusals = 1};
    trial_take(&trial, &epoch);
    check_eq(trial_running(&trial), 0);
    check_eq(last_record()->event, EVENT_ROLLED_BACK);
    trial = before; /* alone it is dearer than its match has promised */
    epoch = epoch_of(125 * MILLION);
    for (unsigned turn = 0; turn < LEARN_CANARY_EPOCHS; turn++) {
        check(trial_running(&trial) != 0);
        trial_take(&trial, &epoch);
    }
    check_eq(trial_running(&trial), 0);
    check_eq(last_record()->event, EVENT_ROLLED_BACK);
    check_eq(last_record()->reason, REASON_DEARER);
}

/* Every challenger is refused memory; drift makes it learn again and again. */
test(each_rollback_doubles_the_quarantine)
{
    const strategy_t step = {{1, 0, 0}};
    uint64_t lasted = 0;
    unsigned times = 0;
    trial_begin(&trial, 1, &strategy_default);
    for (unsigned turn = 0; turn < 100000 && times < 12; turn++) {
        trial_epoch_t epoch = usual;
        unsigned running = trial_running(&trial);
        bool is_step = strategy_is_same(trial_strategy(&trial), &step);
        epoch.refusals = running != 0;
        if (trial.state == TRIAL_FROZEN)
            epoch.purge_ns += (uint64_t)(1 + trial.over) * 500 * MILLION;
        trial_take(&trial, &epoch);
        if (!is_step)
            continue;
        uint64_t lasts = trial.contenders[running].quarantined_until - trial.epochs;
        uint64_t most = (uint64_t)LEARN_QUARANTINE_EPOCHS << LEARN_QUARANTINE_DOUBLINGS;
        check_eq(lasts, times == 0 ? LEARN_QUARANTINE_EPOCHS : smaller_of(2 * lasted, most));
        lasted = lasts;
        times++;
    }
    check_eq(times, 12);
}

/* ---- drift ---- */

test(after_a_drift_comes_the_default_and_then_learning)
{
    best = (strategy_t){{2, 0, 0}};
    trial_begin(&trial, 700, &strategy_default);
    live(with_a_best, COMPLETE, 0);
    check_eq(trial.state, TRIAL_FROZEN);
    check(trial.incumbent != 0);
    best = (strategy_t){{-2, 0, 0}};
    live(with_a_best, LEARN_DRIFT_EPOCHS - 1, 0);
    check_eq(trial.state, TRIAL_FROZEN);
    live(with_a_best, 1, 0);
    check_eq(trial.state, TRIAL_LEARN);
    check_eq(last_record()->event, EVENT_DRIFTED);
    for (unsigned turn = 0; turn < LEARN_REST_EPOCHS; turn++) {
        check_eq(trial_running(&trial), 0);
        live(with_a_best, 1, 0);
    }
    live(with_a_best, COMPLETE, 0);
    check_eq(trial.state, TRIAL_FROZEN);
    check(strategy_is_same(incumbent(), &best));
}

test(a_burst_is_no_drift)
{
    trial_begin(&trial, 700, &strategy_default);
    live(all_alike, COMPLETE, 0);
    for (unsigned burst = 0; burst < 20; burst++) {
        for (unsigned turn = 0; turn < LEARN_DRIFT_EPOCHS - 1; turn++) {
            trial_epoch_t epoch = epoch_of(300 * MILLION);
            trial_take(&trial, &epoch);
        }
        live(all_alike, 1, 0);
    }
    check_eq(trial.state, TRIAL_FROZEN);
    check_eq(events(EVENT_DRIFTED), 0);
}

/* ---- anything ---- */

test(whatever_is_observed_the_laws_hold)
{
    seed = check_seed(3);
    trial_begin(&trial, 700, &strategy_default);
    for (unsigned turn = 0; turn < 200000; turn++) {
        trial_epoch_t epoch;
        uint64_t *numbers = (uint64_t *)&epoch;
        for (unsigned index = 0; index < sizeof epoch / sizeof *numbers; index++)
            numbers[index] = next_random(&seed) >> next_random(&seed) % 64;
        if (turn % 3 != 0)
            epoch.refusals = 0;
        trial_take(&trial, &epoch);
        check(trial_is_valid(&trial));
        check(trial_running(&trial) < LEARN_STRATEGIES);
    }
}

check_main()
