/*
 * launch FD PROGRAM ARGUMENT...
 *
 * Runs one program and writes what the kernel says of it to descriptor FD, as one JSON line. The
 * laboratory starts programs through this small process and not by itself: a child inherits its
 * parent's peak memory (ru_maxrss), and this one has next to none.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static double seconds(struct timeval time)
{
    return (double)time.tv_sec + (double)time.tv_usec / 1e6;
}

/* LAUNCH_PRELOAD becomes the program's LD_PRELOAD, so that this process stays on the C library. */
static void hand_over_preload(void)
{
    const char *preload = getenv("LAUNCH_PRELOAD");
    if (preload != NULL)
        setenv("LD_PRELOAD", preload, 1);
    unsetenv("LAUNCH_PRELOAD");
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 3) {
        fprintf(stderr, "usage: launch FD PROGRAM ARGUMENT...\n");
        return 2;
    }
    int report = atoi(arguments[1]);
    hand_over_preload();
    posix_spawnattr_t attributes;
    sigset_t defaults;
    sigfillset(&defaults);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &defaults);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, report);

    pid_t pid;
    uint64_t start_ns = now_ns();
    int error = posix_spawnp(&pid, arguments[2], &actions, &attributes, arguments + 2, environ);
    if (error != 0) {
        dprintf(report, "{\"error\": \"%s\"}\n", strerror(error));
        return 1;
    }
    dprintf(report, "{\"pid\": %d}\n", (int)pid);
    struct rusage usage;
    int status;
    while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
    }
    uint64_t wall_ns = now_ns() - start_ns;
    int code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    dprintf(report,
            "{\"status\": %d, \"wall_s\": %.9f, \"cpu_s\": %.6f, \"minor_faults\": %ld, "
            "\"major_faults\": %ld, \"peak_rss_kib\": %ld}\n",
            code, (double)wall_ns / 1e9, seconds(usage.ru_utime) + seconds(usage.ru_stime),
            usage.ru_minflt, usage.ru_majflt, usage.ru_maxrss);
    return 0;
}
