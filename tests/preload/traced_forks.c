/* A child of fork and one of a bare clone, for the tests of traces: each allocates a length of its
 * own. Prints the numbers of the three processes. */
#include "check.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void one_block(size_t size)
{
    void *volatile block = malloc(size);
    free(block);
}

int main(void)
{
    one_block(1001);
    const pid_t child = fork();
    if (child == 0) {
        one_block(1002);
        _exit(0);
    }
    check_eq(waitpid(child, NULL, 0), child);
    const pid_t cloned = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, 0);
    if (cloned == 0) {
        one_block(1003);
        _exit(0);
    }
    check_eq(waitpid(cloned, NULL, 0), cloned);
    one_block(1004);
    printf("%d %d %d\n", (int)getpid(), (int)child, (int)cloned);
    return 0;
}
