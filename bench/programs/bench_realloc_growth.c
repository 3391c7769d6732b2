/*
 * bench_realloc_growth CYCLES BUFFERS [--start --limit --percent --touch]
 *
 * Buffers grow side by side by realloc, as vectors and strings do: from 16 bytes to 64 MiB, each
 * time to PERCENT of the size before. The last byte before each growth is checked after it.
 */
#include "bench.h"

#include <stdlib.h>

enum { CYCLES, BUFFERS, START, LIMIT, PERCENT, TOUCH, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 10, 1, LIMIT_CYCLES, NULL, false},
    [BUFFERS] = {"buffers", KIND_COUNT, POSITIONAL, 2, 1, LIMIT_SLOTS, NULL, false},
    [START] = {"start", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [LIMIT] = {"limit", KIND_COUNT, NAMED_ONLY, 67108864, 1, LIMIT_SIZE, NULL, false},
    [PERCENT] = {"percent", KIND_COUNT, NAMED_ONLY, 150, 101, 1000, NULL, false},
    [TOUCH] = {"touch", KIND_CHOICE, NAMED_ONLY, TOUCH_PAGES, 0, 0, TOUCH_CHOICES, false},
};

static bench_t bench = {"bench_realloc_growth", "one realloc", parameters, PARAMETER_COUNT,
                        false};

/* Writes what the growth added. */
static void touch_growth(unsigned char *buffer, uint64_t old_size, uint64_t size)
{
    uint64_t offset = (old_size + BENCH_PAGE_SIZE - 1) & ~(uint64_t)(BENCH_PAGE_SIZE - 1);
    if (parameters[TOUCH].value == TOUCH_NONE) return;
    if (parameters[TOUCH].value == TOUCH_WHOLE) memset(buffer + old_size, 1, size - old_size);
    if (parameters[TOUCH].value == TOUCH_PAGES)
        for (; offset < size; offset += BENCH_PAGE_SIZE) buffer[offset] = 1;
    buffer[size - 1] = 0xa5;
}

/* Grows all buffers from start to limit and frees them; returns the number of reallocs. */
static uint64_t grow(unsigned char **buffers)
{
    uint64_t buffer_count = parameters[BUFFERS].value;
    uint64_t limit = parameters[LIMIT].value;
    uint64_t old_size = 0;
    uint64_t steps = 0;
    for (uint64_t size = parameters[START].value;; steps++) {
        for (uint64_t index = 0; index < buffer_count; index++) {
            unsigned char *buffer = realloc(buffers[index], size);
            if (buffer == NULL) bench_fail("realloc returned NULL");
            if (parameters[TOUCH].value != TOUCH_NONE && old_size != 0 &&
                buffer[old_size - 1] != 0xa5)
                bench_fail("realloc lost a byte");
            touch_growth(buffer, old_size, size);
            buffers[index] = buffer;
        }
        if (size == limit) break;
        old_size = size;
        size = size * parameters[PERCENT].value / 100 + 1;
        if (size > limit) size = limit;
    }
    for (uint64_t index = 0; index < buffer_count; index++) {
        free(buffers[index]);
        buffers[index] = NULL;
    }
    return (steps + 1) * buffer_count;
}

int main(int argument_count, char **arguments)
{
    uint64_t operations = 0;
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, START, LIMIT);
    bench_begin(&bench);
    unsigned char **buffers = bench_map(parameters[BUFFERS].value, sizeof *buffers);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t cycle = parameters[CYCLES].value; cycle != 0; cycle--)
        operations += grow(buffers);
    bench_close(&bench, operations, bench_now_ns() - start_ns);
    return 0;
}
