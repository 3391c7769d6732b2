/* malloc_usable_size. */
#include <malloc.h>

#include "entry/libc_heap.h"
#include "entry/slow.h"

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
    const slab_t *slab = small_block_slab(ptr);
    return LIKELY(slab != NULL) ? size_classes[slab->class].size : usable_size_otherwise(ptr);
}
