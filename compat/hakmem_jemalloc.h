/* What code written for jemalloc calls besides malloc, on HAKMEM: libhakmem_jemalloc.so
 * (docs/migration.md). The flags have jemalloc's values, so that code compiled with jemalloc's own
 * header runs on it. Whoever links the library needs libhakmem as well. */
#ifndef HAKMEM_JEMALLOC_H
#define HAKMEM_JEMALLOC_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define MALLOCX_LG_ALIGN(lg_alignment) ((int)(lg_alignment))
#define MALLOCX_ALIGN(alignment) ((int)__builtin_ctzl(alignment)) /* a power of two */
#define MALLOCX_ZERO 0x40
#define MALLOCX_TCACHE(number) ((int)(((number) + 2) << 8)) /* changes nothing here */
#define MALLOCX_TCACHE_NONE MALLOCX_TCACHE(-1)
#define MALLOCX_ARENA(number) ((int)(((number) + 1) << 20)) /* changes nothing here */
#define MALLCTL_ARENAS_ALL 4096

/* NULL: there is no memory, and a block that was to be resized is as it was. A size of 0 is for the
 * caller to avoid. With MALLOCX_ZERO rallocx clears what lies behind the old real size. */
void *mallocx(size_t size, int flags);
void *rallocx(void *ptr, size_t size, int flags);

/* `size` is between what was asked for and the real size. */
void dallocx(void *ptr, int flags);
void sdallocx(void *ptr, size_t size, int flags);

/* The real size that mallocx would give, which is malloc_usable_size of its block; 0: too large. */
size_t nallocx(size_t size, int flags);

/* The names: epoch (uint64_t, read and written), stats.allocated, stats.resident, stats.mapped
 * (size_t, read), and arena.<i>.purge, which gives all idle memory back whatever <i> is. Figures
 * are of the moment: writing the epoch adds one to it, and nothing else. The result is 0, ENOENT
 * (another name), EPERM (it cannot be read or written) or EINVAL (a wrong length). */
int mallctl(const char *name, void *old, size_t *old_length, void *new_, size_t new_length);
int mallctlnametomib(const char *name, size_t *mib, size_t *mib_length);
int mallctlbymib(const size_t *mib, size_t mib_length, void *old, size_t *old_length, void *new_,
                 size_t new_length);

#ifdef __cplusplus
}
#endif
#endif
