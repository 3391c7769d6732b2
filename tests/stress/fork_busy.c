/* fork while other threads allocate: the child can allocate, free, start threads and fork again.
   A child that takes 30 seconds, or a parent that forks nothing for as long, has hung: SIGALRM. */
#include "stress/payload.h"
#include "stress/soak.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { FORK_COUNT = 150, BUSY_COUNT = 3, FORKERS = 4, HANG_SECONDS = 30, LONG_LINE = 100000 };

static atomic_bool stop;
static payload_t *kept[64];

static void churn(uint64_t seed, size_t count)
{
    uint64_t random = seed;
    payload_t *blocks[32] = {NULL};
    for (size_t i = 0; i < count; i++) {
        payload_t **slot = &blocks[random_step(&random) % 32];
        payload_free(*slot);
        *slot = payload_new(random_size(&random, i % 256 == 0 ? 22 : 13), random_step(&random));
    }
    for (size_t i = 0; i < 32; i++) payload_free(blocks[i]);
}

static void *be_busy(void *argument)
{
    for (uintptr_t i = 0; !atomic_load_explicit(&stop, memory_order_relaxed); i++) {
        churn((uintptr_t)argument + i, 500);
    }
    return NULL;
}

static void *churn_once(void *argument)
{
    churn((uintptr_t)argument, 300);
    return NULL;
}

static void wait_for_success(pid_t child)
{
    int status = 0;
    check(child > 0);
    check_eq(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) check_eq(WTERMSIG(status), 0);
    check_eq(WEXITSTATUS(status), 0);
}

static pid_t fork_watched(void)
{
    (void)alarm(HANG_SECONDS); /* Starts anew with each fork of the parent; a child has none yet. */
    return fork();
}

static void live_as_a_child(uint64_t seed, bool forks_again)
{
    (void)alarm(HANG_SECONDS);
    for (size_t i = 0; i < 64; i++) payload_free(kept[i]); /* The parent's blocks are ours now. */
    churn(seed, 300);
    pthread_t thread;
    check_eq(pthread_create(&thread, NULL, churn_once, (void *)(uintptr_t)seed), 0);
    churn(seed + 1, 300);
    check_eq(pthread_join(thread, NULL), 0);
    (void)malloc_trim(0);
    if (forks_again) {
        const pid_t grandchild = fork();
        if (grandchild == 0) {
            churn(seed + 2, 300);
            _exit(0);
        }
        wait_for_success(grandchild);
    }
    _exit(0);
}

static void *fork_many(void *argument)
{
    for (uintptr_t i = 0; i < FORK_COUNT / FORKERS; i++) {
        const pid_t child = fork_watched();
        if (child == 0) live_as_a_child((uintptr_t)argument * 1000 + i, i % 8 == 0);
        wait_for_success(child);
        churn(i, 50);
    }
    return NULL;
}

static void start(pthread_t *threads, size_t count, void *(*body)(void *))
{
    for (uintptr_t i = 0; i < count; i++) {
        check_eq(pthread_create(&threads[i], NULL, body, (void *)i), 0);
    }
}

static void join(const pthread_t *threads, size_t count)
{
    for (size_t i = 0; i < count; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

static void with_busy_threads(void (*body)(void))
{
    pthread_t busy[BUSY_COUNT];
    for (size_t i = 0; i < 64; i++) kept[i] = payload_new(16 << (i % 12), i);
    atomic_store_explicit(&stop, false, memory_order_relaxed);
    start(busy, BUSY_COUNT, be_busy);
    body();
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    (void)alarm(0);
    join(busy, BUSY_COUNT);
    for (size_t i = 0; i < 64; i++) payload_free(kept[i]);
}

static void fork_from_one_thread(void)
{
    for (uint64_t i = 0; i < FORK_COUNT; i++) {
        const pid_t child = fork_watched();
        if (child == 0) live_as_a_child(i, i % 10 == 0);
        wait_for_success(child);
    }
}

static void fork_from_several_threads(void)
{
    pthread_t forkers[FORKERS];
    start(forkers, FORKERS, fork_many);
    join(forkers, FORKERS);
}

test(the_child_of_a_busy_process_can_allocate)
{
    with_busy_threads(fork_from_one_thread);
}

test(several_threads_fork_at_once)
{
    with_busy_threads(fork_from_several_threads);
}

static payload_t *_Atomic from_handler;

/* Later tests run it as well: several threads that fork may be in here at once. */
static void allocate_in_handler(void)
{
    payload_free(atomic_exchange(&from_handler, payload_new(700, 5)));
    payload_free(payload_new(50000, 6));
}

test(handlers_of_the_program_may_allocate_around_fork)
{
    check_eq(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler), 0);
    with_busy_threads(fork_from_one_thread);
}

/* ---- Beside stdio, which allocates while it holds its locks, and holds them while fork waits.
   Each of these threads rests between its turns: the locks are not fair, and fork would starve. */

static bool goes_on(void)
{
    (void)usleep(200);
    return !atomic_load_explicit(&stop, memory_order_relaxed);
}

/* getline enlarges its buffer while it holds the lock of the stream. A stream in memory: a child
   that flushes everything would move the position in a file, which it shares with us. */
static void *read_long_lines(void *unused)
{
    char *text = (char *)malloc(LONG_LINE + 1);
    check(text != NULL);
    for (size_t i = 0; i < LONG_LINE; i++) text[i] = (char)('a' + i % 26);
    text[LONG_LINE] = '\n';
    FILE *file = fmemopen(text, LONG_LINE + 1, "r");
    check(file != NULL);
    while (goes_on()) {
        char *line = NULL;
        size_t capacity = 0;
        rewind(file);
        check_eq(getline(&line, &capacity, file), LONG_LINE + 1);
        check_eq(line[LONG_LINE - 1], 'a' + (LONG_LINE - 1) % 26);
        free(line);
    }
    check_eq(fclose(file), 0);
    free(text);
    return unused;
}

/* Streams come and go, each with a buffer: the list of streams changes. */
static void write_a_little(size_t count)
{
    FILE *file = fopen("/dev/null", "w");
    check(file != NULL);
    for (size_t i = 0; i < count; i++) {
        check(fprintf(file, "%zu %*s %.60Lf\n", i, 200, "wide", (long double)i / 3) > 200);
    }
    check_eq(fclose(file), 0);
}

static void *write_for_long(void *unused)
{
    while (goes_on()) write_a_little(100);
    return unused;
}

static void *flush_everything(void *unused)
{
    while (goes_on()) check_eq(fflush(NULL), 0);
    return unused;
}

static void live_as_a_child_with_stdio(uint64_t seed)
{
    (void)alarm(HANG_SECONDS);
    churn(seed, 40);
    if (seed % 4 == 0) {
        pthread_t thread;
        check_eq(pthread_create(&thread, NULL, churn_once, (void *)(uintptr_t)seed), 0);
        write_a_little(5);
        check_eq(pthread_join(thread, NULL), 0);
    }
    if (seed % 4 == 1) write_a_little(5);
    if (seed % 64 == 2) (void)malloc_trim(0);
    /* It may fail: another thread was in the middle of a stream. But it must come back. */
    if (seed % 64 == 3) (void)fflush(NULL);
    _exit(0);
}

static void *fork_beside_stdio(void *argument)
{
    const size_t count = soak_count(1250, 100000) / 2;
    for (uint64_t i = 0; i < count; i++) {
        const pid_t child = fork_watched();
        if (child == 0) live_as_a_child_with_stdio(2 * i + (uintptr_t)argument);
        wait_for_success(child);
    }
    return NULL;
}

/* The child of a busy process may use stdio with glibc, which sets its locks free. With musl it may
 * not: with the malloc of musl too this test crashes or waits forever. */
#ifdef __GLIBC__
static const bool fork_serves_stdio = true;
#else
static const bool fork_serves_stdio = false;
#endif

test(a_great_many_forks_beside_eight_threads_with_stdio)
{
    if (!fork_serves_stdio) return;
    static void *(*const bodies[])(void *) = {
        be_busy,         be_busy,        be_busy,        read_long_lines,
        read_long_lines, write_for_long, write_for_long, flush_everything,
    };
    enum { COUNT = sizeof bodies / sizeof bodies[0] };
    pthread_t busy[COUNT];
    pthread_t forkers[2];
    atomic_store_explicit(&stop, false, memory_order_relaxed);
    for (uintptr_t i = 0; i < COUNT; i++) start(&busy[i], 1, bodies[i]);
    start(forkers, 2, fork_beside_stdio);
    join(forkers, 2);
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    (void)alarm(0);
    join(busy, COUNT);
}

check_main()
