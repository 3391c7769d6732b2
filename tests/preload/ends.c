/* The ways in which a process can end whose first thread does not return from main. The arguments:
   how the first thread leaves (pthread_exit, SYS_exit, pause), how many threads work on, what the
   last of them calls (return, exit), and how many threads /proc shows before. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>

enum { BLOCK_COUNT = 2000, BLOCK_SIZE = 60000, WORKERS_MOST = 8, SECONDS_MOST = 60 };

static pthread_mutex_t in_turn = PTHREAD_MUTEX_INITIALIZER;
static int working;
static bool last_exits;

static void work(void)
{
    static char *blocks[BLOCK_COUNT];
    for (unsigned at = 0; at < BLOCK_COUNT; at++)
        memset(blocks[at] = malloc(BLOCK_SIZE), 1, BLOCK_SIZE);
    for (unsigned at = 0; at < BLOCK_COUNT; at++) free(blocks[at]);
}

static void *work_on(void *unused)
{
    (void)usleep(300000); /* the first thread is gone before, mostly */
    check_eq(pthread_mutex_lock(&in_turn), 0);
    work();
    bool is_last = --working == 0;
    check_eq(pthread_mutex_unlock(&in_turn), 0);
    if (is_last && last_exits) exit(5);
    return unused;
}

/* Exit handlers allocate, and find the signals as the program has set them. */
static void say_that_it_ends(void)
{
    sigset_t blocked;
    work();
    check_eq(pthread_sigmask(SIG_BLOCK, NULL, &blocked), 0);
    (void)printf("ends, SIGUSR1 %d, SIGUSR2 %d\n", sigismember(&blocked, SIGUSR1),
                 sigismember(&blocked, SIGUSR2));
}

static bool has_threads(nlink_t count)
{
    struct stat tasks;
    return stat("/proc/self/task", &tasks) == 0 && tasks.st_nlink == count + 2;
}

int main(int argc, char **argv)
{
    pthread_t threads[WORKERS_MOST];
    sigset_t blocked;
    check_eq(argc, 5);
    int count = working = atoi(argv[2]);
    last_exits = strcmp(argv[3], "exit") == 0;
    (void)alarm(SECONDS_MOST); /* the end of one that hangs */
    check(count <= WORKERS_MOST && atexit(say_that_it_ends) == 0);
    check_eq(sigemptyset(&blocked) | sigaddset(&blocked, SIGUSR1), 0);
    check_eq(pthread_sigmask(SIG_SETMASK, &blocked, NULL), 0);
    do work();
    while (!has_threads((nlink_t)atoi(argv[4])));
    for (int at = 0; at < count; at++)
        check_eq(pthread_create(&threads[at], NULL, work_on, NULL), 0);
    if (strcmp(argv[1], "SYS_exit") == 0) (void)syscall(SYS_exit, 3);
    if (strcmp(argv[1], "pthread_exit") == 0) pthread_exit(NULL);
    for (;;) (void)pause();
}
