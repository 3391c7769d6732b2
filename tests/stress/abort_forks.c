/* A handler of SIGABRT may fork, as those that report crashes do: a wrong free that is found while
   a thread trims its cache is told without a lock that fork waits for. */
#include "api/heap.h"
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

enum { BLOCKS = 400, FORKED = 3, SECONDS = 10 };

static void fork_and_leave(int signal_number)
{
    (void)signal_number;
    (void)alarm(SECONDS); /* only turns a hang into a failure */
    const pid_t child = fork();
    if (child == 0) _exit(0);
    _exit(waitpid(child, NULL, 0) == child ? FORKED : 1);
}

static void *park(void *unused)
{
    (void)pause();
    return unused;
}

/* Misses of other sizes, as long as it takes: the bin of the freed blocks is trimmed meanwhile. */
static void go_on(void)
{
    static void *others[4000];
    const time_t end = time(NULL) + SECONDS;
    while (time(NULL) < end) {
        for (size_t i = 0; i < 4000; i++) others[i] = hidden(malloc(100));
        for (size_t i = 0; i < 4000; i++) free(others[i]);
        (void)usleep(1000);
    }
}

static void free_twice(void)
{
    static void *blocks[BLOCKS];
    pthread_t thread;
    check(signal(SIGABRT, fork_and_leave) != SIG_ERR);
    check_eq(pthread_create(&thread, NULL, park, NULL), 0);
    for (size_t i = 0; i < BLOCKS; i++) blocks[i] = hidden(malloc(700));
    for (size_t i = 0; i < BLOCKS; i++) free(blocks[i]);
    for (size_t i = 0; i < 40; i++) blocks[i] = hidden(malloc(700));
    for (size_t i = 0; i < 40; i++) free(blocks[i]);
    free(hidden(blocks[0]));
    go_on();
}

test(a_wrong_free_found_at_a_trim_is_told_without_a_lock)
{
    (void)fflush(stdout);
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        free_twice();
        _exit(0);
    }
    int status = 0;
    check(waitpid(child, &status, 0) == child);
    check(WIFEXITED(status) && WEXITSTATUS(status) == FORKED);
}

check_main()
