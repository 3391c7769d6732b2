/*
 * bench_calloc SIZE BATCH CYCLES [--blocks=reused|fresh --touch]
 *
 * `reused`: batches of zeroed blocks are written all over and freed, so that the next ones must be
 * cleared. `fresh`: all blocks are kept to the end, so that most come straight from the kernel.
 * The first and last byte of each block are checked to be zero; then it is written as --touch says.
 */
#include "bench.h"

#include <stdlib.h>
#include <string.h>

enum { SIZE, BATCH, CYCLES, BLOCKS, TOUCH, PARAMETER_COUNT };
enum { BLOCKS_REUSED, BLOCKS_FRESH };

static parameter_t parameters[PARAMETER_COUNT] = {
    [SIZE] = {"size", KIND_COUNT, POSITIONAL, 256, 1, LIMIT_SIZE, NULL, false},
    [BATCH] = {"batch", KIND_COUNT, POSITIONAL, 100, 1, LIMIT_SLOTS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 10000, 1, LIMIT_CYCLES, NULL, false},
    [BLOCKS] = {"blocks", KIND_CHOICE, NAMED_ONLY, BLOCKS_REUSED, 0, 0, "reused|fresh", false},
    [TOUCH] = {"touch", KIND_CHOICE, NAMED_ONLY, TOUCH_NONE, 0, 0, TOUCH_CHOICES, false},
};

static bench_t bench = {"bench_calloc", "one calloc, and its free if blocks are reused",
                        parameters, PARAMETER_COUNT, false};

static void fill_batch(unsigned char **blocks, size_t batch, size_t size)
{
    unsigned char dirt = 0;
    for (size_t index = 0; index < batch; index++) {
        unsigned char *block = calloc(1, size);
        if (block == NULL) bench_fail("calloc returned NULL");
        dirt |= block[0] | block[size - 1];
        bench_touch(block, size, (touch_t)parameters[TOUCH].value);
        blocks[index] = block;
    }
    if (dirt != 0) bench_fail("calloc returned a block that is not zero");
}

static void drain_batch(unsigned char **blocks, size_t batch, size_t size)
{
    for (size_t index = batch; index != 0; index--) {
        memset(blocks[index - 1], 0xff, size);
        bench_use(blocks[index - 1]);
        free(blocks[index - 1]);
    }
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    size_t batch = parameters[BATCH].value;
    size_t size = parameters[SIZE].value;
    uint64_t cycles = parameters[CYCLES].value;
    bool is_fresh = parameters[BLOCKS].value == BLOCKS_FRESH;
    if (is_fresh && cycles > LIMIT_SLOTS / batch)
        bench_refuse(bench.program, "batch * cycles is too large for fresh blocks");
    bench_begin(&bench);
    unsigned char **blocks = bench_map(is_fresh ? batch * cycles : batch, sizeof *blocks);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t cycle = 0; cycle < cycles; cycle++) {
        fill_batch(is_fresh ? blocks + cycle * batch : blocks, batch, size);
        if (!is_fresh) drain_batch(blocks, batch, size);
    }
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    bench_close(&bench, batch * cycles, elapsed_ns);
    return 0;
}
