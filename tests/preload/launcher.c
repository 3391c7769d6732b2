/* launcher SETTING PROGRAM: runs the program many times with one environment variable and prints
   the median of its peak resident memory in KiB. Linked statically: what a process held before exec
   counts as its own, so the starter must be smaller than what it starts. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { RUNS = 31 };

static int ascending(const void *left, const void *right)
{
    const long a = *(const long *)left, b = *(const long *)right;
    return (a > b) - (a < b);
}

int main(int argc, char **argv)
{
    long peaks[RUNS];
    if (argc != 3) return 2;
    for (int run = 0; run < RUNS; run++) {
        char *command[] = {argv[2], NULL}, *environment[] = {argv[1], NULL};
        pid_t child;
        int status;
        struct rusage usage;
        if (posix_spawn(&child, argv[2], NULL, NULL, command, environment) != 0) return 1;
        if (wait4(child, &status, 0, &usage) != child || status != 0) return 1;
        peaks[run] = usage.ru_maxrss;
    }
    qsort(peaks, RUNS, sizeof peaks[0], ascending);
    printf("%ld\n", peaks[RUNS / 2]);
    return 0;
}
