/* RTLD_DEEPBIND: a library opened with it (PHP opens its extensions so) binds free to the C library
 * and gets blocks from us through other libraries: a crash, under every allocator that replaces
 * malloc. This file stands in front of dlopen and takes the flag away; with one malloc in the
 * process, one set of functions is what the library wants anyway. HAKMEM_DEEPBIND=1 leaves the flag
 * alone.
 *
 * Only in the shared library. The call must be a jump: dlopen looks for libraries on behalf of the
 * code that its return address lies in, and that must not become us. */
#include <dlfcn.h>

#include "entry/init.h"
#include "options/options.h"

typedef void *(*dlopen_t)(const char *file, int flags);

static dlopen_t next_dlopen(void)
{
    static dlopen_t next;
    /* relaxed: a thread that finds it unset looks it up too, and finds the same */
    dlopen_t found = __atomic_load_n(&next, __ATOMIC_RELAXED);
    if (found == NULL) {
        *(void **)&found = dlsym(RTLD_NEXT, "dlopen");
        __atomic_store_n(&next, found, __ATOMIC_RELAXED);
    }
    return found;
}

/* In builds without optimisation too. */
__attribute__((optimize("optimize-sibling-calls"))) PUBLIC void *dlopen(const char *file, int flags)
{
    (void)ensure_init();
    dlopen_t next = next_dlopen();
    if (!options.deepbind)
        flags &= ~RTLD_DEEPBIND;
    return next(file, flags);
}
