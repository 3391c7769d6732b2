/* Pointers to each 16 bytes of a block are freed, of blocks of many sizes; each in a child. */
#include "misuse.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
    char *block = malloc(208);
    announce(block + 16);
    for (size_t size = 32; size <= 4096; size += 8) {
        char *inside = malloc(size);
        for (size_t offset = 16; offset < 64 && offset < size; offset += 16) {
            pid_t child = fork();
            if (child == 0) {
                close(2);
                free(inside + offset);
                malloc_trim(0);
                _exit(0);
            }
            int status = 0;
            waitpid(child, &status, 0);
            if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) return survived();
        }
    }
    free(block + 16);
    return survived();
}
