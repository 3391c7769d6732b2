/*
 * bench_false_sharing THREADS CYCLES WRITES SIZE [--kind=active|passive]
 *
 * Each step frees a small block, allocates another and writes it many times: slow if the blocks of
 * two threads share a cache line. `active`: does the allocator hand one line to two threads?
 * `passive`: the first blocks come from one thread, so they do share lines; does it hand those out
 * again after they were freed? (After E. Berger's cache-thrash and cache-scratch.)
 */
#include "bench.h"

#include <stdlib.h>

enum { THREADS, CYCLES, WRITES, SIZE, KIND, PARAMETER_COUNT };
enum { KIND_ACTIVE, KIND_PASSIVE };

static parameter_t parameters[PARAMETER_COUNT] = {
    [THREADS] = {"threads", KIND_COUNT, POSITIONAL, 2, 1, LIMIT_THREADS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 100000, 1, LIMIT_CYCLES, NULL, false},
    [WRITES] = {"writes", KIND_COUNT, POSITIONAL, 1000, 1, LIMIT_CYCLES, NULL, false},
    [SIZE] = {"size", KIND_COUNT, POSITIONAL, 8, 1, LIMIT_SIZE, NULL, false},
    [KIND] = {"kind", KIND_CHOICE, NAMED_ONLY, KIND_ACTIVE, 0, 0, "active|passive", false},
};

static bench_t bench = {"bench_false_sharing", "one free, one malloc and the writes", parameters,
                        PARAMETER_COUNT, false};

static void work(void *context)
{
    unsigned char *block = *(unsigned char **)context;
    size_t size = parameters[SIZE].value;
    for (uint64_t cycle = parameters[CYCLES].value; cycle != 0; cycle--) {
        free(block);
        block = malloc(size);
        if (block == NULL) bench_fail("malloc returned NULL");
        /* As in the original, a store and a load of it. Nothing that was in the block before is
         * read: else the chain of one step would wait for that of the step before wherever an
         * allocator leaves freed blocks alone. */
        volatile unsigned char *written = block;
        for (uint64_t write = parameters[WRITES].value; write != 0; write--) {
            *written = (unsigned char)write;
            (void)*written;
        }
    }
    *(unsigned char **)context = block;
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_begin(&bench);
    uint64_t thread_count = parameters[THREADS].value;
    unsigned char **blocks = bench_map(thread_count, sizeof(unsigned char *));
    if (parameters[KIND].value == KIND_PASSIVE)
        for (uint64_t index = 0; index < thread_count; index++)
            blocks[index] = malloc(parameters[SIZE].value);
    uint64_t elapsed_ns = bench_run_threads(thread_count, work, blocks, sizeof(unsigned char *));
    bench_close(&bench, thread_count * parameters[CYCLES].value, elapsed_ns);
    return 0;
}
