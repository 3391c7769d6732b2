/*
 * bench_vm_mixed CYCLES SLOTS SEED [--min-size --max-size --threads --touch]
 *
 * One thread, or several with slots of their own, allocates and frees blocks of 512 KiB to 2 MiB.
 */
#include "churn.h"

enum { CYCLES, SLOTS, SEED, MIN_SIZE, MAX_SIZE, THREADS, TOUCH, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [THREADS] = {"threads", KIND_COUNT, NAMED_ONLY, 1, 1, LIMIT_THREADS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 20000, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, POSITIONAL, 256, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 524288, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 2097152, 1, LIMIT_SIZE, NULL, false},
    [TOUCH] = {"touch", KIND_CHOICE, NAMED_ONLY, TOUCH_ENDS, 0, 0, TOUCH_CHOICES, false},
};

static bench_t bench = {"bench_vm_mixed", "one malloc or one free", parameters,
                        PARAMETER_COUNT, false};

static void work(void *context)
{
    churn_run(context);
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    uint64_t thread_count = parameters[THREADS].value;
    churn_t *churns = bench_map(thread_count, sizeof(churn_t));
    for (uint64_t index = 0; index < thread_count; index++) {
        churns[index] = churn_create(parameters[CYCLES].value, parameters[SLOTS].value,
                                     parameters[MIN_SIZE].value, parameters[MAX_SIZE].value,
                                     bench_random_seed(parameters[SEED].value, index));
        churns[index].touch = (touch_t)parameters[TOUCH].value;
    }
    uint64_t elapsed_ns = bench_run_threads(thread_count, work, churns, sizeof(churn_t));
    for (uint64_t index = 0; index < thread_count; index++) churn_drain(&churns[index]);
    bench_close(&bench, thread_count * parameters[CYCLES].value, elapsed_ns);
    return 0;
}
