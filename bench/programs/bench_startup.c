/*
 * bench_startup PROCESSES [--mallocs]
 *
 * What an allocator costs a process that does nothing: starts itself again and again, one child at
 * a time. A child allocates --mallocs blocks (none by default) and ends.
 */
#include "bench.h"

#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESSES, MALLOCS, PARAMETER_COUNT };

static parameter_t parameters[PARAMETER_COUNT] = {
    [PROCESSES] = {"processes", KIND_COUNT, POSITIONAL, 200, 1, LIMIT_SLOTS, NULL, false},
    [MALLOCS] = {"mallocs", KIND_COUNT, NAMED_ONLY, 0, 0, LIMIT_SLOTS, NULL, false},
};

static bench_t bench = {"bench_startup", "one process from its start to its end", parameters,
                        PARAMETER_COUNT, false};

static const char child_mark[] = "--child";

/* The blocks are kept: a short process rarely frees. */
static int child_main(const char *text)
{
    for (unsigned long count = strtoul(text, NULL, 10); count != 0; count--) {
        unsigned char *block = malloc(16 + count % 64 * 16);
        if (block == NULL) return 1;
        block[0] = 1;
        bench_use(block);
    }
    return 0;
}

static void run_child(const char *mallocs)
{
    pid_t child;
    int status = 0;
    char *words[] = {(char *)bench.program, (char *)child_mark, (char *)mallocs, NULL};
    if (posix_spawn(&child, "/proc/self/exe", NULL, NULL, words, environ) != 0)
        bench_fail("a child could not be started");
    if (waitpid(child, &status, 0) != child || status != 0) bench_fail("a child failed");
}

int main(int argument_count, char **arguments)
{
    if (argument_count == 3 && strcmp(arguments[1], child_mark) == 0)
        return child_main(arguments[2]);
    char mallocs[32];
    bench_open(&bench, argument_count, arguments);
    bench_begin(&bench);
    snprintf(mallocs, sizeof mallocs, "%llu", (unsigned long long)parameters[MALLOCS].value);
    uint64_t start_ns = bench_now_ns();
    for (uint64_t count = parameters[PROCESSES].value; count != 0; count--) run_child(mallocs);
    bench_close(&bench, parameters[PROCESSES].value, bench_now_ns() - start_ns);
    return 0;
}
