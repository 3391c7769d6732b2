/* The aligned forms of operator new, and what all forms do when memory is short: call the
 * new-handler until it gives up, then throw std::bad_alloc.
 *
 * The nothrow forms are the C++ runtime's: by the standard they call the throwing form, ours, and
 * catch what it or the handler throws, which C cannot.
 *
 * Written in C: the C++ runtime is only there if the program brought it, linked (then its two
 * functions are found by the loader, weakly) or later with a plugin (then we look for it).
 * -fexceptions lets the exception pass through these frames. */
#include <dlfcn.h>
#include <stdlib.h>

#include "api/aligned_hit.h"
#include "api/slow.h"
#include "harden/fatal.h"

typedef void (*function_t)(void);
typedef function_t (*get_new_handler_t)(void);

extern function_t linked_get_new_handler(void) __asm__("_ZSt15get_new_handlerv")
    __attribute__((weak));
extern void linked_throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));
extern void *dlopen(const char *file, int flags) __attribute__((weak));
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* A function of a C++ runtime that was loaded after us, whatever its scope; NULL: there is none. */
static void *find_in_runtime(const char *name)
{
    static const char *const runtimes[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};
    void *found = NULL;
    if (dlopen == NULL || dlsym == NULL)
        return NULL;
    for (unsigned index = 0; index < 3 && found == NULL; index++) {
        void *runtime = dlopen(runtimes[index], RTLD_LAZY | RTLD_NOLOAD);
        if (runtime != NULL)
            found = dlsym(runtime, name);
    }
    return found;
}

/* True: the handler may have freed something; try again. It may throw. */
static bool call_new_handler(void)
{
    get_new_handler_t get_new_handler = linked_get_new_handler;
    if (get_new_handler == NULL)
        *(void **)&get_new_handler = find_in_runtime("_ZSt15get_new_handlerv");
    function_t handler = get_new_handler != NULL ? get_new_handler() : NULL;
    if (handler == NULL)
        return false;
    handler();
    return true;
}

static _Noreturn void refuse(void)
{
    function_t throw_bad_alloc = linked_throw_bad_alloc;
    if (throw_bad_alloc == NULL)
        *(void **)&throw_bad_alloc = find_in_runtime("_ZSt17__throw_bad_allocv");
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
    void *block = aligned_hit(alignment, size);
    if (LIKELY(block != NULL))
        return block;
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
