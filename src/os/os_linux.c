/* os.h on Linux; what is about one C library alone stands in glibc/ and musl/, what is about files
 * in files.c.
 *
 * System calls go through kernel.h. But what takes pages from addresses where blocks lay goes
 * through the C library's madvise, munmap and mremap: libraries that register memory with a device
 * put hooks there, to learn which addresses have lost their pages. */
#include "os/os.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <time.h>

#include "base/assert.h"
#include "base/bits.h"
#include "base/config.h"
#include "os/kernel.h"
#include "os/lock.h"
#include "os/threads.h"

/* Of the kernel's interface (linux/mman.h, futex.h). Its headers are a package of
 * their own where the C library is musl. */
#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif
enum { MOVE_PAGES = MREMAP_MAYMOVE | 4 /* MREMAP_DONTUNMAP */ };
enum { FUTEX_WAIT_PRIVATE = 128, FUTEX_WAKE_PRIVATE = 129 };

static struct {
    os_calls_t calls;       /* any thread adds, with counter_add */
    size_t page_size;       /* bytes; 0: nobody has asked the kernel yet */
    uint64_t latest_ms;     /* the latest time of os_clock_ms; atomic */
    uint64_t added_ms;      /* to the kernel's clock, which has gone back so far; atomic */
    pthread_key_t exit_key; /* written at initialisation, as has_exit_key */
    bool has_exit_key;
} os_state;

extern char **environ;
/* Points at argc on the initial stack. glibc has it before `environ` is set; musl has `environ`
 * from the first and not this. */
extern void *__libc_stack_end __attribute__((weak));

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    if (clock_gettime(clock, &now) != 0)
        return 0;
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Counts a call that began at `start_ns` and had this result, which it returns. */
static long count_call(os_call_t *call, uint64_t start_ns, size_t size, long result)
{
    counter_add(&call->count, 1);
    counter_add(&call->bytes, result < 0 ? 0 : size);
    counter_add(&call->ns, clock_ns(CLOCK_MONOTONIC) - start_ns);
    return result;
}

/* The address as a number, or minus the error: no address of a process is less than 0. */
static long map_pages(void *hint, size_t size, int protection, int flags)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    flags |= MAP_PRIVATE | MAP_ANONYMOUS;
    long result = kernel(SYS_mmap, (uintptr_t)hint, size, (uintptr_t)protection, (uintptr_t)flags,
                         UINTPTR_MAX, 0);
    return count_call(&os_state.calls.map, start, size, result);
}

static void *map_anywhere(size_t size, int protection, int flags)
{
    long start = map_pages(NULL, size, protection, flags);
    return start < 0 ? NULL : (void *)start;
}

size_t os_page_size(void)
{
    if (os_state.page_size == 0)
        os_state.page_size = getauxval(AT_PAGESZ) != 0 ? getauxval(AT_PAGESZ) : 4096;
    return os_state.page_size;
}

size_t os_physical_memory(void)
{
    struct sysinfo info = {0};
    (void)kernel_with(SYS_sysinfo, &info, 0, 0);
    return (size_t)info.totalram * info.mem_unit;
}

static struct rlimit resource_limits(int resource)
{
    struct rlimit limit;
    long result =
        kernel(SYS_prlimit64, 0, (uintptr_t)resource, 0, (uintptr_t)&limit, 0, 0);
    return result == 0 ? limit : (struct rlimit){RLIM_INFINITY, RLIM_INFINITY};
}

static size_t resource_limit(int resource)
{
    return resource_limits(resource).rlim_cur; /* RLIM_INFINITY is SIZE_MAX */
}

_Static_assert(RLIM_INFINITY == SIZE_MAX, "no limit");

size_t os_address_space_limit(void)
{
    return resource_limit(RLIMIT_AS);
}

bool os_address_space_may_grow(void)
{
    struct rlimit limits = resource_limits(RLIMIT_AS);
    return limits.rlim_cur < limits.rlim_max;
}

size_t os_data_limit(void)
{
    return resource_limit(RLIMIT_DATA);
}

os_result_t os_map_at(void *address, size_t size)
{
    long got = map_pages(address, size, PROT_READ | PROT_WRITE, MAP_FIXED_NOREPLACE);
    if (got == (long)address)
        return OS_DONE;
    if (got < 0)
        return got == -EEXIST ? OS_OCCUPIED : OS_NO_MEMORY;
    /* Before Linux 4.17, and in some emulators, the flag is unknown and the address a mere hint. */
    os_release((void *)got, size);
    return OS_OCCUPIED;
}

bool os_map_over(void *address, size_t size)
{
    return map_pages(address, size, PROT_READ | PROT_WRITE, MAP_FIXED) == (long)address;
}

void *os_map(size_t size)
{
    return map_anywhere(size, PROT_READ | PROT_WRITE, 0);
}

void *os_reserve(size_t size)
{
    return map_anywhere(size, PROT_NONE, MAP_NORESERVE);
}

bool os_commit(void *address, size_t size)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    long result = kernel_with(SYS_mprotect, address, size, PROT_READ | PROT_WRITE);
    return count_call(&os_state.calls.protect, start, size, result) == 0;
}

/* Without madvise: moves the pages elsewhere, and unmaps them there. The mapping stays one; by mmap
 * over a part of it the child of a fork would get three. A range is halved where it lies in two
 * mappings, or where a limit leaves too few addresses for a second one. Since Linux 5.7. */
static bool purge_by_move(char *start, size_t size)
{
    void *pages = mremap(start, size, size, MOVE_PAGES, NULL);
    if (pages != MAP_FAILED)
        return munmap(pages, size) == 0;
    size_t half = align_down(size / 2, os_page_size());
    return (errno == EFAULT || errno == ENOMEM) && half != 0 && purge_by_move(start, half) &&
           purge_by_move(start + half, size - half);
}

bool os_purge(void *address, size_t size)
{
    PROBE(purge, address, size);
    MUST(lock_none_is_held());
    int saved_errno = errno;
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    bool is_done = kernel_lacks(SYS_madvise) ? purge_by_move(address, size)
                                             : madvise(address, size, MADV_DONTNEED) == 0;
    errno = saved_errno;
    return count_call(&os_state.calls.purge, start, size, is_done ? 0 : -1) == 0;
}

bool os_purge_own(void *address, size_t size)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    long result = kernel_with(SYS_madvise, address, size, MADV_DONTNEED);
    return count_call(&os_state.calls.purge, start, size, result) == 0;
}

void os_advise_huge_pages(void *address, size_t size, bool wanted)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    int advice = wanted ? MADV_HUGEPAGE : MADV_NOHUGEPAGE;
    long result = kernel_with(SYS_madvise, address, size, (uintptr_t)advice);
    (void)count_call(&os_state.calls.advise, start, size, result);
}

void *os_remap(void *address, size_t old_size, size_t new_size)
{
    MUST(lock_none_is_held());
    int saved_errno = errno;
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    void *moved = mremap(address, old_size, new_size, MREMAP_MAYMOVE);
    errno = saved_errno;
    bool is_done = moved != MAP_FAILED;
    (void)count_call(&os_state.calls.remap, start, new_size, is_done ? 0 : -1);
    return is_done ? moved : NULL;
}

bool os_unmap(void *address, size_t size)
{
    MUST(lock_none_is_held());
    int saved_errno = errno;
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    int result = munmap(address, size);
    errno = saved_errno;
    return count_call(&os_state.calls.unmap, start, size, result) == 0;
}

bool os_release(void *address, size_t size)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    return count_call(&os_state.calls.unmap, start, size,
                      kernel_with(SYS_munmap, address, size, 0)) == 0;
}

/* The kernel reads the word and compares it with a value that is hardly there. Should the value be
 * there, the kernel waits for no time, so that nobody's wake-up comes here. */
bool os_is_readable(const void *address)
{
    return kernel(SYS_futex, (uintptr_t)address & ~(uintptr_t)3, FUTEX_WAIT_PRIVATE, 0x9e3779b9,
                  (uintptr_t)&(struct timespec){0}, 0, 0) != -EFAULT;
}

size_t os_resident_size(const void *address, size_t size)
{
    unsigned char pages[OS_RESIDENT_MOST / (4 * KIB)]; /* no page is smaller */
    size_t resident = 0;
    if (kernel(SYS_mincore, (uintptr_t)address, size, (uintptr_t)pages, 0, 0, 0) != 0)
        return 0;
    for (size_t page = 0; page < size / os_page_size(); page++)
        resident += pages[page] & 1;
    return resident * os_page_size();
}

/* A clock that has gone back goes on from the latest time it had: the child of a fork may be in
 * another time namespace, and tools fake the time. Threads that see that at once agree. */
uint64_t os_clock_ms(void)
{
    /* acquire: pairs with the release below; the kernel's clock is read later than that time */
    uint64_t latest_ms = __atomic_load_n(&os_state.latest_ms, __ATOMIC_ACQUIRE);
    uint64_t kernel_ms = clock_ns(CLOCK_MONOTONIC_COARSE) / 1000000;
    uint64_t now_ms = kernel_ms + counter_read(&os_state.added_ms);
    if (UNLIKELY(now_ms < latest_ms))
        __atomic_store_n(&os_state.added_ms, latest_ms - kernel_ms, __ATOMIC_RELAXED);
    else if (now_ms != latest_ms)
        __atomic_store_n(&os_state.latest_ms, now_ms, __ATOMIC_RELEASE);
    return larger_of(now_ms, latest_ms);
}

uint64_t os_calendar_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

uint64_t os_clock_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t os_processor_ns(void)
{
    return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

uint64_t os_process_ns(void)
{
    return options.plain_syscalls ? 0 : clock_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* The kernel hands every process 16 random bytes; the C library uses them for its stack canary, so
 * they go through a mixer (splitmix64, Steele et al. 2014) before anything derives from them. Our
 * own address goes in as well: several libraries of a process may have the allocator in them, and
 * with one number all would look for their window at the same few places. */
uint64_t os_random(void)
{
    const unsigned char *bytes = (const unsigned char *)getauxval(AT_RANDOM);
    uint64_t mixed = 0x9e3779b97f4a7c15u ^ (uintptr_t)&os_state.calls;
    for (unsigned index = 0; bytes != NULL && index < 16; index++)
        mixed = (mixed ^ bytes[index]) * 0xbf58476d1ce4e5b9u;
    mixed ^= mixed >> 30;
    mixed *= 0x94d049bb133111ebu;
    return mixed ^ (mixed >> 31);
}

char *const *os_environment(void)
{
    if (getauxval(AT_SECURE) != 0)
        return NULL;
    if (environ != NULL)
        return environ;
    if (&__libc_stack_end == NULL || __libc_stack_end == NULL)
        return NULL;
    uintptr_t *argument_count = __libc_stack_end;
    return (char *const *)(argument_count + 1 + *argument_count + 1);
}

void os_sleep(uint64_t ms)
{
    struct timespec time = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    (void)kernel(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, (uintptr_t)&time, 0, 0, 0);
}

void os_wait(const uint32_t *word, uint32_t expected)
{
    uint64_t start = clock_ns(CLOCK_MONOTONIC);
    long result = kernel_with(SYS_futex, word, FUTEX_WAIT_PRIVATE, expected); /* no time limit */
    (void)count_call(&os_state.calls.wait, start, 0, result);
}

void os_wake_one(const uint32_t *word)
{
    (void)kernel_with(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1);
}

bool os_prepare_thread_exit(void (*at_exit)(void *value))
{
    os_state.has_exit_key = pthread_key_create(&os_state.exit_key, at_exit) == 0;
    return os_state.has_exit_key;
}

bool os_call_at_thread_exit(void *value)
{
    return os_state.has_exit_key && pthread_setspecific(os_state.exit_key, value) == 0;
}

/* From the kernel: what the C library knows is not there yet when the first options are read. */
const char *os_program_name(void)
{
    const char *path = (const char *)getauxval(AT_EXECFN);
    const char *name = path;
    for (; path != NULL && *path != '\0'; path++)
        if (*path == '/' && path[1] != '\0')
            name = path + 1;
    return name != NULL && *name != '\0' ? name : "?";
}

uint64_t os_process_id(void)
{
    return (uint64_t)kernel(SYS_getpid, 0, 0, 0, 0, 0, 0);
}

_Noreturn void os_abort(void)
{
    abort();
}

static os_call_t read_call(const os_call_t *call)
{
    return (os_call_t){.count = counter_read(&call->count),
                       .bytes = counter_read(&call->bytes),
                       .ns = counter_read(&call->ns)};
}

os_calls_t os_calls(void)
{
    return (os_calls_t){
        .map = read_call(&os_state.calls.map),
        .unmap = read_call(&os_state.calls.unmap),
        .protect = read_call(&os_state.calls.protect),
        .advise = read_call(&os_state.calls.advise),
        .purge = read_call(&os_state.calls.purge),
        .remap = read_call(&os_state.calls.remap),
        .wait = read_call(&os_state.calls.wait),
    };
}
