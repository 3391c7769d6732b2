/* learn/trial.h: six traces of phases, as programs have them, and what learning makes of each. What
 * an epoch costs follows from what a phase demands and from the strategy that runs. */
#include "unit/learn/simulated.h"

/* What a phase does in a second. */
typedef struct demand {
    uint64_t misses;      /* of bins as long as the default says; twice as long: half as many */
    uint64_t slab_misses; /* of depots likewise */
    uint64_t free_kib;    /* memory that becomes free, and is wanted again */
    uint64_t again_ms;    /* so much later */
} demand_t;

/* Held free in bins and depots of the default's length; and for so long does free memory wait. */
enum { BINS_KIB = 1024, DEPOTS_KIB = 4096, WAIT_MS = 300, PURGE_NS_PER_KIB = 50 };

static const demand_t nothing = {.misses = 100};
static const demand_t small_blocks = {.misses = 2000000, .slab_misses = 200000};
static const demand_t temporaries = {
    .misses = 20000, .slab_misses = 2000, .free_kib = 512 * KIB, .again_ms = 60};
static const demand_t farewells = {
    .misses = 200000, .slab_misses = 20000, .free_kib = 512 * KIB, .again_ms = 5000};

static uint64_t scaled(uint64_t value, int doublings)
{
    return doublings < 0 ? value >> -doublings : value << doublings;
}

static trial_epoch_t lived(const demand_t *demand, const strategy_t *strategy)
{
    const int8_t *doublings = strategy->doublings;
    uint64_t wait_ms = scaled(WAIT_MS, doublings[PARAMETER_WAIT]);
    bool is_kept = demand->again_ms <= wait_ms;
    uint64_t cached_kib = scaled(BINS_KIB, doublings[PARAMETER_BINS]) +
                          scaled(DEPOTS_KIB, doublings[PARAMETER_DEPOTS]);
    uint64_t free_kib_ms = demand->free_kib * smaller_of(demand->again_ms, wait_ms);
    return (trial_epoch_t){
        .ms = 1000,
        .misses = scaled(demand->misses, -doublings[PARAMETER_BINS]),
        .slab_misses = scaled(demand->slab_misses, -doublings[PARAMETER_DEPOTS]),
        .fresh_kib = is_kept ? 0 : demand->free_kib,
        .purge_ns = is_kept ? 0 : demand->free_kib * PURGE_NS_PER_KIB,
        .idle_kib_ms = cached_kib * 1000 + free_kib_ms,
        .idle_kib = cached_kib + free_kib_ms / 1000,
        .used_kib = 256 * KIB,
        .peak_kib = 256 * KIB + demand->free_kib,
        .taken_kib = demand->free_kib,
    };
}

/* ---- traces ---- */

enum { EPOCHS = 6000, PRICE = 700 };

typedef demand_t (*trace_t)(unsigned turn);

static demand_t steady(unsigned turn)
{
    (void)turn;
    return small_blocks;
}

static demand_t changes_once(unsigned turn)
{
    return turn < EPOCHS / 2 ? small_blocks : farewells;
}

static demand_t has_three_shifts(unsigned turn)
{
    const demand_t *shifts[] = {&small_blocks, &temporaries, &farewells};
    return *shifts[turn / 1000 % 3];
}

static demand_t has_bursts_and_gaps(unsigned turn)
{
    return turn / 30 % 2 == 0 ? temporaries : nothing;
}

static demand_t has_spikes(unsigned turn)
{
    return turn % 100 < 5 ? farewells : small_blocks;
}

static demand_t grows(unsigned turn)
{
    demand_t demand = small_blocks;
    demand.misses = demand.misses * (1 + turn) / 1000;
    demand.slab_misses = demand.slab_misses * (1 + turn) / 1000;
    return demand;
}

/* ---- what they cost ---- */

typedef struct outcome {
    uint64_t ours; /* nanoseconds, as all costs */
    uint64_t of_default;
    uint64_t least; /* of the fixed strategies */
    uint64_t switches;
    uint64_t promoted;
} outcome_t;

static uint64_t fixed_cost(trace_t trace, const strategy_t *strategy)
{
    uint64_t sum = 0;
    for (unsigned turn = 0; turn < EPOCHS; turn++) {
        demand_t demand = trace(turn);
        trial_epoch_t epoch = lived(&demand, strategy);
        sum += trial_cost(&epoch, PRICE);
    }
    return sum;
}

static uint64_t least_fixed_cost(trace_t trace)
{
    uint64_t least = UINT64_MAX;
    for (int bins = -LEARN_BINS_STEPS; bins <= LEARN_BINS_STEPS; bins++)
        for (int depots = -LEARN_DEPOTS_STEPS; depots <= LEARN_DEPOTS_STEPS; depots++)
            for (int wait = -LEARN_WAIT_SHORTER; wait <= LEARN_WAIT_LONGER; wait++) {
                strategy_t strategy = {{(int8_t)bins, (int8_t)depots, (int8_t)wait}};
                least = smaller_of(least, fixed_cost(trace, &strategy));
            }
    return least;
}

/* What is seen of an epoch has noise of so many per cent; what it costs has none. */
static outcome_t live_through(trace_t trace, unsigned percent)
{
    outcome_t outcome = {0};
    uint64_t known = 0;
    trial_begin(&trial, PRICE, &strategy_default);
    for (unsigned turn = 0; turn < EPOCHS; turn++) {
        demand_t demand = trace(turn);
        trial_epoch_t epoch = lived(&demand, trial_strategy(&trial));
        outcome.ours += trial_cost(&epoch, PRICE);
        epoch.misses = noisy(epoch.misses, percent);
        epoch.fresh_kib = noisy(epoch.fresh_kib, percent);
        epoch.idle_kib_ms = noisy(epoch.idle_kib_ms, percent);
        trial_take(&trial, &epoch);
        check(trial_is_valid(&trial)); /* all values lie within their clamps */
        for (; known < trial.record_count; known++)
            outcome.promoted += trial.records[known % LEARN_RECORDS].event == EVENT_PROMOTED;
    }
    outcome.switches = trial.switches;
    outcome.of_default = fixed_cost(trace, &strategy_default);
    outcome.least = least_fixed_cost(trace);
    return outcome;
}

/* Bounds in hundredths of what the default costs, and the best fixed strategy. */
static const struct {
    const char *name;
    trace_t trace;
    uint64_t of_default;
    uint64_t of_least;
    uint64_t switches;
} traces[] = {
    {"steady", steady, 40, 105, 150},
    {"changes once", changes_once, 70, 110, 350},
    {"three shifts", has_three_shifts, 90, 135, 400},
    {"bursts and gaps", has_bursts_and_gaps, 100, 115, 1300},
    {"spikes", has_spikes, 45, 112, 200},
    /* Each time that costs have risen by a quarter for long, the default comes back: a drift. */
    {"grows", grows, 50, 175, 700},
};

test(learning_keeps_to_its_bounds_in_each_trace)
{
    for (unsigned index = 0; index < sizeof traces / sizeof *traces; index++)
        for (unsigned percent = 0; percent <= 10; percent += 10) {
            seed = 1;
            outcome_t outcome = live_through(traces[index].trace, percent);
            uint64_t beside_default = outcome.ours * 100 / outcome.of_default;
            uint64_t beside_least = outcome.ours * 100 / outcome.least;
            (void)printf("%s, noise %u: %.2f of the default, %.2f of the best fixed, "
                         "%llu switches, %llu promoted\n", traces[index].name, percent,
                         (double)beside_default / 100, (double)beside_least / 100,
                         (unsigned long long)outcome.switches,
                         (unsigned long long)outcome.promoted);
            check(beside_default <= traces[index].of_default);
            check(beside_least <= traces[index].of_least);
            check(outcome.switches <= traces[index].switches);
        }
}

/* ---- what one run has learnt, in another ---- */

/* The incumbent after a whole trace. */
static strategy_t learnt_from(trace_t trace)
{
    seed = 1;
    (void)live_through(trace, 10);
    return *incumbent();
}

/* The phases of has_three_shifts, of other lengths and in another order. */
static demand_t has_shuffled_shifts(unsigned turn)
{
    const demand_t *shifts[] = {&small_blocks, &temporaries, &farewells};
    uint64_t state = turn / 150 + 7;
    return *shifts[next_random(&state) % 3];
}

/* A policy is in force before the first block: its gain begins in the first epoch. */
test(what_was_learnt_brings_its_gain_from_the_first_epochs_on)
{
    enum { FIRST = 10 };
    strategy_t first = learnt_from(steady);
    uint64_t ours = 0;
    strategy_t longest = {{LEARN_BINS_STEPS, LEARN_DEPOTS_STEPS, 0}};
    trial_epoch_t best = lived(&small_blocks, &longest);
    trial_epoch_t usual = lived(&small_blocks, &strategy_default);
    uint64_t most = FIRST * (trial_cost(&usual, PRICE) - trial_cost(&best, PRICE));
    trial_begin(&trial, PRICE, &first);
    for (unsigned turn = 0; turn < FIRST; turn++) {
        trial_epoch_t epoch = lived(&small_blocks, trial_strategy(&trial));
        ours += trial_cost(&epoch, PRICE);
        trial_take(&trial, &epoch);
    }
    uint64_t gain = FIRST * trial_cost(&usual, PRICE) - ours;
    (void)printf("%llu %% of what may be gained\n", (unsigned long long)(gain * 100 / most));
    check(gain * 100 >= most * 80);
}

test(what_was_learnt_holds_where_phases_are_shuffled)
{
    strategy_t learnt = learnt_from(has_three_shifts);
    uint64_t ours = fixed_cost(has_shuffled_shifts, &learnt);
    uint64_t of_default = fixed_cost(has_shuffled_shifts, &strategy_default);
    (void)printf("%.2f of the default, where the best fixed is %.2f\n",
                 (double)ours / (double)of_default,
                 (double)least_fixed_cost(has_shuffled_shifts) / (double)of_default);
    check(!strategy_is_same(&learnt, &strategy_default));
    check(ours * 100 <= of_default * 95);
}

check_main()
