/*
 * launch FD PROGRAM ARGUMENT...
 *
 * Runs one program and writes what the kernel says of it to descriptor FD: one JSON line when it
 * has started, one when it has ended. The laboratory starts programs through this small process
 * and not by itself: a child inherits its parent's peak memory (ru_maxrss), and this one has next
 * to none.
 *
 * Whatever the program starts stays below this process, a daemon too, and ends with it: when the
 * program has ended, at SIGTERM, and when the laboratory is gone, however it went. What is still
 * running a moment after the program's end is counted as left behind.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

enum { GRACE_NS = 500000000 }; /* a busy machine starts a process late */

typedef struct {
    pid_t pid;
    bool has_ended;
    int status;
    uint64_t wall_ns;
    struct rusage usage; /* with all that it started */
} program_t;

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

/* LAUNCH_THP=never keeps transparent huge pages from the program and from all that it starts. */
static bool apply_regime(void)
{
    const char *regime = getenv("LAUNCH_THP");
    bool is_never = regime != NULL && strcmp(regime, "never") == 0;
    unsetenv("LAUNCH_THP");
    return !is_never || prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0;
}

/* In a session of its own: what it does to its process group does not reach this process. */
static int start(program_t *program, int report, char **arguments)
{
    posix_spawnattr_t attributes;
    sigset_t all, none;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setflags(&attributes,
                             POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addclose(&actions, report);
    return posix_spawnp(&program->pid, arguments[0], &actions, &attributes, arguments, environ);
}

/* Takes in what has ended, orphans too. False: there is no child any more. */
static bool reap(program_t *program, uint64_t start_ns)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != program->pid)
            continue;
        program->has_ended = true;
        program->status = status;
        program->wall_ns = now_ns() - start_ns;
    }
    return pid == 0;
}

/* Children that end a moment after the program are not left behind. */
static void wait_for_the_rest(program_t *program, const sigset_t *awaited)
{
    uint64_t end_ns = now_ns() + GRACE_NS;
    while (reap(program, 0) && now_ns() < end_ns) {
        struct timespec pause = {.tv_nsec = GRACE_NS / 10};
        if (sigtimedwait(awaited, NULL, &pause) == SIGTERM)
            return;
    }
}

/* Kills every child there is now, and returns how many there were. */
static int kill_children(void)
{
    char path[64];
    int count = 0, pid;
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *children = fopen(path, "r");
    if (children == NULL)
        return 0;
    for (; fscanf(children, "%d", &pid) == 1; count++)
        kill(pid, SIGKILL);
    fclose(children);
    return count;
}

/* An orphan becomes a child of this process, so all are gone when there is no child left. */
static int end_all(void)
{
    int count = kill_children();
    while (wait(NULL) > 0 || errno == EINTR)
        kill_children();
    return count;
}

static void tell(int report, const program_t *program, int left)
{
    int status = program->status;
    const struct rusage *usage = &program->usage;
    int code = WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
    dprintf(report,
            "{\"status\": %d, \"wall_s\": %.9f, \"user_s\": %.6f, \"system_s\": %.6f, "
            "\"minor_faults\": %ld, \"major_faults\": %ld, \"peak_rss_kib\": %ld, \"left\": %d}\n",
            code, (double)program->wall_ns / 1e9, seconds(usage->ru_utime),
            seconds(usage->ru_stime), usage->ru_minflt, usage->ru_majflt, usage->ru_maxrss, left);
}

int main(int argument_count, char **arguments)
{
    if (argument_count < 3) {
        fprintf(stderr, "usage: launch FD PROGRAM ARGUMENT...\n");
        return 2;
    }
    int report = atoi(arguments[1]);
    sigset_t awaited;
    sigemptyset(&awaited);
    sigaddset(&awaited, SIGCHLD);
    sigaddset(&awaited, SIGTERM);
    sigprocmask(SIG_BLOCK, &awaited, NULL);
    signal(SIGPIPE, SIG_IGN);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* SIGKILL would leave the program running */
    hand_over_preload();
    if (!apply_regime()) {
        dprintf(report, "{\"error\": \"PR_SET_THP_DISABLE: %s\"}\n", strerror(errno));
        return 1;
    }

    program_t program = {0};
    uint64_t start_ns = now_ns();
    int error = start(&program, report, arguments + 2);
    if (error != 0) {
        dprintf(report, "{\"error\": \"%s\"}\n", strerror(error));
        return 1;
    }
    bool is_wanted = dprintf(report, "{\"pid\": %d}\n", (int)program.pid) > 0;
    while (is_wanted && !program.has_ended) {
        is_wanted = sigwaitinfo(&awaited, NULL) != SIGTERM;
        reap(&program, start_ns);
    }
    if (program.has_ended)
        wait_for_the_rest(&program, &awaited);
    getrusage(RUSAGE_CHILDREN, &program.usage);
    int left = end_all();
    if (program.has_ended)
        tell(report, &program, left);
    return 0;
}
