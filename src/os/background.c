/* The thread of the option background. See background.h. */
#include "os/background.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "os/kernel.h"
#include "os/os.h"
#include "options/options.h"
#include "options/tuning.h"

/* Weak: a static program that has no threads is not given the code for them. */
#pragma weak pthread_create

static struct {
    uint64_t home;       /* the process that may have the thread; 0: none may yet */
    uint64_t running_in; /* the process that has the thread, or has tried; atomic */
    sigset_t mask;       /* of signals, of the thread of the program that started it */
} background_state;
static _Thread_local bool is_background;

void os_background_allow(void)
{
    if (options.background)
        background_state.home = os_process_id();
}

bool os_background_is_running(void)
{
    uint64_t process = __atomic_load_n(&background_state.running_in, __ATOMIC_RELAXED);
    return process != 0 && process == background_state.home;
}

bool os_is_background(void)
{
    return is_background;
}

/* How many threads the process has besides the first one, which stays as a zombie after its end; 0:
 * that one is still there. A zombie has no program in /proc, and a folder of tasks has two links
 * more than there are tasks. */
static unsigned background_count_left(void)
{
    struct stat tasks;
    char name;
    if (kernel(SYS_readlinkat, (uintptr_t)AT_FDCWD, (uintptr_t)"/proc/self/exe", (uintptr_t)&name,
               sizeof name, 0, 0) != -ENOENT ||
        kernel(SYS_newfstatat, (uintptr_t)AT_FDCWD, (uintptr_t)"/proc/self/task", (uintptr_t)&tasks,
               0, 0, 0) != 0)
        return 0;
    return (unsigned)tasks.st_nlink - 2 - 1;
}

/* With which the first thread has left by SYS_exit: the last field, as wait gives it. */
static unsigned background_first_status(void)
{
    char text[KIB];
    (void)os_read_file("/proc/self/stat", text, sizeof text);
    const char *last = strrchr(text, ' ');
    return last == NULL ? 0 : (unsigned)strtoul(last, NULL, 10) >> 8;
}

/* The thread ends when no other is left. If the C library knows of none either, it calls exit in
 * this one, where the program's handlers find signals as the program has set them. Else the status
 * of the process is that of its last thread. */
static void *background_loop(void *work)
{
    const struct timespec period = {.tv_nsec = (long)PURGE_PERIOD_MS * 1000000 % 1000000000,
                                    .tv_sec = PURGE_PERIOD_MS / 1000};
    bool first_is_last = true;
    is_background = true;
    for (unsigned left; (left = background_count_left()) != 1;) {
        first_is_last &= left == 0;
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
        ((void (*)(void))(uintptr_t)work)();
    }
    unsigned status = first_is_last ? background_first_status() : 0;
    if (status != 0)
        (void)kernel(SYS_exit, status, 0, 0, 0, 0, 0);
    (void)pthread_sigmask(SIG_SETMASK, &background_state.mask, NULL);
    return NULL;
}

void os_background_start(void (*work)(void))
{
    uint64_t before = __atomic_load_n(&background_state.running_in, __ATOMIC_RELAXED);
    /* Once in a process, whether or not it can be had. */
    if (background_state.home == 0 || before == background_state.home ||
        background_state.home != os_process_id() || pthread_create == NULL ||
        !__atomic_compare_exchange_n(&background_state.running_in, &before, background_state.home,
                                     false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        return;
    sigset_t all;
    pthread_t thread;
    pthread_attr_t attributes;
    int saved_errno = errno;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) == 0) {
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void)pthread_sigmask(SIG_SETMASK, &all, &background_state.mask);
        (void)pthread_create(&thread, &attributes, background_loop, (void *)(uintptr_t)work);
        (void)pthread_sigmask(SIG_SETMASK, &background_state.mask, NULL);
        (void)pthread_attr_destroy(&attributes);
    }
    errno = saved_errno;
}
