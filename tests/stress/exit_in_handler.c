/* exit may be called at any moment of a program that did nothing wrong: in a signal handler, and
   while other threads fork. What is looked at then is not found half done, and the process ends. */
#include "api/heap.h"
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>

enum { CHILDREN = 150, BLOCKS = 700 };

static void leave(int signal_number)
{
    (void)signal_number;
    exit(0);
}

/* Fills and empties bins, spares and depots until the handler ends it. */
static void churn(void)
{
    static void *blocks[BLOCKS];
    for (;;) {
        for (size_t i = 0; i < BLOCKS; i++) blocks[i] = hidden(malloc(48));
        for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
        (void)malloc_trim(0);
    }
}

test(exit_from_a_handler_finds_no_wrong_free)
{
    (void)fflush(stdout);
    for (unsigned child = 0; child < CHILDREN; child++) {
        pid_t id = fork();
        check(id >= 0);
        if (id == 0) {
            const struct itimerval once = {.it_value.tv_usec = 1000 + child * 37};
            check(signal(SIGALRM, leave) != SIG_ERR && setitimer(ITIMER_REAL, &once, NULL) == 0);
            churn();
        }
        int status = 0;
        check(waitpid(id, &status, 0) == id);
        check(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
}

/* ---- beside threads that fork ---- */

enum { EXITS = 20, FORKERS = 4, HANG_SECONDS = 10 };

static void *allocate(void *unused)
{
    for (size_t size = 16;; size = size % 200000 + 333) free(hidden(malloc(size)));
    return unused;
}

static void *fork_on(void *unused)
{
    for (;;) {
        const pid_t child = fork();
        if (child == 0) _exit(0);
        (void)waitpid(child, NULL, 0);
    }
    return unused;
}

static void exit_beside_forks(void)
{
    pthread_t thread;
    (void)alarm(HANG_SECONDS);
    for (unsigned i = 0; i < 2; i++) check_eq(pthread_create(&thread, NULL, allocate, NULL), 0);
    for (unsigned i = 0; i < FORKERS; i++)
        check_eq(pthread_create(&thread, NULL, fork_on, NULL), 0);
    (void)usleep(20000);
    exit(0);
}

test(exit_while_another_thread_forks_comes_to_an_end)
{
#ifndef __GLIBC__
    check_skip("musl hangs then with its own malloc, too: exit and fork wait for each other");
#endif
    (void)fflush(stdout);
    for (unsigned turn = 0; turn < EXITS; turn++) {
        const pid_t child = fork();
        if (child == 0) exit_beside_forks();
        int status = 0;
        check_eq(waitpid(child, &status, 0), child);
        check_eq(status, 0);
    }
}

check_main()
