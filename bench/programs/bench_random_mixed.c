/*
 * bench_random_mixed CYCLES SLOTS SEED [--min-size --max-size]
 *
 * One thread allocates and frees small blocks at random over an array of slots.
 */
#include "churn.h"

enum { CYCLES, SLOTS, SEED, MIN_SIZE, MAX_SIZE, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 10000000, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, POSITIONAL, 256, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 1024, 1, LIMIT_SIZE, NULL, false},
};

static bench_t bench = {"bench_random_mixed", "one malloc or one free", parameters,
                        PARAMETER_COUNT, false};

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    churn_t churn = churn_create(parameters[CYCLES].value, parameters[SLOTS].value,
                                 parameters[MIN_SIZE].value, parameters[MAX_SIZE].value,
                                 bench_random_seed(parameters[SEED].value, 0));
    uint64_t start_ns = bench_now_ns();
    churn_run(&churn);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    churn_drain(&churn);
    bench_close(&bench, churn.cycles, elapsed_ns);
    return 0;
}
