/* A short-lived thread of our own, for work that is due when the program makes no call.
 *
 * The C library does not know it: it has no place in its list of threads, runs no handler at its
 * end, and stays on system calls and our own structures. It blocks every signal but SIGSYS: where a
 * sandbox answers system calls in a handler (seccomp(2), SECCOMP_RET_TRAP), the kernel ends a
 * process that blocks it. The process counts as multi-threaded while the helper lives
 * (os/threads.h). After fork the child has none. */
#ifndef HAKMEM_OS_HELPER_H
#define HAKMEM_OS_HELPER_H

#include "base/types.h"
#include "os/threads.h"

/* Not 0 from before the helper starts until the kernel has ended it. */
static inline bool os_helper_is_running(void)
{
    return __atomic_load_n(&os_helper_id, __ATOMIC_RELAXED) != 0;
}

/* The calling process may have a helper from here on: at its initialisation, and in the child of a
 * fork, which has none. Not so a child of vfork, whose memory is its parent's. */
void os_helper_allow(void);

/* Starts the helper, which calls `run` and ends. The caller holds no lock. False: one is running,
 * or the kernel refuses, or this build or process may have none. */
bool os_helper_start(void (*run)(void));

/* For the helper: sleeps so long. */
void os_helper_sleep(uint64_t ms);

/* For the helper: has it the credentials that the program has now? It keeps those of its start. */
bool os_helper_has_rights(void);

/* Is the calling thread the helper? */
bool os_is_helper(void);

#endif
