/* Linked with --wrap=syscall: the allocator's system calls as ThreadSanitizer has to see them.

   os_linux.c calls the kernel by syscall(2), past the sanitizer. Memory that one thread unmaps and
   another gets again would look like a race, and the usual place of the window lies where the
   sanitizer has its own tables. So mappings go through its mmap, and only below 512 GiB. */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

long __real_syscall(long number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                    uintptr_t f);
long __wrap_syscall(long number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                    uintptr_t f);

/* What ThreadSanitizer calls the low part of the program's memory on x86-64. */
#define LOW_MEMORY_END ((uintptr_t)1 << 39)

static long seen_map(uintptr_t address, size_t size, int protection, int flags)
{
    if (address >= LOW_MEMORY_END) {
        errno = EEXIST;
        return -1;
    }
    return (long)mmap((void *)address, size, protection, flags, -1, 0);
}

/* A fresh place that the sanitizer knows, and the pages moved onto it. */
static long seen_remap(uintptr_t address, size_t old_size, size_t new_size)
{
    void *place = mmap(NULL, new_size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (place == MAP_FAILED) return -1;
    return __real_syscall(SYS_mremap, address, old_size, new_size, MREMAP_MAYMOVE | MREMAP_FIXED,
                          (uintptr_t)place, 0);
}

long __wrap_syscall(long number, uintptr_t a, uintptr_t b, uintptr_t c, uintptr_t d, uintptr_t e,
                    uintptr_t f)
{
    if (number == SYS_mmap) return seen_map(a, b, (int)c, (int)d);
    if (number == SYS_munmap) return munmap((void *)a, b);
    if (number == SYS_mremap) return seen_remap(a, b, c);
    return __real_syscall(number, a, b, c, d, e, f);
}
