/* Forks beside a thread that allocates; the children allocate too. Linked to fork_handlers.c. */
#include "check.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int stop;

static void *churn(void *unused)
{
    while (!stop)
        free(malloc(5000));
    return unused;
}

int main(void)
{
    pthread_t thread;
    (void)alarm(30); /* a hang becomes a failure */
    check_eq(pthread_create(&thread, NULL, churn, NULL), 0);
    for (int round = 0; round < 50; round++) {
        int status;
        pid_t child = fork();
        if (child == 0) {
            free(malloc(100000));
            _exit(0);
        }
        check_eq(waitpid(child, &status, 0), child);
        check_eq(status, 0);
    }
    stop = 1;
    check_eq(pthread_join(thread, NULL), 0);
    (void)puts("ok");
    return 0;
}
