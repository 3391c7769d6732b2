/* A chain of forks: in each generation threads fill their caches and come to rest, then the process
 * forks, and the child does the same. The caches of the threads that a child does not have serve
 * its own threads, and go back like any others: they do not add up. */
#include "api/heap.h"
#include "check.h"
#include "preload/weak.h"
#include "stress/resident.h"

#include <pthread.h>
#include <sys/wait.h>

enum {
    GENERATIONS = 12,
    FIRST = 3, /* so many find out how much there is where nothing adds up */
    THREADS = 8,
    ROUNDS = 3,
    MOST = 20000, /* blocks of a thread */
    SMALL_STACK = 256 * 1024,
    CACHED_MOST = 32 << 20, /* THREAD_CACHES_MOST twice: a cache keeps what it got earlier */
    VARIES_KIB = 96 * 1024,  /* by chance: which threads run at a time */
    TRIMMED_KIB = 32 * 1024, /* 383 MiB before such caches could be taken apart */
};

static pthread_barrier_t at_rest;

/* Some 200 KiB of each of a hundred sizes. */
static void use_and_free_all_sizes(char **blocks)
{
    size_t count = 0;
    for (size_t size = 16; size <= 32000; size += size < 1024 ? 16 : size / 8)
        for (size_t i = 0; i < 200 && i < (256 << 10) / size && count < MOST; i++) {
            check((blocks[count] = hidden(malloc(size))) != NULL);
            memset(blocks[count++], 1, size);
        }
    while (count > 0) free(blocks[--count]);
}

static void *fill_a_cache(void *unused)
{
    char **blocks = hidden(malloc(MOST * sizeof *blocks));
    check(blocks != NULL);
    for (size_t round = 0; round < ROUNDS; round++) use_and_free_all_sizes(blocks);
    free(blocks);
    pthread_barrier_wait(&at_rest);
    for (;;) pause(); /* until the process ends */
    return unused;
}

static void start_threads(void)
{
    pthread_attr_t attributes;
    check_eq(pthread_attr_init(&attributes), 0);
    check_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    check_eq(pthread_barrier_init(&at_rest, NULL, THREADS + 1), 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_t thread;
        check_eq(pthread_create(&thread, &attributes, fill_a_cache, NULL), 0);
    }
    pthread_barrier_wait(&at_rest);
}

static void live(size_t generation)
{
    static size_t most_kib;
    hakmem_statistics_t now;
    start_threads();
    check(hakmem_get_statistics(&now));
    const size_t resident = resident_kib();
    (void)printf("generation %zu: %zu KiB in thread caches, ", generation,
                 now.cached_threads / 1024);
    if (generation < FIRST && resident > most_kib) most_kib = resident;
    resident_must_not_exceed("with all threads at rest", resident, most_kib + VARIES_KIB);
    check(now.cached_threads <= CACHED_MOST);
    if (generation + 1 < GENERATIONS) return;
    (void)malloc_trim(0);
    resident_must_not_exceed("after malloc_trim", resident_kib(), TRIMMED_KIB);
}

static void live_and_fork(size_t generation)
{
    live(generation);
    if (generation + 1 == GENERATIONS) return;
    (void)fflush(stdout);
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        live_and_fork(generation + 1);
        check_end(0);
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

test(caches_of_gone_threads_do_not_add_up)
{
    if (!heap_is_hakmem()) check_skip("only hakmem has caches of this kind");
    const pid_t child = fork(); /* which has no threads at rest behind it */
    check(child >= 0);
    if (child == 0) {
        live_and_fork(0);
        check_end(0);
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

check_main()
