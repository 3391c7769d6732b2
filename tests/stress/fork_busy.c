/* fork while other threads allocate: the child can allocate, free, start threads and fork again.
   A hang ends after 30 seconds by alarm, in the child and in the parent, and is a failure. */
#include "stress/payload.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

enum { FORK_COUNT = 150, BUSY_COUNT = 3, FORKERS = 4, HANG_SECONDS = 30 };

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
        const pid_t child = fork();
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
    join(busy, BUSY_COUNT);
    for (size_t i = 0; i < 64; i++) payload_free(kept[i]);
}

static void fork_from_one_thread(void)
{
    for (uint64_t i = 0; i < FORK_COUNT; i++) {
        const pid_t child = fork();
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

static payload_t *from_handler;

static void allocate_in_handler(void)
{
    payload_free(from_handler);
    from_handler = payload_new(700, 5);
    payload_free(payload_new(50000, 6));
}

test(handlers_of_the_program_may_allocate_around_fork)
{
    check_eq(pthread_atfork(allocate_in_handler, allocate_in_handler, allocate_in_handler), 0);
    with_busy_threads(fork_from_one_thread);
}

check_main()
