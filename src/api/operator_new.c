/* The aligned forms of operator new; what all forms do when memory is short: call the new-handler
 * until it gives up, then throw std::bad_alloc; and which operators are ours (operators.h).
 *
 * By the standard a nothrow form calls the throwing one and catches what that or the handler
 * throws. C cannot catch. So where a block is not to be had at once, the nothrow form of the C++
 * runtime is called. An archive shows none of ours, so that a static program gets the runtime's.
 *
 * Written in C: cxx_runtime.c asks the C++ runtime, if there is one, and -fexceptions lets its
 * exceptions pass through these frames. */
#include <stdlib.h>

#include "api/aligned_hit.h"
#include "api/cxx_runtime.h"
#include "api/init.h"
#include "api/operators.h"
#include "api/slow.h"
#include "base/config.h"

/* ---- the throwing forms ---- */

NOINLINE void *new_slow(size_t size, const void *caller)
{
    void *block;
    while ((block = malloc_slow(size, caller)) == NULL)
        if (!cxx_call_new_handler())
            cxx_throw_bad_alloc();
    return block;
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

typedef void *nothrow_t(size_t size, size_t alignment, const void *tag);

typedef struct nothrow_form {
    new_t *base;
    const char *symbol;
    nothrow_t *of_runtime; /* NULL: not looked for yet, or there is no C++ runtime */
} nothrow_form_t;

static nothrow_form_t nothrow = {new_plain, "_ZnwmRKSt9nothrow_t", NULL};
static nothrow_form_t array_nothrow = {new_array, "_ZnamRKSt9nothrow_t", NULL};
static nothrow_form_t aligned_nothrow = {new_aligned, "_ZnwmSt11align_val_tRKSt9nothrow_t", NULL};
static nothrow_form_t array_aligned_nothrow = {new_array_aligned,
                                               "_ZnamSt11align_val_tRKSt9nothrow_t", NULL};

static nothrow_t *find_nothrow(nothrow_form_t *form)
{
    /* relaxed: a thread that finds it unset looks it up too, and finds the same */
    nothrow_t *found = __atomic_load_n(&form->of_runtime, __ATOMIC_RELAXED);
    if (found == NULL) {
        *(void **)&found = cxx_find(form->symbol);
        __atomic_store_n(&form->of_runtime, found, __ATOMIC_RELAXED);
    }
    return found;
}

/* The runtime's form calls the throwing one as it is bound. Without a runtime there is no handler
 * to call. A program that hides its runtime (-static-libstdc++) gets what its own form throws. */
static void *or_by_runtime(void *block, nothrow_form_t *form, size_t size, size_t alignment)
{
    if (LIKELY(block != NULL))
        return block;
    nothrow_t *of_runtime = find_nothrow(form);
    if (of_runtime != NULL)
        return of_runtime(size, alignment, form);
    return operators_are_replaced ? form->base(size, alignment) : NULL;
}

/* Is a block of ours what the throwing form would give? */
static bool is_ours(void)
{
    return ensure_init() && !operators_are_replaced;
}

NOINLINE void *new_nothrow_slow(size_t size, const void *caller)
{
    return or_by_runtime(is_ours() ? malloc_slow(size, caller) : NULL, &nothrow, size, 0);
}

NOINLINE void *new_array_nothrow_slow(size_t size, const void *caller)
{
    return or_by_runtime(is_ours() ? malloc_slow(size, caller) : NULL, &array_nothrow, size, 0);
}

static inline void *new_aligned_nothrow_as(nothrow_form_t *form, size_t size, size_t alignment)
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
    return new_aligned_nothrow_as(&aligned_nothrow, size, alignment);
}

OPERATOR new_t new_array_aligned_nothrow __asm__("_ZnamSt11align_val_tRKSt9nothrow_t");
void *new_array_aligned_nothrow(size_t size, size_t alignment)
{
    return new_aligned_nothrow_as(&array_aligned_nothrow, size, alignment);
}

/* ---- which operators are ours ---- */

typedef void (*function_t)(void);
#define BASE_FORM(name) {(function_t)(name), (function_t)own_##name}

/* `bound` is what the linker makes of the public name, here as in the program. */
static const struct {
    function_t bound, own;
} base_forms[] = {
    BASE_FORM(new_plain),         BASE_FORM(new_array),
    BASE_FORM(new_aligned),       BASE_FORM(new_array_aligned),
    BASE_FORM(delete_plain),      BASE_FORM(delete_array),
    BASE_FORM(delete_aligned),    BASE_FORM(delete_array_aligned),
};

void operators_look(void)
{
    for (unsigned index = 0; index < sizeof(base_forms) / sizeof(base_forms[0]); index++)
        if (base_forms[index].bound != base_forms[index].own)
            operators_are_replaced = true;
}

/* Looked up later, in a call, they would take the lock of a thread that is loading a library; and
 * the constructor of that library may be waiting for the calling thread. */
void operators_at_load(void)
{
    operators_look();
    if (!operators_are_replaced || !config_shared)
        return;
    (void)find_nothrow(&nothrow);
    (void)find_nothrow(&array_nothrow);
    (void)find_nothrow(&aligned_nothrow);
    (void)find_nothrow(&array_aligned_nothrow);
}
