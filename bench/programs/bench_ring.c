/*
 * bench_ring THREADS BATCH CYCLES [--min-size --max-size --seed]
 *
 * Threads in a ring: each allocates a batch for its right neighbour, then frees the batch that its
 * left neighbour allocated. Every block is freed by another thread than its own.
 */
#include "ring.h"

enum { THREADS, BATCH, CYCLES, MIN_SIZE, MAX_SIZE, SEED, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [THREADS] = {"threads", KIND_COUNT, POSITIONAL, 2, 2, LIMIT_THREADS, NULL, false},
    [BATCH] = {"batch", KIND_COUNT, POSITIONAL, 100, 1, LIMIT_SLOTS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 100000, 1, LIMIT_CYCLES, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 1024, 1, LIMIT_SIZE, NULL, false},
    [SEED] = {"seed", KIND_COUNT, NAMED_ONLY, 42, 0, UINT32_MAX, NULL, false},
};

static bench_t bench = {"bench_ring", "one malloc or one free", parameters, PARAMETER_COUNT,
                        false};

typedef struct member {
    ring_t *to_right;
    ring_t *from_left;
    bench_random_t random;
} member_t;

static void work(void *context)
{
    member_t *member = context;
    uint64_t batch = parameters[BATCH].value;
    uint64_t least_size = parameters[MIN_SIZE].value;
    uint64_t size_range = parameters[MAX_SIZE].value - least_size + 1;
    unsigned tries = 0;
    for (uint64_t cycle = parameters[CYCLES].value; cycle != 0; cycle--) {
        while (!ring_has_room(member->to_right, batch)) ring_wait(&tries);
        ring_fill(member->to_right, batch, least_size, size_range, &member->random,
                  TOUCH_NONE);
        while (!ring_has_entries(member->from_left, batch)) ring_wait(&tries);
        ring_drain(member->from_left, batch);
    }
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    uint64_t thread_count = parameters[THREADS].value;
    ring_t *rings = bench_map(thread_count, sizeof(ring_t));
    member_t *members = bench_map(thread_count, sizeof(member_t));
    for (uint64_t index = 0; index < thread_count; index++) {
        ring_create(&rings[index], parameters[BATCH].value);
        members[index].to_right = &rings[index];
        members[index].from_left = &rings[index == 0 ? thread_count - 1 : index - 1];
        members[index].random = bench_random_seed(parameters[SEED].value, index);
    }
    uint64_t elapsed_ns = bench_run_threads(thread_count, work, members, sizeof(member_t));
    uint64_t blocks = thread_count * parameters[CYCLES].value * parameters[BATCH].value;
    bench_close(&bench, 2 * blocks, elapsed_ns);
    return 0;
}
