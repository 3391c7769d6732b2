/* A signal handler may call exit at any moment of a program that did nothing wrong: what is looked
   at when the process ends is not found half done. */
#include "api/heap.h"
#include "check.h"

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

check_main()
