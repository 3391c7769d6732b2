/*
 * bench_replace CYCLES SLOTS SEED [--min-size --max-size --touch]
 *
 * One thread keeps SLOTS buffers of 5 to 25 MB and replaces one at random, again and again, as
 * image filters and column stores do. Each new buffer is written.
 */
#include "bench.h"

#include <stdlib.h>

enum { CYCLES, SLOTS, SEED, MIN_SIZE, MAX_SIZE, TOUCH, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 200, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, POSITIONAL, 20, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 5000000, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 25000000, 1, LIMIT_SIZE, NULL, false},
    [TOUCH] = {"touch", KIND_CHOICE, NAMED_ONLY, TOUCH_PAGES, 0, 0, TOUCH_CHOICES, false},
};

static bench_t bench = {"bench_replace", "one free and one malloc", parameters, PARAMETER_COUNT,
                        false};

static unsigned char *new_buffer(uint64_t bits)
{
    uint64_t range = parameters[MAX_SIZE].value - parameters[MIN_SIZE].value + 1;
    uint64_t size = parameters[MIN_SIZE].value + bench_scale(bits, range);
    unsigned char *buffer = malloc(size);
    bench_touch(buffer, size, (touch_t)parameters[TOUCH].value);
    return buffer;
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    uint64_t slot_count = parameters[SLOTS].value;
    unsigned char **buffers = bench_map(slot_count, sizeof *buffers);
    bench_random_t random = bench_random_seed(parameters[SEED].value, 0);
    for (uint64_t index = 0; index < slot_count; index++)
        buffers[index] = new_buffer(bench_random_next(&random));
    uint64_t start_ns = bench_now_ns();
    for (uint64_t cycle = parameters[CYCLES].value; cycle != 0; cycle--) {
        uint64_t bits = bench_random_next(&random);
        unsigned char **buffer = &buffers[bench_scale(bits, slot_count)];
        free(*buffer);
        *buffer = new_buffer(bits >> 32);
    }
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    for (uint64_t index = 0; index < slot_count; index++) free(buffers[index]);
    bench_close(&bench, parameters[CYCLES].value, elapsed_ns);
    return 0;
}
