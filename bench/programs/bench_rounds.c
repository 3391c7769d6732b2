/*
 * bench_rounds ROUNDS MEBIBYTES SEED [--min-size --max-size --call --touch]
 *
 * Each round allocates blocks until MEBIBYTES are live, writes them, and frees them all, the oldest
 * first: a request, a frame or a batch that takes a lot of memory and leaves nothing.
 */
#include "bench.h"

#include <stdlib.h>

enum { ROUNDS, MEBIBYTES, SEED, MIN_SIZE, MAX_SIZE, CALL, TOUCH, PARAMETER_COUNT };
enum { CALL_MALLOC, CALL_CALLOC };

static parameter_t parameters[PARAMETER_COUNT] = {
    [ROUNDS] = {"rounds", KIND_COUNT, POSITIONAL, 10, 1, LIMIT_CYCLES, NULL, false},
    [MEBIBYTES] = {"mebibytes", KIND_COUNT, POSITIONAL, 400, 1, LIMIT_MEBIBYTES, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 1024, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 1024, 1, LIMIT_SIZE, NULL, false},
    [CALL] = {"call", KIND_CHOICE, NAMED_ONLY, CALL_MALLOC, 0, 0, "malloc|calloc", false},
    [TOUCH] = {"touch", KIND_CHOICE, NAMED_ONLY, TOUCH_PAGES, 0, 0, TOUCH_CHOICES, false},
};

static bench_t bench = {"bench_rounds", "one malloc or calloc, or one free", parameters,
                        PARAMETER_COUNT, false};

/* Returns how many blocks the round had. */
static uint64_t run_round(unsigned char **blocks, bench_random_t *random)
{
    uint64_t least_size = parameters[MIN_SIZE].value;
    uint64_t size_range = parameters[MAX_SIZE].value - least_size + 1;
    uint64_t wanted = parameters[MEBIBYTES].value * BYTES_PER_MEBIBYTE;
    uint64_t count = 0;
    for (uint64_t live = 0; live < wanted; count++) {
        uint64_t size = least_size + bench_scale(bench_random_next(random), size_range);
        bool is_zeroed = parameters[CALL].value == CALL_CALLOC;
        blocks[count] = is_zeroed ? calloc(1, size) : malloc(size);
        bench_touch(blocks[count], size, (touch_t)parameters[TOUCH].value);
        live += size;
    }
    for (uint64_t index = 0; index < count; index++) free(blocks[index]);
    return count;
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    uint64_t bytes = parameters[MEBIBYTES].value * BYTES_PER_MEBIBYTE;
    uint64_t most_blocks = bytes / parameters[MIN_SIZE].value + 1;
    if (most_blocks > LIMIT_SLOTS)
        bench_refuse(bench.program, "mebibytes is too large for blocks as small as min-size");
    bench_begin(&bench);
    unsigned char **blocks = bench_map(most_blocks, sizeof *blocks);
    bench_random_t random = bench_random_seed(parameters[SEED].value, 0);
    uint64_t block_count = 0;
    uint64_t start_ns = bench_now_ns();
    for (uint64_t round = parameters[ROUNDS].value; round != 0; round--)
        block_count += run_round(blocks, &random);
    bench_close(&bench, 2 * block_count, bench_now_ns() - start_ns);
    return 0;
}
