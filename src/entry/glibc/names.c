/* Names that glibc has beside the standard ones, for programs older than those; and mallopt. The
 * functions that report on the heap are in reports.c. */
#include <malloc.h>
#include <stdlib.h>

#include "base/types.h"

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

/* Accepts every parameter and changes nothing: nothing here corresponds to what they tune. 1 is
 * success. */
PUBLIC int mallopt(int parameter, int value)
{
    (void)parameter;
    (void)value;
    return 1;
}
