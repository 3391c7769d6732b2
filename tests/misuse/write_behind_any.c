/* A byte behind the end of the request is written, of blocks of many sizes; each in a child. */
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_stopped(size_t size)
{
    char *block = malloc(size);
    pid_t child = fork();
    if (child == 0) {
        close(2);
        block[size] = 'x';
        free(block);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

int main(void)
{
    char *block = malloc(32752);
    announce(block);
    for (size_t size = 1; size < 32768; size += size < 512 ? 1 : 16 * (size / 256)) {
        if (!is_stopped(size)) return survived();
    }
    block[32752] = 'x';
    free(block);
    return survived();
}
