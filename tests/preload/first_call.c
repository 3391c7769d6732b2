/* Calls one exported name of the library as the first thing that a process asks of it:
   first_call CIRCUMSTANCE NAME. Status 0: the call answered sanely and the heap works afterwards;
   78: there is no row for the name. The circumstances:

     first        main calls it before anything else
     preinit      before any constructor has run, in the program's own pre-initialisation
     constructor  in a constructor of the program
     vfork        in the child of a vfork, which then runs another program
     late         in a destructor of thread-specific data, after the allocator's own has run

   Nothing here allocates by itself. */
#include "api/heap.h"
#include "hakmem.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma weak hakmem_owns
#pragma weak hakmem_purge
#pragma weak hakmem_idle
#pragma weak hakmem_check
#pragma weak hakmem_get_statistics
#pragma weak hakmem_option_get
#pragma weak hakmem_profile_start
#pragma weak hakmem_profile_stop
#pragma weak hakmem_profile_write
#pragma weak hakmem_heap_new
#pragma weak hakmem_heap_malloc
#pragma weak hakmem_heap_calloc
#pragma weak hakmem_heap_aligned_alloc
#pragma weak hakmem_heap_of
#pragma weak hakmem_heap_destroy
#pragma weak hakmem_heap_get_statistics
#pragma weak hakmem_malloc_group
#pragma weak hakmem_aligned_alloc_group

enum { NO_ROW = 78 };

static bool is_block(void *block)
{
    if (hidden(block) == NULL) return false;
    memset(block, 1, 10);
    free(hidden(block));
    return true;
}

#define ROW(name, answer)                                                                          \
    static bool call_##name(void) { return answer; }

#define NEW(symbol, ...)                                                                           \
    void *symbol(size_t size, ...) __attribute__((weak));                                          \
    ROW(symbol, is_block(((void *(*)(size_t, size_t))symbol)(100, 64)))

#define DELETE(symbol)                                                                             \
    void symbol(void *ptr, ...) __attribute__((weak));                                             \
    static bool call_##symbol(void)                                                                \
    {                                                                                              \
        void (*delete)(void *, size_t, size_t) = (void (*)(void *, size_t, size_t))symbol;         \
        delete (NULL, 100, 64);                                                                    \
        delete (hidden(malloc(100)), 100, 64);                                                     \
        return true;                                                                               \
    }

static size_t page_aligned;

ROW(malloc, is_block(malloc(100)))
ROW(free, (free(hidden(NULL)), free(hidden(malloc(100))), true))
ROW(calloc, is_block(calloc(10, 10)))
ROW(realloc, is_block(realloc(hidden(NULL), 100)))
ROW(reallocarray, is_block(reallocarray(hidden(NULL), 10, 10)))
ROW(free_sized, (free_sized(hidden(NULL), 0), free_sized(hidden(malloc(100)), 100), true))
ROW(free_aligned_sized, (free_aligned_sized(hidden(NULL), 64, 0),
                         free_aligned_sized(hidden(malloc(100)), 16, 100), true))
ROW(posix_memalign, posix_memalign((void **)&page_aligned, 4096, 100) == 0 &&
                        page_aligned % 4096 == 0 && is_block((void *)page_aligned))
ROW(aligned_alloc, is_block(aligned_alloc(64, 128)))
ROW(memalign, is_block(memalign(64, 100)))
ROW(valloc, is_block(valloc(100)))
ROW(pvalloc, is_block(pvalloc(100)))
ROW(cfree, (cfree(hidden(NULL)), cfree(hidden(malloc(100))), true))
ROW(malloc_usable_size, malloc_usable_size(hidden(NULL)) == 0)
ROW(malloc_trim, malloc_trim(0) <= 1)
ROW(mallopt, mallopt(M_ARENA_MAX, 1) == 1)
ROW(mallinfo, mallinfo().arena >= 0)
ROW(mallinfo2, mallinfo2().uordblks <= mallinfo2().arena)
ROW(malloc_info, malloc_info(0, stdout) == 0)
ROW(malloc_stats, (malloc_stats(), true))
ROW(__libc_malloc, is_block(__libc_malloc(100)))
ROW(__libc_free, (__libc_free(hidden(NULL)), __libc_free(hidden(malloc(100))), true))
ROW(__libc_calloc, is_block(__libc_calloc(10, 10)))
ROW(__libc_realloc, is_block(__libc_realloc(hidden(NULL), 100)))
ROW(__libc_memalign, is_block(__libc_memalign(64, 100)))
ROW(__libc_valloc, is_block(__libc_valloc(100)))
ROW(__libc_pvalloc, is_block(__libc_pvalloc(100)))
ROW(dlopen, dlopen(NULL, RTLD_LAZY) != NULL)
ROW(hakmem_version, strlen(hakmem_version()) > 4)
ROW(hakmem_owns, !hakmem_owns(NULL) && !hakmem_owns(&page_aligned) && !hakmem_owns((void *)-1))
ROW(hakmem_purge, (hakmem_purge(), true))
ROW(hakmem_idle, (hakmem_idle(), true))
ROW(hakmem_check, (hakmem_check(), true))
ROW(hakmem_profile_start, hakmem_profile_start(0) == 0)
ROW(hakmem_profile_stop, (hakmem_profile_stop(), true))
ROW(hakmem_profile_write, hakmem_profile_write("/dev/null") == EINVAL)
ROW(hakmem_heap_new, hakmem_heap_new() != NULL)
ROW(hakmem_heap_malloc, is_block(hakmem_heap_malloc(hakmem_heap_new(), 100)))
ROW(hakmem_heap_calloc, is_block(hakmem_heap_calloc(hakmem_heap_new(), 10, 10)))
ROW(hakmem_heap_aligned_alloc, is_block(hakmem_heap_aligned_alloc(hakmem_heap_new(), 64, 100)))
ROW(hakmem_heap_of, hakmem_heap_of(NULL) == NULL && hakmem_heap_of((void *)-1) == NULL)
ROW(hakmem_heap_get_statistics, !hakmem_heap_get_statistics(NULL, NULL))
ROW(hakmem_heap_destroy, (hakmem_heap_destroy(NULL), true))
ROW(hakmem_malloc_group, is_block(hakmem_malloc_group(1, 100)))
ROW(hakmem_aligned_alloc_group, is_block(hakmem_aligned_alloc_group(2, 64, 100)))

static bool call_hakmem_get_statistics(void)
{
    hakmem_statistics_t statistics;
    return hakmem_get_statistics(&statistics) && statistics.used <= statistics.mapped;
}

static bool call_hakmem_option_get(void)
{
    int64_t value;
    return hakmem_option_get("pool", &value) == 0 && value == 1 &&
           hakmem_option_get("none", &value) == EINVAL;
}

NEW(_Znwm)
NEW(_Znam)
NEW(_ZnwmSt11align_val_t)
NEW(_ZnamSt11align_val_t)
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)

typedef struct row {
    const char *name;
    bool (*call)(void);
} row_t;

#define IN_TABLE(name) {#name, call_##name},

static const row_t rows[] = {
    IN_TABLE(malloc) IN_TABLE(free) IN_TABLE(calloc) IN_TABLE(realloc) IN_TABLE(reallocarray)
    IN_TABLE(free_sized) IN_TABLE(free_aligned_sized) IN_TABLE(posix_memalign)
    IN_TABLE(aligned_alloc) IN_TABLE(memalign) IN_TABLE(valloc) IN_TABLE(pvalloc) IN_TABLE(cfree)
    IN_TABLE(malloc_usable_size) IN_TABLE(malloc_trim) IN_TABLE(mallopt) IN_TABLE(mallinfo)
    IN_TABLE(mallinfo2) IN_TABLE(malloc_info) IN_TABLE(malloc_stats) IN_TABLE(__libc_malloc)
    IN_TABLE(__libc_free) IN_TABLE(__libc_calloc) IN_TABLE(__libc_realloc)
    IN_TABLE(__libc_memalign) IN_TABLE(__libc_valloc) IN_TABLE(__libc_pvalloc) IN_TABLE(dlopen)
    IN_TABLE(hakmem_version) IN_TABLE(hakmem_owns) IN_TABLE(hakmem_purge) IN_TABLE(hakmem_idle)
    IN_TABLE(hakmem_check)
    IN_TABLE(hakmem_profile_start) IN_TABLE(hakmem_profile_stop) IN_TABLE(hakmem_profile_write)
    IN_TABLE(hakmem_heap_new) IN_TABLE(hakmem_heap_malloc) IN_TABLE(hakmem_heap_calloc)
    IN_TABLE(hakmem_heap_aligned_alloc) IN_TABLE(hakmem_heap_of) IN_TABLE(hakmem_heap_destroy)
    IN_TABLE(hakmem_heap_get_statistics)
    IN_TABLE(hakmem_malloc_group) IN_TABLE(hakmem_aligned_alloc_group)
    IN_TABLE(hakmem_get_statistics) IN_TABLE(hakmem_option_get) IN_TABLE(_Znwm) IN_TABLE(_Znam)
    IN_TABLE(_ZnwmSt11align_val_t) IN_TABLE(_ZnamSt11align_val_t) IN_TABLE(_ZdlPv) IN_TABLE(_ZdaPv)
    IN_TABLE(_ZdlPvm) IN_TABLE(_ZdaPvm) IN_TABLE(_ZdlPvSt11align_val_t)
    IN_TABLE(_ZdaPvSt11align_val_t) IN_TABLE(_ZdlPvmSt11align_val_t)
    IN_TABLE(_ZdaPvmSt11align_val_t) IN_TABLE(_ZdlPvRKSt9nothrow_t) IN_TABLE(_ZdaPvRKSt9nothrow_t)
    IN_TABLE(_ZdlPvSt11align_val_tRKSt9nothrow_t) IN_TABLE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
};

static const char *circumstance;
static bool (*wanted)(void);
static int status = 1; /* nobody has called yet */

static void call(const char *now)
{
    if (strcmp(now, circumstance) == 0) status = wanted() ? 0 : 2;
}

/* Before everything else: finds the row. */
static void preinit(int argc, char **argv, char **environment)
{
    (void)environment;
    circumstance = argc == 3 ? argv[1] : "";
    for (size_t i = 0; argc == 3 && i < sizeof rows / sizeof rows[0]; i++)
        if (strcmp(rows[i].name, argv[2]) == 0) wanted = rows[i].call;
    if (wanted == NULL) _exit(NO_ROW);
    call("preinit");
}

__attribute__((section(".preinit_array"), used)) static void (*const run_first)(int, char **,
                                                                                char **) = preinit;

__attribute__((constructor)) static void construct(void)
{
    call("constructor");
}

static void call_in_vfork(const char *program)
{
    const pid_t child = vfork();
    if (child == 0) {
        call("vfork");
        execl(program, program, "first", "malloc", NULL);
        _exit(3);
    }
    int ended = 0;
    if (waitpid(child, &ended, 0) != child || ended != 0) status = 4;
}

/* Destructors run in the order of their keys, again while values are set: in the second round the
   allocator's own, whose key is older or younger, has had its turn. */
static pthread_key_t key;

static void destroy(void *round)
{
    if ((uintptr_t)round < 3)
        pthread_setspecific(key, (void *)((uintptr_t)round + 1));
    else
        call("late");
}

static void *end_late(void *unused)
{
    free(hidden(malloc(100))); /* the thread has a cache, which is taken away */
    pthread_setspecific(key, (void *)1);
    return unused;
}

static void call_late(void)
{
    pthread_t thread;
    if (pthread_key_create(&key, destroy) != 0 ||
        pthread_create(&thread, NULL, end_late, NULL) != 0 || pthread_join(thread, NULL) != 0)
        status = 5;
}

int main(int argc, char **argv)
{
    (void)argc;
    call("first");
    if (strcmp(circumstance, "vfork") == 0) call_in_vfork(argv[0]);
    if (strcmp(circumstance, "late") == 0) call_late();
    for (size_t size = 1; size < 10000000 && status == 0; size *= 3)
        if (!is_block(calloc(1, size + 10)) || !is_block(memalign(64, size + 10))) status = 6;
    return status;
}
