/*
 * bench_aligned CYCLES SLOTS SEED [--min-size --max-size --min-alignment --max-alignment]
 *
 * One thread allocates aligned blocks and frees them at random over an array of slots. Alignments
 * are random powers of two; each block is checked to have its own.
 */
#include "churn.h"

enum { CYCLES, SLOTS, SEED, MIN_SIZE, MAX_SIZE, MIN_ALIGNMENT, MAX_ALIGNMENT, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 1000000, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, POSITIONAL, 256, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 1024, 1, LIMIT_SIZE, NULL, false},
    [MIN_ALIGNMENT] = {"min-alignment", KIND_COUNT, NAMED_ONLY, 16, 8, 1048576, NULL, false},
    [MAX_ALIGNMENT] = {"max-alignment", KIND_COUNT, NAMED_ONLY, 4096, 8, 1048576, NULL, false},
};

static bench_t bench = {"bench_aligned", "one posix_memalign or one free", parameters,
                        PARAMETER_COUNT, false};

static void run(churn_t *churn, uint64_t least_shift, uint64_t shift_range)
{
    for (uint64_t cycle = churn->cycles; cycle != 0; cycle--) {
        uint64_t bits = bench_random_next(&churn->random);
        unsigned char **slot = &churn->slots[bench_scale(bits, churn->slot_count)];
        if (*slot != NULL) {
            free(*slot);
            *slot = NULL;
            continue;
        }
        /* The lowest bits choose the slot too, but only its last places. */
        size_t alignment = (size_t)1 << (least_shift + bench_scale(bits << 16, shift_range));
        uint64_t size = churn->least_size + bench_scale(bits >> 32, churn->size_range);
        void *block;
        if (posix_memalign(&block, alignment, size) != 0) bench_fail("posix_memalign failed");
        if (((uintptr_t)block & (alignment - 1)) != 0) bench_fail("a block is misaligned");
        bench_touch(block, size, churn->touch);
        *slot = block;
    }
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_check_order(&bench, MIN_ALIGNMENT, MAX_ALIGNMENT);
    uint64_t least = parameters[MIN_ALIGNMENT].value;
    uint64_t most = parameters[MAX_ALIGNMENT].value;
    if ((least & (least - 1)) != 0 || (most & (most - 1)) != 0)
        bench_refuse(bench.program, "an alignment is a power of two");
    bench_begin(&bench);
    uint64_t least_shift = (uint64_t)__builtin_ctzll(least);
    uint64_t shift_range = (uint64_t)__builtin_ctzll(most) - least_shift + 1;
    churn_t churn = churn_create(parameters[CYCLES].value, parameters[SLOTS].value,
                                 parameters[MIN_SIZE].value, parameters[MAX_SIZE].value,
                                 bench_random_seed(parameters[SEED].value, 0));
    uint64_t start_ns = bench_now_ns();
    run(&churn, least_shift, shift_range);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    churn_drain(&churn);
    bench_close(&bench, churn.cycles, elapsed_ns);
    return 0;
}
