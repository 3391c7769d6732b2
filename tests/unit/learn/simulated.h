/* Simulated programs, for the tests of learn/trial.h: each strategy has a known cost. An epoch
 * lasts a second, so that its cost is the nanoseconds of the purge that it reports. Included by one
 * program each. */
#ifndef HAKMEM_TESTS_SIMULATED_H
#define HAKMEM_TESTS_SIMULATED_H

#include "learn/trial.h"
#include "unit/fresh.h"

enum { MILLION = 1000000 };

static trial_t trial;
static uint64_t seed;

/* What a program costs under a strategy in this epoch. */
typedef uint64_t (*world_t)(const strategy_t *strategy);

static inline trial_epoch_t epoch_of(uint64_t cost)
{
    return (trial_epoch_t){.ms = 1000, .misses = 0, .purge_ns = cost};
}

/* Adds noise of so many per cent, either way. */
static inline uint64_t noisy(uint64_t cost, unsigned percent)
{
    uint64_t range = cost * percent / 100;
    return range == 0 ? cost : cost - range + next_random(&seed) % (2 * range + 1);
}

/* Lives so many epochs; returns what they cost. */
static inline uint64_t live(world_t world, unsigned epochs, unsigned percent)
{
    uint64_t sum = 0;
    for (unsigned turn = 0; turn < epochs; turn++) {
        trial_epoch_t epoch = epoch_of(noisy(world(trial_strategy(&trial)), percent));
        sum += epoch.purge_ns;
        trial_take(&trial, &epoch);
        check(trial_is_valid(&trial));
    }
    return sum;
}

static inline const strategy_t *incumbent(void)
{
    return &trial.contenders[trial.incumbent].strategy;
}

#endif
