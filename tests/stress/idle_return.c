/* What a program has freed goes back without a further call of it, and the thread that sees to that
 * is in nobody's way: not of fork, not of signals, not of exec. */
#include "api/heap.h"
#include "check.h"
#include "faults/injector.h"
#include "stress/resident.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { COUNT = 300, SIZE = 1 << 20, WAIT_S = 20 };
static char *blocks[COUNT];

static void use_and_free(void)
{
    for (size_t i = 0; i < COUNT; i++) {
        check((blocks[i] = hidden(malloc(SIZE))) != NULL);
        memset(blocks[i], 1, SIZE);
    }
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
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

/* Sleeps until no more than `limit_kib` are resident; makes no call of the allocator. */
static bool shrinks_to(size_t limit_kib)
{
    for (unsigned tenth = 0; tenth < 10 * WAIT_S && resident_kib() > limit_kib; tenth++)
        (void)usleep(100000);
    return resident_kib() <= limit_kib;
}

static void skip_elsewhere(void)
{
    if (!heap_is_hakmem()) check_skip("only hakmem promises this");
    if (!resident_is_ours) check_skip("a sanitizer has to know of every thread");
}

test(memory_goes_back_while_the_program_sleeps)
{
    skip_elsewhere();
    const size_t before_kib = resident_kib();
    use_and_free();
    check(shrinks_to(before_kib + COUNT * SIZE / 1024 / 10));
}

/* As much of each of some hundred sizes from 32 bytes to 256 KiB, freed in random order within some
 * milliseconds: half of it is in depots then, and blocks in the thread's own cache stand on pages
 * all over the heap. */
test(memory_of_all_sizes_goes_back)
{
    enum { LEAST = 32, MOST = 1 << 18, EACH = 5 << 18, ROOM = 16 * EACH / LEAST };
    static char *all[ROOM];
    size_t count = 0, bytes = 0;
    skip_elsewhere();
    memset(all, 1, sizeof all); /* resident from here on */
    const size_t before_kib = resident_kib();
    for (size_t size = LEAST; size <= MOST; size += size / 9)
        for (size_t i = 0; i <= EACH / size; i++) {
            check(count < ROOM);
            all[count] = hidden(malloc(size));
            check(all[count] != NULL);
            memset(all[count++], 1, size);
            bytes += size;
        }
    uint64_t seed = 42;
    for (size_t left = count; left > 1; left--) { /* Fisher and Yates */
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        size_t index = (seed >> 33) % left;
        char *block = all[index];
        all[index] = all[left - 1];
        all[left - 1] = block;
    }
    for (size_t i = 0; i < count; i++) free(all[i]);
    check(shrinks_to(before_kib + bytes / 1024 / 10));
}

enum { PARKED = 50, PARKED_BLOCKS = 4000, PARKED_MOST_KIB = 200 };
static pthread_barrier_t parking, going_on;

static void *use_park_and_use(void *nothing)
{
    static _Thread_local char *own[PARKED_BLOCKS];
    for (unsigned round = 0; round < 2; round++) {
        for (size_t i = 0; i < PARKED_BLOCKS; i++) {
            const size_t size = (size_t)16 << i % 10;
            check((own[i] = hidden(malloc(size))) != NULL);
            memset(own[i], (int)i, size);
        }
        for (size_t i = 0; i < PARKED_BLOCKS; i++) {
            check_eq(own[i][0], (char)i);
            free(own[i]);
        }
        if (round != 0) break;
        pthread_barrier_wait(&parking);
        pthread_barrier_wait(&going_on);
    }
    return nothing;
}

/* Other threads wait and make no call, in a program with much thread-local memory, which the helper
 * has to reach over. What they hold in their caches goes, too, and they find everything in order
 * when they go on. */
test(what_parked_threads_hold_goes_back)
{
    skip_elsewhere();
    const size_t before_kib = resident_kib();
    pthread_t threads[PARKED];
    check_eq(pthread_barrier_init(&parking, NULL, PARKED + 1), 0);
    check_eq(pthread_barrier_init(&going_on, NULL, PARKED + 1), 0);
    for (size_t i = 0; i < PARKED; i++)
        check_eq(pthread_create(&threads[i], NULL, use_park_and_use, NULL), 0);
    pthread_barrier_wait(&parking);
    const bool has_shrunk = shrinks_to(before_kib + PARKED * PARKED_MOST_KIB);
    const size_t kib = resident_kib() - before_kib;
    pthread_barrier_wait(&going_on);
    for (size_t i = 0; i < PARKED; i++) check_eq(pthread_join(threads[i], NULL), 0);
    if (!has_shrunk) printf("%zu KiB for each parked thread\n", kib / PARKED);
    check(has_shrunk);
}

enum { USERS = 150, USER_BLOCKS = 24, LITTLE_KIB = 20 * 1024, USER_STACK = 64 * 1024 };

/* What a thread of a pool may have in its cache, and nothing else. */
static void fill_cache(void)
{
    static _Thread_local char *own[USER_BLOCKS];
    for (size_t size = 64; size <= 8192; size += size / 4)
        for (unsigned round = 0; round < 2; round++) {
            for (size_t i = 0; i < USER_BLOCKS; i++) {
                check((own[i] = hidden(malloc(size))) != NULL);
                memset(own[i], 1, size);
            }
            for (size_t i = 0; i < USER_BLOCKS; i++) free(own[i]);
        }
}

static bool is_filled_again;

static void *use_and_park(void *nothing)
{
    fill_cache();
    pthread_barrier_wait(&parking);
    pthread_barrier_wait(&going_on);
    if (is_filled_again) fill_cache();
    return nothing;
}

/* Until there are no more threads than so many, the helper among them: it has ended. */
static void await_helper(size_t count)
{
    for (unsigned tenth = 0; tenth < 10 * WAIT_S * 2 && thread_count() > count; tenth++)
        (void)usleep(100000);
    check(thread_count() <= count);
}

/* The C library keeps small stacks for the next threads, so that nothing is freed when these are
 * joined. */
static void start_users(pthread_t *threads)
{
    pthread_attr_t attributes;
    await_helper(1);
    check_eq(pthread_attr_init(&attributes), 0);
    check_eq(pthread_attr_setstacksize(&attributes, USER_STACK), 0);
    check_eq(pthread_barrier_init(&parking, NULL, USERS + 1), 0);
    check_eq(pthread_barrier_init(&going_on, NULL, USERS + 1), 0);
    for (size_t i = 0; i < USERS; i++)
        check_eq(pthread_create(&threads[i], &attributes, use_and_park, NULL), 0);
    pthread_barrier_wait(&parking);
}

static void end_users(const pthread_t *threads)
{
    pthread_barrier_wait(&going_on);
    for (size_t i = 0; i < USERS; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

/* Each cache holds little, all together much; nothing else is free. (The helper may be at work
 * before the last of them is parked.) */
test(what_many_parked_threads_hold_goes_back)
{
    static pthread_t threads[USERS];
    skip_elsewhere();
    (void)malloc_trim(0);
    const size_t before_kib = resident_kib();
    start_users(threads);
    const size_t kib = resident_kib() - before_kib;
    const bool has_shrunk = shrinks_to(before_kib + USERS * PARKED_MOST_KIB);
    end_users(threads);
    if (!has_shrunk) printf("%zu KiB at first\n", kib);
    check(has_shrunk);
}

/* They end all at once, and nobody calls the allocator any more: neither before a helper has come,
 * nor when one has emptied their caches and gone. */
test(what_ended_threads_held_goes_back)
{
    static pthread_t threads[USERS];
    skip_elsewhere();
    for (unsigned round = 0; round < 3; round++) {
        is_filled_again = round == 2;
        (void)malloc_trim(0);
        await_helper(1);
        const size_t before_kib = resident_kib();
        start_users(threads);
        if (round != 0) await_helper(USERS + 1);
        end_users(threads);
        check(shrinks_to(before_kib + LITTLE_KIB));
    }
}

test(the_thread_ends_when_its_work_is_done)
{
    skip_elsewhere();
    use_and_free();
    check_eq(thread_count(), 2);
    for (unsigned tenth = 0; tenth < 10 * WAIT_S && thread_count() > 1; tenth++)
        (void)usleep(100000);
    check_eq(thread_count(), 1);
}

/* The child has no such thread, and gets one when it needs it. */
test(a_child_of_fork_gives_its_memory_back_too)
{
    skip_elsewhere();
    use_and_free();
    for (unsigned round = 0; round < 20; round++) {
        const pid_t child = fork();
        check(child >= 0);
        if (child == 0) {
            if (thread_count() != 1) _exit(1);
            free(hidden(malloc(100)));
            if (round % 5 != 0) _exit(0);
            const size_t before_kib = resident_kib();
            use_and_free();
            _exit(shrinks_to(before_kib + COUNT * SIZE / 1024 / 10) ? 0 : 2);
        }
        int status;
        check_eq(waitpid(child, &status, 0), child);
        check_eq(status, 0);
        use_and_free();
    }
}

static volatile sig_atomic_t handled_by_main = 1;
static pthread_t main_thread;

static void note_thread(int signal)
{
    (void)signal;
    if (!pthread_equal(pthread_self(), main_thread)) handled_by_main = 0;
}

test(signals_of_the_process_are_the_programs)
{
    skip_elsewhere();
    main_thread = pthread_self();
    check(signal(SIGUSR1, note_thread) != SIG_ERR);
    use_and_free();
    for (unsigned round = 0; round < 1000; round++) check_eq(kill(getpid(), SIGUSR1), 0);
    check(handled_by_main);
}

/* A sandbox may answer system calls in a handler of SIGSYS, which ends a thread that blocks it. */
test(a_sandbox_sees_the_calls_of_the_thread)
{
    skip_elsewhere();
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        injector_install();
        (void)malloc_trim(0); /* what the parent had freed would serve, and stay */
        injector_arm(true);
        const size_t before_kib = resident_kib();
        use_and_free();
        if (!shrinks_to(before_kib + COUNT * SIZE / 1024 / 10)) _exit(1);
        _exit(injection->calls[FAULT_MADVISE] > 0 ? 0 : 2);
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    if (status >> 8 == CHECK_SKIPPED) check_skip("no seccomp here");
    check_eq(status, 0);
}

/* vfork lends the child this memory: no thread may begin there. */
test(a_child_of_vfork_starts_none)
{
    skip_elsewhere();
    for (unsigned tenth = 0; tenth < 10 * WAIT_S && thread_count() > 1; tenth++)
        (void)usleep(100000);
    const pid_t child = vfork();
    if (child == 0) {
        use_and_free();
        _exit(thread_count() == 1 ? 0 : 1);
    }
    int status;
    check_eq(waitpid(child, &status, 0), child);
    check_eq(status, 0);
}

check_main()
