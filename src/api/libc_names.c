/* The rest of glibc's malloc family: the other names of functions that stand elsewhere, and what
 * tunes or trims the heap. What reports on it is in libc_reports.c. */
#include <malloc.h>
#include <stdlib.h>

#include "api/init.h"
#include "api/libc_heap.h"
#include "api/slow.h"
#include "cache/upkeep.h"

/* ---- other names, for programs older than the standard ones ---- */

PUBLIC void *libc_malloc(size_t size) __asm__("__libc_malloc");
PUBLIC void *libc_malloc(size_t size)
{
    return malloc(size);
}

PUBLIC void *libc_calloc(size_t count, size_t size) __asm__("__libc_calloc");
PUBLIC void *libc_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

PUBLIC void *libc_realloc(void *ptr, size_t size) __asm__("__libc_realloc");
PUBLIC void *libc_realloc(void *ptr, size_t size)
{
    return realloc(ptr, size);
}

PUBLIC void libc_free(void *ptr) __asm__("__libc_free");
PUBLIC void libc_free(void *ptr)
{
    free(ptr);
}

PUBLIC void cfree(void *ptr);
PUBLIC void cfree(void *ptr)
{
    free(ptr);
}

PUBLIC void *libc_memalign(size_t alignment, size_t size) __asm__("__libc_memalign");
PUBLIC void *libc_memalign(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

PUBLIC void *libc_valloc(size_t size) __asm__("__libc_valloc");
PUBLIC void *libc_valloc(size_t size)
{
    return valloc(size);
}

PUBLIC void *libc_pvalloc(size_t size) __asm__("__libc_pvalloc");
PUBLIC void *libc_pvalloc(size_t size)
{
    return pvalloc(size);
}

/* ---- questions ---- */

static NOINLINE size_t usable_size_otherwise(void *ptr)
{
    if (ptr == NULL)
        return 0;
    size_t size = block_size(ptr, "malloc_usable_size");
    return size == SIZE_MAX ? libc_heap_usable_size(ptr) : size;
}

/* Some programs (redis) ask more often than they allocate. */
PUBLIC size_t malloc_usable_size(void *ptr)
{
    size_t size = small_block_size(ptr);
    return LIKELY(size != 0) ? size : usable_size_otherwise(ptr);
}

/* Gives everything idle back whatever `pad` says: there is no top of the heap to pad. */
PUBLIC int malloc_trim(size_t pad)
{
    (void)pad;
    return ensure_init() && upkeep_purge_all() != 0;
}

/* Accepts every parameter and changes nothing: what they tune does not exist here. 1 is success. */
PUBLIC int mallopt(int parameter, int value)
{
    (void)parameter;
    (void)value;
    return 1;
}
