/* System calls as the files of this folder make them: past the C library's wrappers, which tools
 * interpose that allocate. The complete list of calls is in docs/architecture.md. */
#ifndef HAKMEM_OS_KERNEL_H
#define HAKMEM_OS_KERNEL_H

#include <errno.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/types.h"
#include "options/options.h"

#ifndef SYS_statx
#define SYS_statx (-1L) /* not in old headers: no kernel has this call */
#endif

/* Calls that only save memory or time, or keep signals away. With plain_syscalls it is as if no
 * kernel had them. */
static inline bool kernel_lacks(long number)
{
    return options.plain_syscalls &&
           (number == SYS_madvise || number == SYS_mincore || number == SYS_sysinfo ||
            number == SYS_statx || number == SYS_rt_sigprocmask ||
            number == SYS_rt_sigpending || number == SYS_rt_sigtimedwait);
}

/* A system call that leaves errno alone: the result, or minus the error. Unused arguments are 0. */
static inline long kernel(long number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d,
                          uintptr_t e, uintptr_t f)
{
    if (kernel_lacks(number))
        return -ENOSYS;
    int saved_errno = errno;
    long result = syscall(number, a, b, c, d, e, f);
    if (result == -1)
        result = -errno;
    errno = saved_errno;
    return result;
}

static inline long kernel_with(long number, const void *address, uintptr_t b, uintptr_t c)
{
    return kernel(number, (uintptr_t)address, b, c, 0, 0, 0);
}

#endif
