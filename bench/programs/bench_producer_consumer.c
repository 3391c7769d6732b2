/*
 * bench_producer_consumer PAIRS BATCH SECONDS [--items --min-size --max-size --seed --touch]
 *
 * In each pair one thread allocates and the other frees. Ends after SECONDS; or, if --items is not
 * 0, after that many blocks per pair, whatever SECONDS says. The producer writes the first byte of
 * each block, and besides what --touch says.
 */
#include "ring.h"

enum { PAIRS, BATCH, SECONDS, ITEMS, MIN_SIZE, MAX_SIZE, SEED, TOUCH, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [PAIRS] = {"pairs", KIND_COUNT, POSITIONAL, 1, 1, LIMIT_THREADS / 2, NULL, false},
    [BATCH] = {"batch", KIND_COUNT, POSITIONAL, 100, 1, LIMIT_SLOTS, NULL, false},
    [SECONDS] = {"seconds", KIND_SECONDS, POSITIONAL, NS_PER_SECOND, 1000000, LIMIT_SECONDS_NS,
                 NULL, false},
    [ITEMS] = {"items", KIND_COUNT, NAMED_ONLY, 0, 0, LIMIT_CYCLES, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 256, 1, LIMIT_SIZE, NULL, false},
    [SEED] = {"seed", KIND_COUNT, NAMED_ONLY, 42, 0, UINT32_MAX, NULL, false},
    [TOUCH] = {"touch", KIND_CHOICE, NAMED_ONLY, TOUCH_NONE, 0, 0, TOUCH_CHOICES, false},
};

static bench_t bench = {"bench_producer_consumer", "one malloc or one free", parameters,
                        PARAMETER_COUNT, false};

typedef struct side {
    ring_t *ring;
    bench_random_t random;
    uint64_t batches; /* produced or consumed */
    bool is_producer;
} side_t;

static uint64_t deadline_ns; /* 0: as many batches as most_batches says */
static uint64_t most_batches;

/* The producer reads the clock once in this many batches. */
static uint64_t clock_interval(void)
{
    return 1 + 4096 / parameters[BATCH].value;
}

static void produce(side_t *side)
{
    uint64_t batch = parameters[BATCH].value;
    uint64_t size_range = parameters[MAX_SIZE].value - parameters[MIN_SIZE].value + 1;
    uint64_t interval = clock_interval();
    uint64_t countdown = interval;
    unsigned tries = 0;
    while (side->batches < most_batches) {
        while (!ring_has_room(side->ring, batch)) ring_wait(&tries);
        ring_fill(side->ring, batch, parameters[MIN_SIZE].value, size_range, &side->random,
                  (touch_t)parameters[TOUCH].value);
        side->batches++;
        if (deadline_ns == 0 || --countdown != 0) continue;
        if (bench_now_ns() >= deadline_ns) break;
        countdown = interval;
    }
    /* The end: one batch-sized step without blocks. */
    while (!ring_has_room(side->ring, batch)) ring_wait(&tries);
    *ring_entry(side->ring, &side->ring->written, 0) = NULL;
    ring_write_done(side->ring, batch);
}

static void consume(side_t *side)
{
    uint64_t batch = parameters[BATCH].value;
    unsigned tries = 0;
    for (;;) {
        while (!ring_has_entries(side->ring, batch)) ring_wait(&tries);
        if (*ring_entry(side->ring, &side->ring->read, 0) == NULL) return;
        ring_drain(side->ring, batch);
        side->batches++;
    }
}

static void work(void *context)
{
    side_t *side = context;
    if (side->is_producer)
        produce(side);
    else
        consume(side);
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    if (parameters[ITEMS].is_given && parameters[SECONDS].is_given)
        bench_refuse(bench.program, "seconds and items exclude each other");
    bench_begin(&bench);
    uint64_t pair_count = parameters[PAIRS].value;
    ring_t *rings = bench_map(pair_count, sizeof(ring_t));
    side_t *sides = bench_map(2 * pair_count, sizeof(side_t));
    for (uint64_t index = 0; index < 2 * pair_count; index++) {
        sides[index].ring = &rings[index / 2];
        sides[index].random = bench_random_seed(parameters[SEED].value, index);
        sides[index].is_producer = index % 2 == 0;
        if (sides[index].is_producer) ring_create(&rings[index / 2], parameters[BATCH].value);
    }
    most_batches = UINT64_MAX;
    if (parameters[ITEMS].value != 0)
        most_batches = (parameters[ITEMS].value - 1) / parameters[BATCH].value + 1;
    else
        deadline_ns = bench_now_ns() + parameters[SECONDS].value;
    uint64_t elapsed_ns = bench_run_threads(2 * pair_count, work, sides, sizeof(side_t));
    uint64_t operations = 0;
    for (uint64_t index = 0; index < 2 * pair_count; index++)
        operations += sides[index].batches * parameters[BATCH].value;
    bench_close(&bench, operations, elapsed_ns);
    return 0;
}
