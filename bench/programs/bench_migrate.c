/*
 * bench_migrate THREADS CYCLES SLOTS SEED [--min-size --max-size]
 *
 * All threads share one array of slots. Each step allocates a block, exchanges it with what a
 * random slot holds and frees what came out: a block is freed by whichever thread comes by.
 */
#include "bench.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { THREADS, CYCLES, SLOTS, SEED, MIN_SIZE, MAX_SIZE, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [THREADS] = {"threads", KIND_COUNT, POSITIONAL, 2, 1, LIMIT_THREADS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 5000000, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, POSITIONAL, 4096, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 256, 1, LIMIT_SIZE, NULL, false},
};

static bench_t bench = {"bench_migrate", "one malloc or one free", parameters, PARAMETER_COUNT,
                        false};

static _Atomic(unsigned char *) *slots;

static void work(void *context)
{
    bench_random_t random = *(bench_random_t *)context;
    uint64_t slot_count = parameters[SLOTS].value;
    uint64_t least_size = parameters[MIN_SIZE].value;
    uint64_t size_range = parameters[MAX_SIZE].value - least_size + 1;
    for (uint64_t cycle = parameters[CYCLES].value; cycle != 0; cycle--) {
        uint64_t bits = bench_random_next(&random);
        unsigned char *block = malloc(least_size + bench_scale(bits >> 32, size_range));
        if (block == NULL) bench_fail("malloc returned NULL");
        block[0] = 1;
        /* acquire and release: the block goes to the thread that exchanges next */
        free(atomic_exchange_explicit(&slots[bench_scale(bits, slot_count)], block,
                                      memory_order_acq_rel));
    }
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    uint64_t thread_count = parameters[THREADS].value;
    slots = bench_map(parameters[SLOTS].value, sizeof *slots);
    bench_random_t *randoms = bench_map(thread_count, sizeof(bench_random_t));
    for (uint64_t index = 0; index < thread_count; index++)
        randoms[index] = bench_random_seed(parameters[SEED].value, index);
    uint64_t elapsed_ns = bench_run_threads(thread_count, work, randoms, sizeof(bench_random_t));
    bench_close(&bench, 2 * thread_count * parameters[CYCLES].value, elapsed_ns);
    return 0;
}
