/*
 * bench_tiny_hot SIZE BATCH CYCLES
 *
 * One thread allocates a batch of equal small blocks and frees it, last block first.
 */
#include "bench.h"

#include <stdlib.h>

enum { SIZE, BATCH, CYCLES, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [SIZE] = {"size", KIND_COUNT, POSITIONAL, 32, 1, LIMIT_SIZE, NULL, false},
    [BATCH] = {"batch", KIND_COUNT, POSITIONAL, 100, 1, LIMIT_SLOTS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 60000, 1, LIMIT_CYCLES, NULL, false},
};

static bench_t bench = {"bench_tiny_hot", "one malloc or one free", parameters, PARAMETER_COUNT,
                        false};

static void run_batches(unsigned char **blocks)
{
    size_t size = parameters[SIZE].value;
    size_t batch = parameters[BATCH].value;
    for (uint64_t cycle = parameters[CYCLES].value; cycle != 0; cycle--) {
        for (size_t index = 0; index < batch; index++) {
            unsigned char *block = malloc(size);
            if (block == NULL) bench_fail("malloc returned NULL");
            block[0] = 1;
            blocks[index] = block;
        }
        for (size_t index = batch; index != 0; index--) free(blocks[index - 1]);
    }
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_begin(&bench);
    unsigned char **blocks = bench_map(parameters[BATCH].value, sizeof(unsigned char *));
    uint64_t start_ns = bench_now_ns();
    run_batches(blocks);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    bench_close(&bench, 2 * parameters[BATCH].value * parameters[CYCLES].value, elapsed_ns);
    return 0;
}
