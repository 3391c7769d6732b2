/* The aligned forms of operator new, and what all forms do when memory is short: call the
 * new-handler until it gives up, then throw std::bad_alloc.
 *
 * The nothrow forms are the C++ runtime's: by the standard they call the throwing form, ours, and
 * catch what it or the handler throws, which C cannot.
 *
 * Written in C: cxx_runtime.c asks the C++ runtime, if there is one, and -fexceptions lets its
 * exceptions pass through these frames. */
#include <stdlib.h>

#include "api/aligned_hit.h"
#include "api/cxx_runtime.h"
#include "api/slow.h"

NOINLINE void *new_slow(size_t size, const void *caller)
{
    void *block;
    while ((block = malloc_slow(size, caller)) == NULL)
        if (!cxx_call_new_handler())
            cxx_throw_bad_alloc();
    return block;
}

static void *new_aligned(size_t size, size_t alignment)
{
    void *block = aligned_hit(alignment, size);
    if (LIKELY(block != NULL))
        return block;
    while ((block = allocate_aligned(alignment, size)) == NULL)
        if (!cxx_call_new_handler())
            cxx_throw_bad_alloc();
    return block;
}

#define NEW_ALIGNED(name, symbol)                                                                  \
    PUBLIC void *name(size_t size, size_t alignment) __asm__(symbol);                              \
    PUBLIC void *name(size_t size, size_t alignment)                                               \
    {                                                                                              \
        return new_aligned(size, alignment);                                                       \
    }

NEW_ALIGNED(new_plain_aligned, "_ZnwmSt11align_val_t")
NEW_ALIGNED(new_array_aligned, "_ZnamSt11align_val_t")
