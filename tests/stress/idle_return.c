/* What a program has freed goes back in the calls that free it: no thread of ours is needed for
 * that, and none exists. */
#include "api/heap.h"
#include "check.h"
#include "faults/injector.h"
#include "stress/resident.h"

#include <pthread.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SPREE = 400 << 20, LEAST = 1000, ROOM = SPREE / LEAST + 1, SMALL_STACK = 64 * 1024 };
static char *blocks[ROOM];

typedef enum order { IN_ORDER, IN_REVERSE, SHUFFLED, ORDERS } order_t;

/* Fisher and Yates. */
static void shuffle(size_t count)
{
    uint64_t seed = 42;
    for (size_t left = count; left > 1; left--) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        const size_t index = (seed >> 33) % left;
        char *block = blocks[index];
        blocks[index] = blocks[left - 1];
        blocks[left - 1] = block;
    }
}

static void use(size_t size, size_t count)
{
    check(count <= ROOM);
    for (size_t i = 0; i < count; i++) {
        check((blocks[i] = hidden(malloc(size))) != NULL);
        memset(blocks[i], 1, size);
    }
}

static void free_in(order_t order, size_t count)
{
    if (order == SHUFFLED) shuffle(count);
    for (size_t i = 0; i < count; i++) free(blocks[order == IN_REVERSE ? count - 1 - i : i]);
}

static void skip_elsewhere(void)
{
    if (!heap_is_hakmem()) check_skip("only hakmem promises this");
    if (!resident_is_ours) check_skip("a sanitizer's own memory counts");
}

/* Without a call of the allocator. */
static size_t thread_count(void)
{
    char text[4096];
    check(resident_read("/proc/self/status", text, sizeof text) > 0);
    const char *line = strstr(text, "\nThreads:");
    check(line != NULL);
    return strtoul(line + 9, NULL, 10);
}

/* In a child, which has known no rounds before. Returns the hundredths of the spree that stay. */
static unsigned kept_of_spree(size_t size, order_t order)
{
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        memset(blocks, 1, sizeof blocks); /* resident from here on */
        const size_t before_kib = resident_kib();
        use(size, SPREE / size);
        free_in(order, SPREE / size);
        const size_t after_kib = resident_kib();
        const size_t more_kib = after_kib > before_kib ? after_kib - before_kib : 0;
        _exit((int)(more_kib * 100 / (SPREE / 1024)));
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check(WIFEXITED(status));
    (void)printf("blocks of %zu bytes, order %d: %d %% stay\n", size, order, WEXITSTATUS(status));
    return (unsigned)WEXITSTATUS(status);
}

static void check_sprees(void)
{
    static const size_t sizes[] = {1000, 10000, 100000, 1000000, 5000000};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (order_t order = IN_ORDER; order < ORDERS; order++)
            check(kept_of_spree(sizes[i], order) <= 10);
}

test(a_tenth_of_a_spree_stays_at_most)
{
    skip_elsewhere();
    check_sprees();
    check_eq(thread_count(), 1);
}

/* As much of each of some hundred sizes from 256 bytes to 256 KiB: each block that a cache keeps
 * may keep a page. */
test(a_tenth_of_a_spree_of_all_sizes_stays_at_most)
{
    enum { SMALLEST = 256, LARGEST = 1 << 18, EACH = SPREE / 100 };
    skip_elsewhere();
    const pid_t child = fork(); /* which has known no rounds before */
    check(child >= 0);
    if (child == 0) {
        memset(blocks, 1, sizeof blocks);
        const size_t before_kib = resident_kib();
        size_t count = 0, bytes = 0;
        for (size_t size = SMALLEST; size <= LARGEST; size += size / 9)
            for (size_t i = 0; i <= EACH / size && count < ROOM; i++) {
                check((blocks[count] = hidden(malloc(size))) != NULL);
                memset(blocks[count++], 1, size);
                bytes += size;
            }
        free_in(SHUFFLED, count);
        const size_t more_kib = resident_kib() - before_kib;
        (void)printf("%zu KiB of %zu stay\n", more_kib, bytes / 1024);
        (void)fflush(stdout);
        _exit(more_kib <= bytes / 1024 / 10 ? 0 : 1);
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

/* ---- beside parked threads ---- */

enum { PARKED_BLOCKS = 4000, PARKED_MOST = 200, LOOKS = 1000 };
static pthread_barrier_t parking, going_on;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* Rounds in which no two threads work at a time; else what stays is the more, the more of them the
 * kernel lets work. */
typedef enum in_turn { NONE, THE_FIRST, BOTH } in_turn_t;
static in_turn_t rounds_in_turn;

static void *use_park_and_use(void *nothing)
{
    static _Thread_local char *own[PARKED_BLOCKS];
    for (unsigned round = 0; round < 2; round++) {
        if (round < rounds_in_turn) pthread_mutex_lock(&turn);
        for (size_t i = 0; i < PARKED_BLOCKS; i++) {
            const size_t size = (size_t)16 << i % 10;
            check((own[i] = hidden(malloc(size))) != NULL);
            memset(own[i], (int)i, size);
        }
        for (size_t i = 0; i < PARKED_BLOCKS; i++) {
            check_eq(own[i][0], (char)i);
            free(own[i]);
        }
        if (round < rounds_in_turn) pthread_mutex_unlock(&turn);
        if (round != 0) break;
        pthread_barrier_wait(&parking);
        pthread_barrier_wait(&going_on);
    }
    return nothing;
}

/* The C library keeps small stacks for the next threads, so that nothing is freed when these are
 * joined. */
static void start_parked(pthread_t *threads, unsigned count, in_turn_t in_turn)
{
    rounds_in_turn = in_turn;
    pthread_attr_t attributes;
    check_eq(pthread_attr_init(&attributes), 0);
    check_eq(pthread_attr_setstacksize(&attributes, SMALL_STACK), 0);
    check_eq(pthread_barrier_init(&parking, NULL, count + 1), 0);
    check_eq(pthread_barrier_init(&going_on, NULL, count + 1), 0);
    for (size_t i = 0; i < count; i++)
        check_eq(pthread_create(&threads[i], &attributes, use_park_and_use, NULL), 0);
    pthread_barrier_wait(&parking);
}

static void end_parked(const pthread_t *threads, unsigned count)
{
    pthread_barrier_wait(&going_on);
    for (size_t i = 0; i < count; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

/* Not in a child, which would have no other threads. */
test(a_tenth_of_a_spree_stays_beside_parked_threads)
{
    enum { PARKED = 4, SIZE = 10000 };
    static pthread_t threads[PARKED];
    skip_elsewhere();
    memset(blocks, 1, sizeof blocks);
    const size_t before_kib = resident_kib();
    start_parked(threads, PARKED, NONE);
    use(SIZE, SPREE / SIZE);
    free_in(SHUFFLED, SPREE / SIZE);
    const size_t after_kib = resident_kib();
    end_parked(threads, PARKED);
    (void)printf("%zu KiB stay\n", after_kib - before_kib);
    check(after_kib - before_kib <= SPREE / 1024 / 10);
}

/* Makes a call now and then, until no more than so much is resident. Returns what is. */
static size_t work_until(size_t limit_kib)
{
    size_t kib = resident_kib();
    for (unsigned look = 0; look < LOOKS && kib > limit_kib; look++) {
        (void)usleep(20000);
        free(hidden(malloc(100000)));
        kib = resident_kib();
    }
    return kib;
}

/* Threads that have used all sizes in turn, and wait: each keeps its cache, which it got when fewer
 * shared what all may hold. What may stay when a program makes no further call is among what they
 * hold here, and stands for most of it where they are few. They find everything in order when they
 * go on. */
static void check_parked(unsigned count, size_t most_kib, size_t first_most_kib)
{
    static pthread_t threads[PARKED_MOST];
    (void)malloc_trim(0);
    const size_t before_kib = resident_kib();
    start_parked(threads, count, THE_FIRST);
    const size_t first_kib = (resident_kib() - before_kib) / count;
    const size_t kib = (work_until(before_kib + count * most_kib) - before_kib) / count;
    end_parked(threads, count);
    (void)printf("%zu KiB for each of %u parked threads, %zu at first\n", kib, count, first_kib);
    (void)fflush(stdout);
    check(kib <= most_kib);
    check(first_kib <= first_most_kib);
}

test(many_parked_threads_keep_little)
{
    enum { LITTLE_KIB = 250, FIRST_KIB = 1000 };
    skip_elsewhere();
    check_parked(PARKED_MOST, LITTLE_KIB, FIRST_KIB);
}

/* They go on in turn, and end. What their rounds have left stays until somebody makes a call: a
 * tenth at most of the 980 MB that all of them have had. */
test(what_ended_threads_held_goes_back)
{
    enum { LITTLE_KIB = 24 * 1024, FIRST_KIB = 96 * 1024, COUNT = 150 };
    static pthread_t threads[COUNT];
    skip_elsewhere();
    for (unsigned round = 0; round < 3; round++) {
        (void)malloc_trim(0);
        const size_t before_kib = resident_kib();
        start_parked(threads, COUNT, BOTH);
        end_parked(threads, COUNT);
        const size_t first_kib = resident_kib() - before_kib;
        const size_t kib = work_until(before_kib + LITTLE_KIB) - before_kib;
        (void)printf("%zu KiB stay, %zu at first\n", kib, first_kib);
        (void)fflush(stdout);
        check(kib <= LITTLE_KIB && first_kib <= FIRST_KIB);
    }
}

/* ---- other processes, other ways into the kernel ---- */

/* A sandbox may answer system calls in a handler of SIGSYS. */
test(a_sandbox_sees_the_calls)
{
    enum { COUNT = 300, SIZE = 1 << 20 };
    skip_elsewhere();
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        injector_install();
        injector_arm(true);
        const size_t before_kib = resident_kib();
        use(SIZE, COUNT);
        free_in(IN_ORDER, COUNT);
        if (resident_kib() > before_kib + COUNT * SIZE / 1024 / 10) _exit(1);
        _exit(injection->calls[FAULT_MADVISE] > 0 ? 0 : 2);
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    if (status >> 8 == CHECK_SKIPPED) check_skip("no seccomp here");
    check_eq(status, 0);
}

/* vfork lends the child this memory. */
test(a_child_of_vfork_gives_back_too)
{
    enum { COUNT = 300, SIZE = 1 << 20 };
    skip_elsewhere();
    const pid_t child = vfork();
    if (child == 0) {
        use(SIZE, COUNT);
        free_in(IN_ORDER, COUNT);
        _exit(thread_count() == 1 ? 0 : 1);
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

check_main()
