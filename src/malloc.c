/* The hit paths: malloc and free as the program calls them.
 *
 * This file is the whole hit path. Everything rare (the first call of a process or thread, an empty
 * or full bin, a large, null or foreign pointer, a mode that wants to see every call) shows up here
 * as a bin that misses, and is sorted out in api/slow.c. */
#include <stdlib.h>
#include <string.h>

#include "api/slow.h"
#include "cache/bin.h"
#include "probe/route.h"
#include "slab/size_class.h"
#include "span/page_map.h"

/* Who called the entry point; only a miss wants to know. */
#define CALLER __builtin_return_address(0)

/* A block of at least `size` bytes. Misses go to `slow`, which is malloc_slow or its C++ sister.
 * Size 0 and sizes above 32 KiB have no granule; before initialisation no size has. */
static inline __attribute__((always_inline)) void *allocate(size_t size, allocate_slow_t slow)
{
    size_t granule = granule_of(size);
    FORGET(granule); /* else it is compared before the shift, in a register of its own */
    if (UNLIKELY(granule >= size_open_granules))
        return slow(size, CALLER);
    void *block = thread_bin_pop(thread_bin(size_class_of_granule[granule]));
    if (UNLIKELY(block == NULL))
        return slow(size, CALLER);
    route_note(ROUTE_malloc_bin);
    return block;
}

/* Gives a block back; false: a miss. The pointer is in the window and aligned, so the map may be
 * read; where no slab is it says class 0, whose bin is always full (bin.h). */
static inline __attribute__((always_inline)) bool deallocate(void *ptr)
{
    size_t unit = unit_of(ptr);
    FORGET(unit); /* else it is made from the granule, one step later */
    if (UNLIKELY(granule_at(ptr) >= window_open_granules))
        return false;
    if (UNLIKELY(!thread_bin_push(thread_bin(window_class_map[unit]), ptr)))
        return false;
    route_note(ROUTE_free_bin);
    return true;
}

PUBLIC void *malloc(size_t size)
{
    return allocate(size, malloc_slow);
}

PUBLIC void free(void *ptr)
{
    if (UNLIKELY(!deallocate(ptr)))
        free_slow(ptr);
}

PUBLIC void *calloc(size_t count, size_t size)
{
    size_t total;
    if (UNLIKELY(__builtin_mul_overflow(count, size, &total)))
        return calloc_slow(count, size, CALLER);
    size_t granule = granule_of(total);
    if (UNLIKELY(granule >= size_open_granules))
        return calloc_slow(count, size, CALLER);
    void *block = thread_bin_pop(thread_bin(size_class_of_granule[granule]));
    if (UNLIKELY(block == NULL))
        return calloc_slow(count, size, CALLER);
    route_note(ROUTE_malloc_bin);
    return memset(block, 0, total);
}

/* C23. What the caller says is looked at only where every call is a miss. */
PUBLIC void free_sized(void *ptr, size_t size);
PUBLIC void free_sized(void *ptr, size_t size)
{
    if (UNLIKELY(!deallocate(ptr)))
        free_sized_slow(ptr, size);
}

PUBLIC void free_aligned_sized(void *ptr, size_t alignment, size_t size);
PUBLIC void free_aligned_sized(void *ptr, size_t alignment, size_t size)
{
    (void)alignment;
    if (UNLIKELY(!deallocate(ptr)))
        free_sized_slow(ptr, size);
}

/* ---- C++: operator new(size_t), new[](size_t) and every form of delete ---- */

PUBLIC void *operator_new(size_t size) __asm__("_Znwm");
PUBLIC void *operator_new(size_t size)
{
    return allocate(size, new_slow);
}

PUBLIC void *operator_new_array(size_t size) __asm__("_Znam");
PUBLIC void *operator_new_array(size_t size)
{
    return allocate(size, new_slow);
}

#define DELETE(name, symbol)                                                                       \
    PUBLIC void name(void *ptr) __asm__(symbol);                                                   \
    PUBLIC void name(void *ptr)                                                                    \
    {                                                                                              \
        if (UNLIKELY(!deallocate(ptr)))                                                            \
            free_slow(ptr);                                                                        \
    }

/* Behind the pointer: nothing, align_val_t, nothrow_t const &, or both; none of it is read. */
DELETE(delete_plain, "_ZdlPv")
DELETE(delete_array, "_ZdaPv")
DELETE(delete_aligned, "_ZdlPvSt11align_val_t")
DELETE(delete_array_aligned, "_ZdaPvSt11align_val_t")
DELETE(delete_nothrow, "_ZdlPvRKSt9nothrow_t")
DELETE(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t")
DELETE(delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t")
DELETE(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t")

#define DELETE_SIZED(name, symbol)                                                                 \
    PUBLIC void name(void *ptr, size_t size) __asm__(symbol);                                      \
    PUBLIC void name(void *ptr, size_t size)                                                       \
    {                                                                                              \
        if (UNLIKELY(!deallocate(ptr)))                                                            \
            free_sized_slow(ptr, size);                                                            \
    }

/* Behind the size: nothing or align_val_t. */
DELETE_SIZED(delete_sized, "_ZdlPvm")
DELETE_SIZED(delete_array_sized, "_ZdaPvm")
DELETE_SIZED(delete_sized_aligned, "_ZdlPvmSt11align_val_t")
DELETE_SIZED(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t")
