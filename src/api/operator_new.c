/* The aligned forms of operator new, and what all forms do when memory is short: call the
 * new-handler until it gives up, then throw std::bad_alloc.
 *
 * The nothrow forms are the C++ runtime's: by the standard they call the throwing form, ours, and
 * catch what it or the handler throws, which C cannot.
 *
 * Written in C: the C++ runtime is only there if the program brought it, so its two functions are
 * weak; -fexceptions lets the exception pass through these frames. */
#include <stdlib.h>

#include "api/slow.h"
#include "harden/fatal.h"

typedef void (*new_handler_t)(void);

/* std::get_new_handler() and std::__throw_bad_alloc() */
extern new_handler_t get_new_handler(void) __asm__("_ZSt15get_new_handlerv") __attribute__((weak));
extern void throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));

/* True: the handler may have freed something; try again. It may throw. */
static bool call_new_handler(void)
{
    new_handler_t handler = get_new_handler != NULL ? get_new_handler() : NULL;
    if (handler == NULL)
        return false;
    handler();
    return true;
}

static _Noreturn void refuse(void)
{
    if (throw_bad_alloc != NULL)
        throw_bad_alloc();
    fatal("operator new: out of memory, and no C++ runtime to say so");
}

COLD void *new_slow(size_t size)
{
    void *block;
    while ((block = malloc(size)) == NULL)
        if (!call_new_handler())
            refuse();
    return block;
}

static void *new_aligned(size_t size, size_t alignment)
{
    void *block;
    while ((block = allocate_aligned(alignment, size)) == NULL)
        if (!call_new_handler())
            refuse();
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
