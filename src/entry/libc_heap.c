/* The C library's own heap. See libc_heap.h. Looked up at the first need, not at the start. */
#include "entry/libc_heap.h"

#include <dlfcn.h>
#include <errno.h>
#include <unistd.h>

#include "base/bits.h"
#include "os/os.h"
#include "options/options.h"

/* Weak: a fully static program has one heap, ours, and need not link the dynamic loader. */
extern void *dlsym(void *handle, const char *name) __attribute__((weak));

/* struct mallinfo2 of glibc. Other C libraries have neither the type nor the function. */
typedef struct libc_usage {
    size_t arena;
    size_t ordblks;
    size_t smblks;
    size_t hblks;
    size_t others[6];
} libc_usage_t;

typedef struct libc_heap {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *ptr, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    size_t (*usable_size)(void *ptr);
    void (*free)(void *ptr);
    libc_usage_t (*usage)(void);
} libc_heap_t;

static struct {
    libc_heap_t found; /* whole, once `is_complete`; several threads may store the same values */
    bool is_complete;
} libc_heap_state;
static _Thread_local bool libc_heap_is_looking;

static const libc_heap_t *libc_heap(void)
{
    /* acquire: pairs with the release below */
    if (__atomic_load_n(&libc_heap_state.is_complete, __ATOMIC_ACQUIRE))
        return &libc_heap_state.found;
    if (dlsym == NULL || libc_heap_is_looking)
        return NULL;
    libc_heap_is_looking = true;
    /* Several threads may do this at once; they store the same values. */
    *(void **)&libc_heap_state.found.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&libc_heap_state.found.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&libc_heap_state.found.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&libc_heap_state.found.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&libc_heap_state.found.usable_size = dlsym(RTLD_NEXT, "malloc_usable_size");
    *(void **)&libc_heap_state.found.usage = dlsym(RTLD_NEXT, "mallinfo2");
    *(void **)&libc_heap_state.found.free = dlsym(RTLD_NEXT, "free");
    libc_heap_is_looking = false;
    if (libc_heap_state.found.malloc == NULL || libc_heap_state.found.calloc == NULL ||
        libc_heap_state.found.realloc == NULL || libc_heap_state.found.memalign == NULL ||
        libc_heap_state.found.usable_size == NULL || libc_heap_state.found.free == NULL)
        return NULL;
    __atomic_store_n(&libc_heap_state.is_complete, true, __ATOMIC_RELEASE);
    return &libc_heap_state.found;
}

bool libc_heap_serves(void)
{
    return options.ld_safe && libc_heap() != NULL;
}

/* The word in front of a block of glibc's heap: its size and three flags. */
static size_t chunk_word(const void *ptr)
{
    return ((const size_t *)ptr)[-1];
}

bool libc_heap_owns(const void *ptr)
{
    enum { IS_MMAPPED = 2, NON_MAIN_ARENA = 4 };
    if (options.ld_safe)
        return true;
    if (libc_heap() == NULL || libc_heap_state.found.usage == NULL ||
        !is_aligned(ptr, BLOCK_ALIGNMENT))
        return false;
    libc_usage_t info = libc_heap_state.found.usage();
    if (info.arena == 0 && info.hblks == 0) /* nobody has used it */
        return false;
    uintptr_t address = (uintptr_t)ptr;
    uintptr_t heap_end = (uintptr_t)sbrk(0);
    if (address < heap_end && heap_end - address <= info.arena)
        return true;
    if (!os_is_readable((const char *)ptr - BLOCK_ALIGNMENT))
        return false;
    /* A block with a mapping of its own begins 16 bytes into its first page. */
    if (info.hblks != 0 && (address & (os_page_size() - 1)) == BLOCK_ALIGNMENT)
        return (chunk_word(ptr) & IS_MMAPPED) != 0;
    /* The heaps of threads are 64 MiB, aligned, and begin with a pointer to their arena. */
    const uintptr_t *thread_heap = (const uintptr_t *)align_down(address, 64 * MIB);
    return (chunk_word(ptr) & NON_MAIN_ARENA) != 0 && os_is_readable(thread_heap) &&
           *thread_heap != 0 && is_aligned((const void *)*thread_heap, BLOCK_ALIGNMENT) &&
           os_is_readable((const void *)*thread_heap);
}

void *libc_heap_malloc(size_t size)
{
    return libc_heap()->malloc(size);
}

void *libc_heap_calloc(size_t count, size_t size)
{
    return libc_heap()->calloc(count, size);
}

void *libc_heap_realloc(void *ptr, size_t size)
{
    return libc_heap()->realloc(ptr, size);
}

void *libc_heap_memalign(size_t alignment, size_t size)
{
    return libc_heap()->memalign(alignment, size);
}

size_t libc_heap_usable_size(void *ptr)
{
    return libc_heap()->usable_size(ptr);
}

void libc_heap_free(void *ptr)
{
    const libc_heap_t *libc = libc_heap();
    int saved_errno = errno; /* free of glibc before 2.33 changes it */
    if (libc != NULL)        /* else: freed while looking up the functions; a few bytes at most */
        libc->free(ptr);
    errno = saved_errno;
}
