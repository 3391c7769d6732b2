/* The thread of the option background. See background.h. */
#include "os/background.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>

#include "base/bits.h"
#include "os/os.h"
#include "options/tuning.h"

/* Weak: a static program that has no threads is not given the code for them. */
#pragma weak pthread_create

static struct {
    uint64_t home;       /* the process that may have the thread; 0: none may yet */
    uint64_t running_in; /* the process that has the thread, or has tried; atomic */
} background_state;
static _Thread_local bool is_background;

void os_background_allow(void)
{
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

static void *background_loop(void *work)
{
    const struct timespec period = {.tv_nsec = (long)PURGE_PERIOD_MS * 1000000 % 1000000000,
                                    .tv_sec = PURGE_PERIOD_MS / 1000};
    is_background = true;
    for (;;) {
        (void)clock_nanosleep(CLOCK_MONOTONIC, 0, &period, NULL);
        ((void (*)(void))(uintptr_t)work)();
    }
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
    sigset_t mask;
    pthread_t thread;
    pthread_attr_t attributes;
    int saved_errno = errno;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) == 0) {
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void)pthread_sigmask(SIG_SETMASK, &all, &mask);
        (void)pthread_create(&thread, &attributes, background_loop, (void *)(uintptr_t)work);
        (void)pthread_sigmask(SIG_SETMASK, &mask, NULL);
        (void)pthread_attr_destroy(&attributes);
    }
    errno = saved_errno;
}
