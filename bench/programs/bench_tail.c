/*
 * bench_tail THREADS CYCLES SLOTS SEED [--min-size --max-size]
 *
 * How long can one malloc take? Threads run the slot loop, each over slots of its own, and every
 * malloc and free is timed by itself. The clock's own cost is in each time and reported as
 * clock_ns. Times are counted in buckets of 1/16 of a power of two; a percentile is the upper end
 * of its bucket.
 */
#include "churn.h"

enum { THREADS, CYCLES, SLOTS, SEED, MIN_SIZE, MAX_SIZE, PARAMETER_COUNT };
enum { BUCKET_STEP_SHIFT = 4, BUCKET_COUNT = 64 << BUCKET_STEP_SHIFT, CLOCK_TRIALS = 1000 };

static parameter_t parameters[PARAMETER_COUNT] = {
    [THREADS] = {"threads", KIND_COUNT, POSITIONAL, 2, 1, LIMIT_THREADS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 1000000, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, POSITIONAL, 8192, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 1024, 1, LIMIT_SIZE, NULL, false},
};

static bench_t bench = {"bench_tail", "one malloc or one free, timed", parameters,
                        PARAMETER_COUNT, false};

typedef struct histogram {
    uint64_t counts[BUCKET_COUNT];
    uint64_t total;
    uint64_t most_ns;
} histogram_t;

typedef struct worker {
    churn_t churn;
    histogram_t mallocs;
    histogram_t frees;
} worker_t;

/* Below 16 a bucket is one nanosecond; above, a sixteenth of a power of two. */
static size_t bucket_of(uint64_t time_ns)
{
    if (time_ns < (1 << BUCKET_STEP_SHIFT)) return time_ns;
    size_t shift = 63 - (size_t)__builtin_clzll(time_ns) - BUCKET_STEP_SHIFT;
    return (shift << BUCKET_STEP_SHIFT) + (time_ns >> shift);
}

static uint64_t bucket_end_ns(size_t bucket)
{
    if (bucket < (2 << BUCKET_STEP_SHIFT)) return bucket;
    size_t shift = (bucket >> BUCKET_STEP_SHIFT) - 1;
    return ((bucket - (shift << BUCKET_STEP_SHIFT) + 1) << shift) - 1;
}

static void histogram_add(histogram_t *histogram, uint64_t time_ns)
{
    histogram->counts[bucket_of(time_ns)]++;
    histogram->total++;
    if (time_ns > histogram->most_ns) histogram->most_ns = time_ns;
}

static void histogram_merge(histogram_t *into, const histogram_t *from)
{
    for (size_t bucket = 0; bucket < BUCKET_COUNT; bucket++)
        into->counts[bucket] += from->counts[bucket];
    into->total += from->total;
    if (from->most_ns > into->most_ns) into->most_ns = from->most_ns;
}

/* The time that `share` of 10,000 calls did not exceed. */
static uint64_t histogram_percentile_ns(const histogram_t *histogram, uint64_t share)
{
    uint64_t wanted = (histogram->total * share + 9999) / 10000;
    uint64_t seen = 0;
    for (size_t bucket = 0; bucket < BUCKET_COUNT; bucket++) {
        seen += histogram->counts[bucket];
        if (seen < wanted) continue;
        uint64_t end_ns = bucket_end_ns(bucket);
        return end_ns < histogram->most_ns ? end_ns : histogram->most_ns;
    }
    return histogram->most_ns;
}

static void work(void *context)
{
    worker_t *worker = context;
    churn_t *churn = &worker->churn;
    for (uint64_t cycle = churn->cycles; cycle != 0; cycle--) {
        uint64_t bits = bench_random_next(&churn->random);
        unsigned char **slot = &churn->slots[bench_scale(bits, churn->slot_count)];
        uint64_t start_ns = bench_now_ns();
        if (*slot != NULL) {
            free(*slot);
            histogram_add(&worker->frees, bench_now_ns() - start_ns);
            *slot = NULL;
        } else {
            uint64_t size = churn->least_size + bench_scale(bits >> 32, churn->size_range);
            unsigned char *block = malloc(size);
            bench_use(block);
            histogram_add(&worker->mallocs, bench_now_ns() - start_ns);
            bench_touch(block, size, churn->touch);
            *slot = block;
        }
    }
}

static uint64_t least_clock_ns(void)
{
    uint64_t least_ns = UINT64_MAX;
    for (int trial = 0; trial < CLOCK_TRIALS; trial++) {
        uint64_t start_ns = bench_now_ns();
        uint64_t cost_ns = bench_now_ns() - start_ns;
        if (cost_ns < least_ns) least_ns = cost_ns;
    }
    return least_ns;
}

static void report(worker_t *workers, uint64_t elapsed_ns)
{
    histogram_t *mallocs = &workers[0].mallocs;
    histogram_t *frees = &workers[0].frees;
    for (uint64_t index = 1; index < parameters[THREADS].value; index++) {
        histogram_merge(mallocs, &workers[index].mallocs);
        histogram_merge(frees, &workers[index].frees);
    }
    figure_t figures[] = {
        {"clock_ns", least_clock_ns()},
        {"malloc_p50_ns", histogram_percentile_ns(mallocs, 5000)},
        {"malloc_p99_ns", histogram_percentile_ns(mallocs, 9900)},
        {"malloc_p99_99_ns", histogram_percentile_ns(mallocs, 9999)},
        {"malloc_max_ns", mallocs->most_ns},
        {"free_p50_ns", histogram_percentile_ns(frees, 5000)},
        {"free_p99_ns", histogram_percentile_ns(frees, 9900)},
        {"free_p99_99_ns", histogram_percentile_ns(frees, 9999)},
        {"free_max_ns", frees->most_ns},
    };
    bench_close_figures(&bench, mallocs->total + frees->total, elapsed_ns, figures,
                        sizeof figures / sizeof figures[0]);
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    uint64_t thread_count = parameters[THREADS].value;
    worker_t *workers = bench_map(thread_count, sizeof(worker_t));
    for (uint64_t index = 0; index < thread_count; index++)
        workers[index].churn =
            churn_create(parameters[CYCLES].value, parameters[SLOTS].value,
                         parameters[MIN_SIZE].value, parameters[MAX_SIZE].value,
                         bench_random_seed(parameters[SEED].value, index));
    uint64_t elapsed_ns = bench_run_threads(thread_count, work, workers, sizeof(worker_t));
    for (uint64_t index = 0; index < thread_count; index++) churn_drain(&workers[index].churn);
    report(workers, elapsed_ns);
    return 0;
}
