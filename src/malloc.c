/* The hit paths: malloc and free as the program calls them.
 *
 * This file is the whole hit path. Rare calls fail one of two tests, granule or bin, and go to
 * entry/slow.c or entry/free_slow.c: the first call of a process or thread, an empty or full bin, a
 * large block, a null or foreign pointer, every call in a mode that has to see all of them, and
 * each free while much is free (upkeep_watch). */
#include <stdlib.h>
#include <string.h>

#include "entry/operators.h"
#include "entry/slow.h"
#include "cache/bin.h"
#include "base/route.h"
#include "slab/size_class.h"
#include "heap/page_map.h"

/* Who called the entry point; only a miss wants to know. */
#define CALLER __builtin_return_address(0)

/* A block of at least `size` bytes. Misses go to `slow`, which is malloc_slow or one of its C++
 * sisters. Size 0 and sizes above 32 KiB have no granule; before initialisation no size has. */
static inline __attribute__((always_inline)) void *allocate(size_t size, const size_t *open,
                                                            allocate_slow_t slow)
{
    size_t granule = granule_of(size);
    FORGET(granule); /* else it is compared before the shift, in a register of its own */
    if (UNLIKELY(granule >= *open))
        return slow(size, CALLER);
    void *block = thread_bin_pop(thread_bin(size_class_offset(granule)));
    if (UNLIKELY(block == NULL))
        return slow(size, CALLER);
    route_note(ROUTE_malloc_bin);
    return block;
}

/* Gives a block back; false: a miss. The pointer is in the window and aligned, so the map may be
 * read; where no slab is it says class 0, whose bin is always full (bin.h). */
static inline __attribute__((always_inline)) bool deallocate(void *ptr, const size_t *open)
{
    size_t unit = unit_of(ptr);
    FORGET(unit); /* else it is made from the granule, one step later */
    if (UNLIKELY(granule_at(ptr) >= *open))
        return false;
    if (UNLIKELY(!thread_bin_push(thread_bin(window_class_map[unit]), ptr)))
        return false;
    route_note(ROUTE_free_bin);
    return true;
}

PUBLIC AT_A_LINE void *malloc(size_t size)
{
    return allocate(size, &size_open_granules, malloc_slow);
}

PUBLIC AT_A_LINE void free(void *ptr)
{
    if (UNLIKELY(!deallocate(ptr, &window_open_granules)))
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
    void *block = thread_bin_pop(thread_bin(size_class_offset(granule)));
    if (UNLIKELY(block == NULL))
        return calloc_slow(count, size, CALLER);
    route_note(ROUTE_malloc_bin);
    return memset(block, 0, total);
}

/* C23. The size that the caller states is looked at only where every call is a miss. */
PUBLIC void free_sized(void *ptr, size_t size);
PUBLIC void free_sized(void *ptr, size_t size)
{
    if (UNLIKELY(!deallocate(ptr, &window_open_granules)))
        free_sized_slow(ptr, size);
}

PUBLIC void free_aligned_sized(void *ptr, size_t alignment, size_t size);
PUBLIC void free_aligned_sized(void *ptr, size_t alignment, size_t size)
{
    (void)alignment;
    if (UNLIKELY(!deallocate(ptr, &window_open_granules)))
        free_sized_slow(ptr, size);
}

/* ---- C++: operators new and delete, but for the aligned forms of new (entry/operator_new.c) ----
 *
 * Base forms hit as malloc and free do. Derived forms have bounds of their own, which stay 0 where
 * a base form is replaced; what they miss they leave to their base form. */

static inline void *new_array_slow(size_t size, const void *caller)
{
    (void)caller; /* new_plain finds the same one: this call is a jump */
    return new_plain(size, 0);
}

#define NEW(name, open, slow)                                                                      \
    void *name(size_t size, size_t alignment)                                                      \
    {                                                                                              \
        (void)alignment;                                                                           \
        return allocate(size, open, slow);                                                         \
    }

OPERATOR new_t new_nothrow __asm__("_ZnwmRKSt9nothrow_t");
OPERATOR new_t new_array_nothrow __asm__("_ZnamRKSt9nothrow_t");
NEW(new_plain, &size_open_granules, new_slow)
NEW(new_array, &size_derived_granules, new_array_slow)
NEW(new_nothrow, &size_derived_granules, new_nothrow_slow)
NEW(new_array_nothrow, &size_derived_granules, new_array_nothrow_slow)

#define DELETE_BASE(name)                                                                          \
    void name(void *ptr, size_t alignment)                                                         \
    {                                                                                              \
        (void)alignment;                                                                           \
        if (UNLIKELY(!deallocate(ptr, &window_open_granules)))                                     \
            free_slow(ptr);                                                                        \
    }

DELETE_BASE(delete_plain)
DELETE_BASE(delete_aligned)

#define DELETE_DERIVED(name, base)                                                                 \
    void name(void *ptr, size_t alignment)                                                         \
    {                                                                                              \
        if (UNLIKELY(!deallocate(ptr, &window_derived_granules)))                                  \
            base(ptr, alignment);                                                                  \
    }

#define DELETE_NOTHROW(name, symbol, base)                                                         \
    OPERATOR delete_t name __asm__(symbol);                                                        \
    DELETE_DERIVED(name, base)

DELETE_DERIVED(delete_array, delete_plain)
DELETE_DERIVED(delete_array_aligned, delete_aligned)
DELETE_NOTHROW(delete_nothrow, "_ZdlPvRKSt9nothrow_t", delete_plain)
DELETE_NOTHROW(delete_array_nothrow, "_ZdaPvRKSt9nothrow_t", delete_array)
DELETE_NOTHROW(delete_aligned_nothrow, "_ZdlPvSt11align_val_tRKSt9nothrow_t", delete_aligned)
DELETE_NOTHROW(delete_array_aligned_nothrow, "_ZdaPvSt11align_val_tRKSt9nothrow_t",
               delete_array_aligned)

#define DELETE_SIZED(name, symbol, base)                                                           \
    OPERATOR void name(void *ptr, size_t size, size_t alignment) __asm__(symbol);                  \
    void name(void *ptr, size_t size, size_t alignment)                                            \
    {                                                                                              \
        if (UNLIKELY(!deallocate(ptr, &window_derived_granules)))                                  \
            delete_sized_slow(ptr, size, alignment, base);                                         \
    }

DELETE_SIZED(delete_sized, "_ZdlPvm", delete_plain)
DELETE_SIZED(delete_array_sized, "_ZdaPvm", delete_array)
DELETE_SIZED(delete_sized_aligned, "_ZdlPvmSt11align_val_t", delete_aligned)
DELETE_SIZED(delete_array_sized_aligned, "_ZdaPvmSt11align_val_t", delete_array_aligned)

OWN(new_plain, "_Znwm");
OWN(new_array, "_Znam");
OWN(delete_plain, "_ZdlPv");
OWN(delete_array, "_ZdaPv");
OWN(delete_aligned, "_ZdlPvSt11align_val_t");
OWN(delete_array_aligned, "_ZdaPvSt11align_val_t");
