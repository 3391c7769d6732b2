/* The C++ runtime. See cxx_runtime.h. Its functions are found by the loader, weakly, if the program
 * is linked to it; if it came later, with a plugin, we look for it. -fexceptions lets its
 * exceptions pass through these frames. */
#include "os/cxx_runtime.h"

#include <dlfcn.h>

#include "os/fatal.h"

typedef void (*function_t)(void);
typedef function_t (*get_new_handler_t)(void);
typedef void *(*dlopen_t)(const char *file, int flags);

extern function_t linked_get_new_handler(void) __asm__("_ZSt15get_new_handlerv")
    __attribute__((weak));
extern void linked_throw_bad_alloc(void) __asm__("_ZSt17__throw_bad_allocv") __attribute__((weak));
extern void linked_freeres(void) __asm__("_ZN9__gnu_cxx9__freeresEv") __attribute__((weak));
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

static const char *const cxx_runtimes[] = {"libstdc++.so.6", "libc++.so.1", "libc++abi.so.1"};

/* The loader is asked for dlopen: the linker warns of each static program that names it. */
static void *cxx_find_in(const char *runtime, const char *name)
{
    dlopen_t open = NULL;
    if (dlsym != NULL)
        *(void **)&open = dlsym(RTLD_DEFAULT, "dlopen");
    void *handle = open != NULL ? open(runtime, RTLD_LAZY | RTLD_NOLOAD) : NULL;
    return handle != NULL ? dlsym(handle, name) : NULL;
}

void *cxx_find(const char *name)
{
    void *found = NULL;
    for (unsigned index = 0; index < 3 && found == NULL; index++)
        found = cxx_find_in(cxx_runtimes[index], name);
    return found;
}

void *cxx_find_at_load(const char *name)
{
    return dlsym != NULL ? dlsym(RTLD_NEXT, name) : NULL;
}

bool cxx_call_new_handler(void)
{
    get_new_handler_t get_new_handler = linked_get_new_handler;
    if (get_new_handler == NULL)
        *(void **)&get_new_handler = cxx_find("_ZSt15get_new_handlerv");
    function_t handler = get_new_handler != NULL ? get_new_handler() : NULL;
    if (handler == NULL)
        return false;
    handler();
    return true;
}

_Noreturn void cxx_throw_bad_alloc(void)
{
    function_t throw_bad_alloc = linked_throw_bad_alloc;
    if (throw_bad_alloc == NULL)
        *(void **)&throw_bad_alloc = cxx_find("_ZSt17__throw_bad_allocv");
    if (throw_bad_alloc != NULL)
        throw_bad_alloc();
    fatal("operator new: out of memory, and no C++ runtime to say so");
}

/* libstdc++ alone has such a function; libc++ keeps its pool in static memory. */
void cxx_free_pool(void)
{
    function_t freeres = linked_freeres;
    if (freeres == NULL)
        *(void **)&freeres = cxx_find_in("libstdc++.so.6", "_ZN9__gnu_cxx9__freeresEv");
    if (freeres != NULL)
        freeres();
}
