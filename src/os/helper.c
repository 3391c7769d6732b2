/* The helper thread on Linux. See helper.h.
 *
 * It is made by clone(2) rather than by pthread_create, which allocates, takes locks of the dynamic
 * linker and would make the C library use atomic operations for the rest of the process. Its
 * thread pointer points into memory of its own that reads as zero: errno and our thread-local
 * variables lie there. */
#include "os/helper.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/arch/cpu.h"
#include "base/bits.h"
#include "base/config.h"
#include "os/os.h"
#include "policy/tuning.h"

/* What the C library keeps beside the thread pointer, and we keep beside a variable of ours, stays
 * within this. */
#define TCB_ROOM ((size_t)16 * 1024)

/* Bytes of a signal set of the kernel. */
#define KERNEL_SIGNALS 8

uint32_t os_helper_id;
static char *place; /* the stack, and behind it the thread-local memory, half on either side of */
static char *thread_pointer;
static uint64_t home; /* the process that may have a helper */

bool os_is_helper(void)
{
    return place != NULL && (char *)__builtin_thread_pointer() == thread_pointer;
}

/* How far from the thread pointer a thread-local variable lies: behind those of the program, which
 * may have many. */
static size_t distance(const void *variable)
{
    ptrdiff_t offset = (const char *)variable - (const char *)__builtin_thread_pointer();
    return (size_t)(offset < 0 ? -offset : offset);
}

static bool may_have_helper(void)
{
    return !config_sanitised && home == os_process_id() && getauxval(AT_SECURE) == 0;
}

static bool prepare(void)
{
    static _Thread_local char ours;
    if (place != NULL)
        return true;
    size_t page = os_page_size();
    size_t reach = larger_of(distance(&errno), distance(&ours)) + TCB_ROOM;
    reach = (reach + page - 1) & ~(page - 1);
    char *start = os_map(HELPER_STACK + 2 * reach);
    if (start == NULL)
        return false;
    thread_pointer = start + HELPER_STACK + reach;
    *(void **)(void *)thread_pointer = thread_pointer; /* x86-64: the TCB begins with it */
    place = start; /* last: a fork meanwhile leaves the child none rather than half of it */
    return true;
}

bool os_helper_start(void (*run)(void))
{
    uint32_t none = 0;
    /* The process is multi-threaded from here on; the kernel writes the real number. */
    if (os_helper_is_running() || !may_have_helper() ||
        !__atomic_compare_exchange_n(&os_helper_id, &none, UINT32_MAX, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_RELAXED))
        return false;
    if (!prepare()) {
        __atomic_store_n(&os_helper_id, 0, __ATOMIC_RELEASE);
        return false;
    }
    int saved_errno = errno;
    uint64_t blocked = ~((uint64_t)1 << (SIGSYS - 1));
    uint64_t before = 0;
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, &before, KERNEL_SIGNALS);
    const unsigned long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                                CLONE_SYSVSEM | CLONE_SETTLS | CLONE_PARENT_SETTID |
                                CLONE_CHILD_CLEARTID;
    long id = cpu_start_thread(flags, place + HELPER_STACK, &os_helper_id, thread_pointer, run);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, KERNEL_SIGNALS);
    if (id < 0)
        __atomic_store_n(&os_helper_id, 0, __ATOMIC_RELEASE);
    errno = saved_errno;
    return id >= 0;
}

void os_helper_sleep(uint64_t ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    syscall(SYS_nanosleep, &time, NULL);
}

/* The lines of a thread's status with the numbers of its user and group; false: they cannot be
 * read. */
static bool read_rights(const char *path, char *text, size_t room)
{
    if (os_read_file(path, text, room) == 0)
        return false;
    char *start = strstr(text, "\nUid:");
    char *end = strstr(text, "\nFDSize:");
    if (start == NULL || end == NULL || end < start)
        return false;
    *end = '\0';
    (void)memmove(text, start, (size_t)(end - start) + 1);
    return true;
}

bool os_helper_has_rights(void)
{
    char program[1024];
    char own[1024];
    return !read_rights("/proc/self/status", program, sizeof program) ||
           !read_rights("/proc/thread-self/status", own, sizeof own) || strcmp(program, own) == 0;
}

void os_helper_allow(void)
{
    home = os_process_id();
    __atomic_store_n(&os_helper_id, 0, __ATOMIC_RELEASE);
}
