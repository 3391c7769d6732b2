/*
 * bench_tail THREADS CYCLES SLOTS SEED [--min-size --max-size --realloc --beside --apart]
 *
 * How long can one call take? Threads run the slot loop, each over slots of its own, and every
 * malloc, free and realloc is timed by itself. The clock's own cost is in each time and reported as
 * clock_ns. Times are counted in buckets of 1/16 of a power of two; a percentile is the upper end
 * of its bucket.
 *
 * --realloc: of a hundred full slots, so many are resized and not freed. --beside: one more thread
 * meanwhile allocates, writes and frees so many MiB in blocks of 64 KiB to 4 MiB, again and again.
 * --apart: what the kernel adds is seen by itself. max_cpu_ns is the longest time that a call had a
 * processor, max_faults the most page faults of a call; a time of max_ns far above max_cpu_ns was
 * spent waiting for a lock or for a processor. It takes four system calls per call, outside its
 * time.
 */
#include "churn.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <time.h>

enum { THREADS, CYCLES, SLOTS, SEED, MIN_SIZE, MAX_SIZE, REALLOC, BESIDE, APART, PARAMETER_COUNT };
enum { MALLOC, FREE, RESIZE, KIND_OF_CALL_COUNT };
enum { BESIDE_MIN_SIZE = 64 << 10, BESIDE_MAX_SIZE = 4 << 20, FIGURES_OF_KIND = 7 };
enum { BUCKET_STEP_SHIFT = 4, BUCKET_COUNT = 64 << BUCKET_STEP_SHIFT, CLOCK_TRIALS = 1000 };

static parameter_t parameters[PARAMETER_COUNT] = {
    [THREADS] = {"threads", KIND_COUNT, POSITIONAL, 2, 1, LIMIT_THREADS, NULL, false},
    [CYCLES] = {"cycles", KIND_COUNT, POSITIONAL, 1000000, 1, LIMIT_CYCLES, NULL, false},
    [SLOTS] = {"slots", KIND_COUNT, POSITIONAL, 8192, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, NAMED_ONLY, 16, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, NAMED_ONLY, 1024, 1, LIMIT_SIZE, NULL, false},
    [REALLOC] = {"realloc", KIND_COUNT, NAMED_ONLY, 0, 0, 100, NULL, false},
    [BESIDE] = {"beside", KIND_COUNT, NAMED_ONLY, 0, 0, LIMIT_MEBIBYTES, NULL, false},
    [APART] = {"apart", KIND_COUNT, NAMED_ONLY, 0, 0, 1, NULL, false},
};

static bench_t bench = {"bench_tail", "one malloc, free or realloc, timed", parameters,
                        PARAMETER_COUNT, false};

typedef struct histogram {
    uint64_t counts[BUCKET_COUNT];
    uint64_t total;
    uint64_t most_ns;
    uint64_t most_cpu_ns;
    uint64_t most_faults;
} histogram_t;

typedef struct worker {
    churn_t churn;
    histogram_t calls[KIND_OF_CALL_COUNT];
} worker_t;

/* What a thread has used so far. */
typedef struct usage {
    uint64_t cpu_ns;
    uint64_t faults;
    uint64_t now_ns;
} usage_t;

static _Atomic uint64_t threads_at_work;

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
    if (from->most_cpu_ns > into->most_cpu_ns) into->most_cpu_ns = from->most_cpu_ns;
    if (from->most_faults > into->most_faults) into->most_faults = from->most_faults;
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

static usage_t usage_now(void)
{
    usage_t usage = {0};
    if (parameters[APART].value != 0) {
        struct rusage used;
        struct timespec cpu;
        getrusage(RUSAGE_THREAD, &used);
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
        usage.faults = (uint64_t)used.ru_minflt;
        usage.cpu_ns = (uint64_t)cpu.tv_sec * NS_PER_SECOND + (uint64_t)cpu.tv_nsec;
    }
    usage.now_ns = bench_now_ns();
    return usage;
}

static void call_add(histogram_t *histogram, usage_t before)
{
    histogram_add(histogram, bench_now_ns() - before.now_ns);
    if (parameters[APART].value == 0) return;
    usage_t after = usage_now();
    if (after.cpu_ns - before.cpu_ns > histogram->most_cpu_ns)
        histogram->most_cpu_ns = after.cpu_ns - before.cpu_ns;
    if (after.faults - before.faults > histogram->most_faults)
        histogram->most_faults = after.faults - before.faults;
}

static void work_in_slots(worker_t *worker)
{
    churn_t *churn = &worker->churn;
    for (uint64_t cycle = churn->cycles; cycle != 0; cycle--) {
        uint64_t bits = bench_random_next(&churn->random);
        unsigned char **slot = &churn->slots[bench_scale(bits, churn->slot_count)];
        uint64_t size = churn->least_size + bench_scale(bits >> 32, churn->size_range);
        if (*slot != NULL && bits % 100 >= parameters[REALLOC].value) {
            usage_t before = usage_now();
            free(*slot);
            call_add(&worker->calls[FREE], before);
            *slot = NULL;
            continue;
        }
        unsigned char *block = *slot;
        unsigned kind = block != NULL ? RESIZE : MALLOC;
        usage_t before = usage_now();
        block = kind == MALLOC ? malloc(size) : realloc(block, size);
        bench_use(block);
        call_add(&worker->calls[kind], before);
        bench_touch(block, size, churn->touch);
        *slot = block;
    }
    atomic_fetch_sub(&threads_at_work, 1);
}

static void work_beside(worker_t *worker)
{
    churn_t *churn = &worker->churn;
    while (atomic_load(&threads_at_work) != 0) {
        uint64_t bytes = 0;
        uint64_t count = 0;
        while (count < churn->slot_count && bytes < parameters[BESIDE].value << 20) {
            uint64_t size = BESIDE_MIN_SIZE +
                            bench_scale(bench_random_next(&churn->random),
                                        BESIDE_MAX_SIZE - BESIDE_MIN_SIZE);
            unsigned char *block = malloc(size);
            bench_touch(block, size, TOUCH_PAGES);
            churn->slots[count++] = block;
            bytes += size;
        }
        while (count != 0) free(churn->slots[--count]);
    }
}

static void work(void *context)
{
    worker_t *worker = context;
    if (worker->churn.cycles != 0)
        work_in_slots(worker);
    else
        work_beside(worker);
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
    static const char *const names[KIND_OF_CALL_COUNT][FIGURES_OF_KIND] = {
        {"malloc_p50_ns", "malloc_p99_ns", "malloc_p99_9_ns", "malloc_p99_99_ns", "malloc_max_ns",
         "malloc_max_cpu_ns", "malloc_max_faults"},
        {"free_p50_ns", "free_p99_ns", "free_p99_9_ns", "free_p99_99_ns", "free_max_ns",
         "free_max_cpu_ns", "free_max_faults"},
        {"realloc_p50_ns", "realloc_p99_ns", "realloc_p99_9_ns", "realloc_p99_99_ns",
         "realloc_max_ns", "realloc_max_cpu_ns", "realloc_max_faults"},
    };
    figure_t figures[1 + KIND_OF_CALL_COUNT * FIGURES_OF_KIND] = {{"clock_ns", least_clock_ns()}};
    size_t count = 1;
    uint64_t operations = 0;
    for (unsigned kind = 0; kind < KIND_OF_CALL_COUNT; kind++) {
        histogram_t *calls = &workers[0].calls[kind];
        for (uint64_t index = 1; index < parameters[THREADS].value; index++)
            histogram_merge(calls, &workers[index].calls[kind]);
        operations += calls->total;
        if (calls->total == 0) continue;
        const uint64_t values[FIGURES_OF_KIND] = {
            histogram_percentile_ns(calls, 5000), histogram_percentile_ns(calls, 9900),
            histogram_percentile_ns(calls, 9990), histogram_percentile_ns(calls, 9999),
            calls->most_ns, calls->most_cpu_ns, calls->most_faults};
        size_t seen = parameters[APART].value != 0 ? FIGURES_OF_KIND : FIGURES_OF_KIND - 2;
        for (size_t index = 0; index < seen; index++)
            figures[count++] = (figure_t){names[kind][index], values[index]};
    }
    bench_close_figures(&bench, operations, elapsed_ns, figures, count);
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    uint64_t thread_count = parameters[THREADS].value;
    uint64_t beside_count = parameters[BESIDE].value != 0;
    worker_t *workers = bench_map(thread_count + beside_count, sizeof(worker_t));
    for (uint64_t index = 0; index < thread_count; index++)
        workers[index].churn =
            churn_create(parameters[CYCLES].value, parameters[SLOTS].value,
                         parameters[MIN_SIZE].value, parameters[MAX_SIZE].value,
                         bench_random_seed(parameters[SEED].value, index));
    if (beside_count != 0)
        workers[thread_count].churn =
            churn_create(0, (parameters[BESIDE].value << 20) / BESIDE_MIN_SIZE, BESIDE_MIN_SIZE,
                         BESIDE_MAX_SIZE, bench_random_seed(parameters[SEED].value, thread_count));
    atomic_store(&threads_at_work, thread_count);
    uint64_t elapsed_ns = bench_run_threads(thread_count + beside_count, work, workers,
                                            sizeof(worker_t));
    for (uint64_t index = 0; index < thread_count; index++) churn_drain(&workers[index].churn);
    report(workers, elapsed_ns);
    return 0;
}
