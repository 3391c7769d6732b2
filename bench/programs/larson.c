/*
 * larson SECONDS MIN MAX CHUNKS ROUNDS SEED THREADS
 *
 * A server after P. Larson and M. Krishnan: each thread owns CHUNKS blocks and replaces one at
 * random, again and again. After ROUNDS * CHUNKS replacements the thread ends and a successor,
 * which it starts, goes on with its blocks; so blocks outlive the thread that allocated them.
 */
#include "bench.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

enum { SECONDS, MIN_SIZE, MAX_SIZE, CHUNKS, ROUNDS, SEED, THREADS, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [SECONDS] = {"seconds", KIND_SECONDS, POSITIONAL, 5 * NS_PER_SECOND, 1000000,
                 LIMIT_SECONDS_NS, NULL, false},
    [MIN_SIZE] = {"min-size", KIND_COUNT, POSITIONAL, 8, 1, LIMIT_SIZE, NULL, false},
    [MAX_SIZE] = {"max-size", KIND_COUNT, POSITIONAL, 128, 1, LIMIT_SIZE, NULL, false},
    [CHUNKS] = {"chunks", KIND_COUNT, POSITIONAL, 1024, 1, LIMIT_SLOTS, NULL, false},
    [ROUNDS] = {"rounds", KIND_COUNT, POSITIONAL, 100, 1, LIMIT_SLOTS, NULL, false},
    [SEED] = {"seed", KIND_COUNT, POSITIONAL, 42, 0, UINT32_MAX, NULL, false},
    [THREADS] = {"threads", KIND_COUNT, POSITIONAL, 1, 1, LIMIT_THREADS, NULL, false},
};

static bench_t bench = {"larson", "one free and one malloc", parameters, PARAMETER_COUNT, false};

/* One line of succession; handed from thread to thread. */
typedef struct line {
    unsigned char **blocks;
    bench_random_t random;
    uint64_t replacements;
    uint64_t threads;
    char padding[64];
} line_t;

static atomic_bool is_over;
static sem_t line_ended;
static pthread_attr_t detached;

static unsigned char *new_block(uint64_t bits)
{
    uint64_t range = parameters[MAX_SIZE].value - parameters[MIN_SIZE].value + 1;
    unsigned char *block = malloc(parameters[MIN_SIZE].value + bench_scale(bits, range));
    if (block == NULL) bench_fail("malloc returned NULL");
    block[0] = 1;
    return block;
}

/* Returns how many blocks were replaced before the time was over. */
static uint64_t replace_blocks(line_t *line)
{
    bench_random_t random = line->random;
    uint64_t chunk_count = parameters[CHUNKS].value;
    uint64_t most = parameters[ROUNDS].value * chunk_count;
    uint64_t done = 0;
    /* relaxed: nothing is read that depends on the flag */
    while (done < most && !atomic_load_explicit(&is_over, memory_order_relaxed)) {
        uint64_t bits = bench_random_next(&random);
        unsigned char **victim = &line->blocks[bench_scale(bits, chunk_count)];
        free(*victim);
        *victim = new_block(bits >> 32);
        done++;
    }
    line->random = random;
    return done;
}

static void *line_main(void *argument)
{
    line_t *line = argument;
    pthread_t successor;
    line->threads++;
    line->replacements += replace_blocks(line);
    if (atomic_load_explicit(&is_over, memory_order_relaxed))
        sem_post(&line_ended);
    else if (pthread_create(&successor, &detached, line_main, line) != 0)
        bench_fail("a successor could not be started");
    return NULL;
}

static void fill_lines(line_t *lines, uint64_t thread_count)
{
    uint64_t chunk_count = parameters[CHUNKS].value;
    for (uint64_t index = 0; index < thread_count; index++) {
        lines[index].blocks = bench_map(chunk_count, sizeof(unsigned char *));
        lines[index].random = bench_random_seed(parameters[SEED].value, index);
        for (uint64_t chunk = 0; chunk < chunk_count; chunk++)
            lines[index].blocks[chunk] = new_block(bench_random_next(&lines[index].random));
    }
}

int main(int argument_count, char **arguments)
{
    bench_open(&bench, argument_count, arguments);
    bench_check_order(&bench, MIN_SIZE, MAX_SIZE);
    bench_begin(&bench);
    uint64_t thread_count = parameters[THREADS].value;
    line_t *lines = bench_map(thread_count, sizeof(line_t));
    sem_init(&line_ended, 0, 0);
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    fill_lines(lines, thread_count);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t index = 0; index < thread_count; index++) {
        pthread_t first;
        if (pthread_create(&first, &detached, line_main, &lines[index]) != 0)
            bench_fail("a thread could not be started");
    }
    uint64_t seconds_ns = parameters[SECONDS].value;
    struct timespec pause = {(time_t)(seconds_ns / NS_PER_SECOND),
                             (long)(seconds_ns % NS_PER_SECOND)};
    nanosleep(&pause, NULL);
    atomic_store(&is_over, true);
    for (uint64_t index = 0; index < thread_count; index++) sem_wait(&line_ended);
    uint64_t elapsed_ns = bench_now_ns() - start_ns;
    figure_t figures[] = {{"threads_started", 0}};
    uint64_t replacements = 0;
    for (uint64_t index = 0; index < thread_count; index++) {
        replacements += lines[index].replacements;
        figures[0].value += lines[index].threads;
    }
    bench_close_figures(&bench, replacements, elapsed_ns, figures, 1);
    return 0;
}
