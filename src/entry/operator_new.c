/* The aligned forms of operator new; what all forms do when memory is short: call the new-handler
 * until it gives up, then throw std::bad_alloc.
 *
 * By the standard a nothrow form calls the throwing one and catches what that or the handler
 * throws. C cannot catch. Hence the nothrow form of the C++ runtime is called where a block is not
 * to be had at once. An archive shows none of ours, so that a static program gets the runtime's.
 *
 * Written in C: cxx_runtime.c asks the C++ runtime, if there is one, and -fexceptions lets its
 * exceptions pass through these frames. */
#include "entry/aligned_hit.h"
#include "entry/counted_hit.h"
#include "os/cxx_runtime.h"
#include "entry/init.h"
#include "entry/operators.h"
#include "entry/slow.h"

/* ---- the throwing forms ---- */

static NOINLINE void *new_missed(size_t size, const void *caller, const char *stack)
{
    void *block;
    while ((block = malloc_slow_from(size, caller, stack)) == NULL)
        if (!cxx_call_new_handler())
            cxx_throw_bad_alloc();
    return block;
}

NOINLINE void *new_slow(size_t size, const void *caller)
{
    void *block = counted_hit(size);
    return LIKELY(block != NULL) ? block : new_missed(size, caller, STACK_OF_CALLER);
}

void *new_aligned(size_t size, size_t alignment)
{
    void *block = aligned_hit(alignment, size, size_open_granules);
    if (LIKELY(block != NULL))
        return block;
    while ((block = allocate_aligned(alignment, size)) == NULL)
        if (!cxx_call_new_handler())
            cxx_throw_bad_alloc();
    return block;
}

void *new_array_aligned(size_t size, size_t alignment)
{
    void *block = aligned_hit(alignment, size, size_derived_granules);
    return LIKELY(block != NULL) ? block : new_aligned(size, alignment);
}

OWN(new_aligned, "_ZnwmSt11align_val_t");
OWN(new_array_aligned, "_ZnamSt11align_val_t");

/* ---- the nothrow forms ---- */

/* The runtime's form calls the throwing one as it is bound. Without a runtime there is no handler
 * to call. A program that hides its runtime (-static-libstdc++) gets what its own form throws. */
static void *or_by_runtime(void *block, nothrow_form_t form, size_t size, size_t alignment)
{
    if (LIKELY(block != NULL))
        return block;
    nothrow_t *of_runtime = operators_find_nothrow(form);
    if (of_runtime != NULL)
        return of_runtime(size, alignment, "");
    return operators_are_replaced ? operators_nothrow_bases[form](size, alignment) : NULL;
}

/* Is a block of ours what the throwing form would give? */
static bool is_ours(void)
{
    return ensure_init() && !operators_are_replaced;
}

NOINLINE void *new_nothrow_slow(size_t size, const void *caller)
{
    void *block = is_ours() ? malloc_slow_from(size, caller, STACK_OF_CALLER) : NULL;
    return or_by_runtime(block, NOTHROW, size, 0);
}

NOINLINE void *new_array_nothrow_slow(size_t size, const void *caller)
{
    void *block = is_ours() ? malloc_slow_from(size, caller, STACK_OF_CALLER) : NULL;
    return or_by_runtime(block, NOTHROW_ARRAY, size, 0);
}

static inline void *new_aligned_nothrow_as(nothrow_form_t form, size_t size, size_t alignment)
{
    void *block = aligned_hit(alignment, size, size_derived_granules);
    if (LIKELY(block != NULL))
        return block;
    return or_by_runtime(is_ours() ? allocate_aligned(alignment, size) : NULL, form, size,
                         alignment);
}

OPERATOR new_t new_aligned_nothrow __asm__("_ZnwmSt11align_val_tRKSt9nothrow_t");
void *new_aligned_nothrow(size_t size, size_t alignment)
{
    return new_aligned_nothrow_as(NOTHROW_ALIGNED, size, alignment);
}

OPERATOR new_t new_array_aligned_nothrow __asm__("_ZnamSt11align_val_tRKSt9nothrow_t");
void *new_array_aligned_nothrow(size_t size, size_t alignment)
{
    return new_aligned_nothrow_as(NOTHROW_ARRAY_ALIGNED, size, alignment);
}
