/* What tools do that are preloaded beside us: they replace mmap and its kin and getenv, look up the
   real ones by dlsym at the first call, and allocate while doing so. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>

static void *next(const char *name)
{
    free(malloc(100));
    return dlsym(RTLD_NEXT, name);
}

void *mmap(void *hint, size_t size, int protection, int flags, int file, off_t offset)
{
    void *(*real)(void *, size_t, int, int, int, off_t) = next("mmap");
    return real(hint, size, protection, flags, file, offset);
}

int munmap(void *start, size_t size)
{
    int (*real)(void *, size_t) = next("munmap");
    return real(start, size);
}

int madvise(void *start, size_t size, int advice)
{
    int (*real)(void *, size_t, int) = next("madvise");
    return real(start, size, advice);
}

char *getenv(const char *name)
{
    char *(*real)(const char *) = next("getenv");
    return real(name);
}
