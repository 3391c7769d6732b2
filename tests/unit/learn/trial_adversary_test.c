/* learn/trial.h: how much learning may cost where an adversary decides what strategies cost. */
#include "unit/learn/simulated.h"

/* In one phase each doubling of bins makes the program cost a quarter more, in the other each
 * halving. So no fixed strategy is right in both. What is claimed: whatever the phases do, learning
 * costs no more than 1.6 times the best fixed strategy in hindsight, where a step changes costs by
 * a quarter at most; and it changes strategies no more often than matches need. */

enum { LEVELS = 2 * LEARN_BINS_STEPS + 1, WAR = 10000 };
_Static_assert(LEARN_BINS_STEPS == 2, "the costs below are of five levels");
static const uint64_t level_costs[LEVELS] = {64, 80, 100, 125, 156};
static unsigned phase;

static uint64_t in_phases(const strategy_t *strategy)
{
    int level = LEARN_BINS_STEPS + strategy->doublings[PARAMETER_BINS];
    return level_costs[phase == 0 ? level : LEVELS - 1 - level] * MILLION;
}

typedef void (*adversary_t)(unsigned turn);

static unsigned period;

static void flips_regularly(unsigned turn)
{
    phase = turn / period % 2;
}

static void flips_at_random(unsigned turn)
{
    (void)turn;
    if (next_random(&seed) % period == 0)
        phase ^= 1;
}

/* Knows who runs, and makes it the wrong one. */
static void hurts_who_runs(unsigned turn)
{
    int level = trial_strategy(&trial)->doublings[PARAMETER_BINS];
    (void)turn;
    phase = level < 0 ? 1 : level > 0 ? 0 : phase;
}

/* Waits until something is learnt, then makes it wrong. */
static void hurts_who_has_won(unsigned turn)
{
    int level = incumbent()->doublings[PARAMETER_BINS];
    (void)turn;
    phase = level < 0 ? 1 : level > 0 ? 0 : phase;
}

static void hurts_what_is_frozen(unsigned turn)
{
    if (trial.state == TRIAL_FROZEN)
        hurts_who_has_won(turn);
}

/* In hundredths: what learning costs, of the best fixed strategy and of the default. */
typedef struct outcome {
    uint64_t of_least;
    uint64_t of_default;
} outcome_t;

static outcome_t wage(adversary_t adversary, unsigned percent)
{
    uint64_t fixed[LEVELS] = {0};
    uint64_t ours = 0;
    uint64_t least = UINT64_MAX;
    phase = 0;
    trial_begin(&trial, 700, &strategy_default);
    for (unsigned turn = 0; turn < WAR; turn++) {
        adversary(turn);
        for (int level = 0; level < LEVELS; level++)
            fixed[level] += in_phases(&(strategy_t){{(int8_t)(level - LEARN_BINS_STEPS), 0, 0}});
        ours += live(in_phases, 1, percent);
    }
    for (unsigned level = 0; level < LEVELS; level++)
        least = smaller_of(least, fixed[level]);
    check(trial.switches <= trial.epochs / 2 + trial.record_count);
    return (outcome_t){ours * 100 / least, ours * 100 / fixed[LEARN_BINS_STEPS]};
}

test(an_adversary_makes_it_cost_at_most_sixteen_tenths_of_the_best)
{
    static const adversary_t adversaries[] = {flips_regularly, flips_at_random, hurts_who_runs,
                                              hurts_who_has_won, hurts_what_is_frozen};
    static const unsigned periods[] = {1, 2, 3, 4, 7, 8, 16, 33, 60, 100, 200, 333, 1000, 3000};
    const unsigned count = sizeof periods / sizeof *periods;
    outcome_t worst = {0};
    for (unsigned index = 0; index < sizeof adversaries / sizeof *adversaries; index++)
        for (unsigned each = 0; each < (index < 2 ? count : 1); each++) /* two have a period */
            for (unsigned percent = 0; percent <= 10; percent += 10) {
                seed = each + 1;
                period = periods[each];
                outcome_t outcome = wage(adversaries[index], percent);
                if (outcome.of_least > worst.of_least || outcome.of_default > worst.of_default)
                    (void)printf("adversary %u, period %u, noise %u: %.2f, of the default %.2f\n",
                                 index, period, percent, (double)outcome.of_least / 100,
                                 (double)outcome.of_default / 100);
                worst.of_least = larger_of(worst.of_least, outcome.of_least);
                worst.of_default = larger_of(worst.of_default, outcome.of_default);
            }
    check(worst.of_least <= 160);
    check(worst.of_default <= 110);
}

/* Where nothing flips, what is learnt pays for the search. */
test(steady_phases_are_learnt_soon)
{
    period = WAR;
    seed = 1;
    uint64_t cost = wage(flips_regularly, 10).of_least;
    (void)printf("%.2f of the best fixed strategy\n", (double)cost / 100);
    check(cost <= 105);
}

check_main()
