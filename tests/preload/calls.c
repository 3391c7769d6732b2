/* What brings the library to its system calls: calls PART. test_system_calls.py runs each part
   under strace, and compares the calls with those of the part in tests/system_calls.csv. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>

enum { MEBIBYTE = 1 << 20, THREADS = 24, PAIRS = 3000, BLOCKS = 2000 };

static void *volatile block;

/* Calls that miss, and find out what is to be done. */
static void come_and_go(void)
{
    for (size_t at = 0; at < PAIRS; at++) {
        block = malloc(at * 20);
        free(block);
    }
}

static void use(size_t count, size_t size)
{
    void *blocks[BLOCKS];
    for (size_t at = 0; at < count; at++) memset(blocks[at] = malloc(size), 1, size);
    for (size_t at = 0; at < count; at++) free(blocks[at]);
}

static void rest(unsigned turns)
{
    while (turns-- > 0) {
        (void)usleep(150000);
        come_and_go();
    }
}

/* Several sizes; zeroed memory that is hardly written; a block that grows and moves; a rest. */
static void use_all_parts(void)
{
    use(2000, 60000);
    for (unsigned turn = 0; turn < 10; turn++) {
        block = calloc(1, 20 * MEBIBYTE);
        ((volatile char *)block)[5] = 1;
        free(block);
    }
    for (size_t size = MEBIBYTE; size <= 128 * MEBIBYTE; size *= 2)
        *(char *)(block = realloc(block == NULL || size == MEBIBYTE ? NULL : block, size)) = 1;
    free(block);
    use(4, 40 * MEBIBYTE);
    rest(8);
}

static pthread_barrier_t all;

/* Small blocks of many sizes, so that the thread's cache holds some MiB. */
static void *fill_a_cache(void *unused)
{
    for (size_t size = 16; size < 32000; size += size / 4) use(200, size);
    (void)pthread_barrier_wait(&all);
    (void)pthread_barrier_wait(&all);
    return unused;
}

static void fork_one(void)
{
    int status;
    pid_t child = fork();
    if (child == 0) {
        rest(8);
        exit(0);
    }
    check(waitpid(child, &status, 0) == child && status == 0);
}

static void use_threads(void)
{
    pthread_t threads[THREADS];
    check_eq(pthread_barrier_init(&all, NULL, THREADS + 1), 0);
    for (unsigned at = 0; at < THREADS; at++)
        check_eq(pthread_create(&threads[at], NULL, fill_a_cache, NULL), 0);
    (void)pthread_barrier_wait(&all);
    rest(20); /* long enough for trims of all kinds */
    fork_one();
    (void)pthread_barrier_wait(&all);
    for (unsigned at = 0; at < THREADS; at++) check_eq(pthread_join(threads[at], NULL), 0);
}

test(start) { come_and_go(); }
test(heap) { use_all_parts(); }
test(threads) { use_threads(); }
test(files) { use_threads(); }
test(background) { use_all_parts(); }

test(messages)
{
    static char no_block[64];
    block = no_block + 32;
    free(block);
}

check_main()
