/* Calls one exported name of the library as the first thing that is asked of it:
   first_call CIRCUMSTANCE NAME [SIZE]. Status 0: the call answered sanely and the heap works
   afterwards; 78: there is no row for the name. "first_call rows" prints the names that have one.
   SIZE is what is asked for, where the name takes a size. The circumstances:

     first        main calls it before anything else
     preinit      before any constructor has run, in the program's own pre-initialisation
     constructor  in a constructor of the program
     thread       in a thread, before anything else
     fork         in the child of a fork, before anything else
     clone        in the child of clone(2), behind the C library's back, before anything else
     used_fork    in the child of a fork, of a program that has used its heap and has two threads
     used_clone   in the child of clone(2) of such a program
     vfork        in the child of a vfork, which then runs another program
     refused      as preinit, while the kernel gives no memory; any answer will do
     late         in a destructor of thread-specific data, after the allocator's own has run

   Nothing here allocates by itself. */
#include "api/heap.h"
#include "weak.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NO_ROW = 78 };

static size_t size = 100;

/* What answers a request for `length` bytes. No address space has room for more than half of it. */
static bool answers(void *block, size_t length)
{
    if (length > PTRDIFF_MAX || hidden(block) == NULL)
        return hidden(block) == NULL && length > PTRDIFF_MAX && errno == ENOMEM;
    memset(block, 1, length < 10 ? length : 10);
    free(hidden(block));
    return true;
}

static bool is_block(void *block)
{
    return answers(block, size);
}

typedef struct row {
    const char *name;
    bool (*call)(void);
} row_t;

extern const row_t __start_rows[], __stop_rows[]; /* by the linker: the bounds of the section */

#define IN_TABLE(name, function)                                                                   \
    static bool function(void);                                                                    \
    __attribute__((section("rows"), used)) static const row_t row_of_##function = {name, function};

#define ROW(name, answer)                                                                          \
    IN_TABLE(#name, call_##name)                                                                   \
    static bool call_##name(void) { return answer; }

#define NEW(symbol)                                                                                \
    void *symbol(size_t length, ...) __attribute__((weak));                                        \
    ROW(symbol, is_block(((void *(*)(size_t, size_t, size_t))symbol)(size, 64, 64)))

#define DELETE(symbol)                                                                             \
    void symbol(void *ptr, ...) __attribute__((weak));                                             \
    IN_TABLE(#symbol, call_##symbol)                                                               \
    static bool call_##symbol(void)                                                                \
    {                                                                                              \
        void (*delete)(void *, size_t, size_t) = (void (*)(void *, size_t, size_t))symbol;         \
        delete (NULL, 100, 64);                                                                    \
        delete (hidden(malloc(100)), 100, 64);                                                     \
        return true;                                                                               \
    }

static size_t page_aligned;

ROW(malloc, is_block(malloc(size)))
ROW(free, (free(hidden(NULL)), free(hidden(malloc(100))), true))
ROW(calloc, is_block(calloc(1, size)))
ROW(realloc, is_block(realloc(hidden(NULL), size)))
ROW(reallocarray, is_block(reallocarray(hidden(NULL), 1, size)))
ROW(free_sized, (free_sized(hidden(NULL), 0), free_sized(hidden(malloc(100)), 100), true))
ROW(free_aligned_sized, (free_aligned_sized(hidden(NULL), 64, 0),
                         free_aligned_sized(hidden(malloc(100)), 16, 100), true))
ROW(posix_memalign, (errno = posix_memalign((void **)&page_aligned, 4096, size),
                     page_aligned % 4096 == 0 && is_block((void *)page_aligned)))
ROW(aligned_alloc, is_block(aligned_alloc(64, size)))
ROW(memalign, is_block(memalign(64, size)))
ROW(valloc, is_block(valloc(size)))
ROW(pvalloc, is_block(pvalloc(size)))
ROW(cfree, (cfree(hidden(NULL)), cfree(hidden(malloc(100))), true))
ROW(malloc_usable_size, malloc_usable_size(hidden(NULL)) == 0)
ROW(malloc_trim, malloc_trim(0) <= 1)
ROW(mallopt, mallopt(M_ARENA_MAX, 1) == 1)
ROW(mallinfo, mallinfo().arena >= 0)
ROW(mallinfo2, mallinfo2().uordblks <= mallinfo2().arena)
ROW(malloc_info, malloc_info(0, stdout) == 0)
ROW(malloc_stats, (malloc_stats(), true))
ROW(__libc_malloc, is_block(__libc_malloc(size)))
ROW(__libc_free, (__libc_free(hidden(NULL)), __libc_free(hidden(malloc(100))), true))
ROW(__libc_calloc, is_block(__libc_calloc(1, size)))
ROW(__libc_realloc, is_block(__libc_realloc(hidden(NULL), size)))
ROW(__libc_memalign, is_block(__libc_memalign(64, size)))
ROW(__libc_valloc, is_block(__libc_valloc(size)))
ROW(__libc_pvalloc, is_block(__libc_pvalloc(size)))
ROW(dlopen, dlopen(NULL, RTLD_LAZY) != NULL)
ROW(hakmem_version, strlen(hakmem_version()) > 4)
ROW(hakmem_owns, !hakmem_owns(NULL) && !hakmem_owns(&page_aligned) && !hakmem_owns((void *)-1))
ROW(hakmem_purge, (hakmem_purge(), true))
ROW(hakmem_idle, (hakmem_idle(), true))
ROW(hakmem_check, (hakmem_check(), true))
ROW(hakmem_profile_start, hakmem_profile_start(0) % ENOTSUP == 0) /* which LD_SAFE makes it */
ROW(hakmem_profile_stop, (hakmem_profile_stop(), true))
ROW(hakmem_profile_write, hakmem_profile_write("/dev/null") % EINVAL == 0) /* where none is on */
ROW(hakmem_heap_new, hakmem_heap_new() != NULL)
ROW(hakmem_heap_malloc, is_block(hakmem_heap_malloc(NULL, size)) &&
                            is_block(hakmem_heap_malloc(hakmem_heap_new(), size)))
ROW(hakmem_heap_calloc, is_block(hakmem_heap_calloc(NULL, 1, size)) &&
                            is_block(hakmem_heap_calloc(hakmem_heap_new(), 1, size)))
ROW(hakmem_heap_aligned_alloc, is_block(hakmem_heap_aligned_alloc(NULL, 64, size)) &&
                                   is_block(hakmem_heap_aligned_alloc(hakmem_heap_new(), 64, size)))
ROW(hakmem_heap_of, hakmem_heap_of(NULL) == NULL && hakmem_heap_of((void *)-1) == NULL)
ROW(hakmem_heap_get_statistics, !hakmem_heap_get_statistics(NULL, NULL))
ROW(hakmem_heap_destroy, (hakmem_heap_destroy(NULL), true))
ROW(hakmem_malloc_group, is_block(hakmem_malloc_group(1, size)))
ROW(hakmem_aligned_alloc_group, is_block(hakmem_aligned_alloc_group(2, 64, size)))

IN_TABLE("hakmem_get_statistics", call_hakmem_get_statistics)
static bool call_hakmem_get_statistics(void)
{
    hakmem_statistics_t statistics;
    return hakmem_get_statistics(&statistics) && statistics.used <= statistics.mapped;
}

IN_TABLE("hakmem_option_get", call_hakmem_option_get)
static bool call_hakmem_option_get(void)
{
    int64_t value;
    return hakmem_option_get("junk", &value) == 0 && value >> 1 == 0 &&
           hakmem_option_get("none", &value) == EINVAL;
}

NEW(_Znwm)
NEW(_Znam)
NEW(_ZnwmSt11align_val_t)
NEW(_ZnamSt11align_val_t)
NEW(_ZnwmRKSt9nothrow_t)
NEW(_ZnamRKSt9nothrow_t)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t)
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

static const char *circumstance;
static bool (*wanted)(void);
static int status = 1; /* nobody has called yet */

static void call(const char *now)
{
    if (strcmp(now, circumstance) == 0) status = wanted() ? 0 : 2;
}

static void call_refused(void)
{
    struct rlimit usual, nothing;
    getrlimit(RLIMIT_AS, &usual);
    nothing = usual;
    nothing.rlim_cur = 1;
    setrlimit(RLIMIT_AS, &nothing);
    wanted();
    setrlimit(RLIMIT_AS, &usual);
    status = 0;
}

/* Before everything else: finds the row. */
static void preinit(int argc, char **argv, char **environment)
{
    (void)environment;
    circumstance = argc > 1 ? argv[1] : "";
    if (argc > 3) size = strtoul(argv[3], NULL, 10);
    for (const row_t *row = __start_rows; argc > 2 && row < __stop_rows; row++)
        if (strcmp(row->name, argv[2]) == 0) wanted = row->call;
    if (wanted == NULL && strcmp(circumstance, "rows") != 0) _exit(NO_ROW);
    call("preinit");
    if (strcmp(circumstance, "refused") == 0) call_refused();
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

static void *call_in_thread(void *unused)
{
    call("thread");
    return unused;
}

static void *wait_for_ever(void *unused)
{
    free(hidden(malloc(100)));
    if (write(*(const int *)unused, "", 1) == 1)
        for (;;) pause();
    return unused;
}

/* Blocks of some sizes are in use, others were freed, and another thread has a cache. */
static void use_heap(void)
{
    int ends[2];
    pthread_t thread;
    char byte;
    for (size_t length = 1; length < 1000000; length *= 3)
        if (hidden(malloc(length)) == NULL || !answers(malloc(length), length)) status = 7;
    if (pipe(ends) != 0 || pthread_create(&thread, NULL, wait_for_ever, &ends[1]) != 0 ||
        read(ends[0], &byte, 1) != 1)
        status = 8;
}

static bool heap_works(void)
{
    for (size_t length = 1; length < 10000000; length *= 3)
        if (!answers(calloc(1, length), length) || !answers(memalign(64, length), length))
            return false;
    return true;
}

/* `child` is 0 in the child. */
static void call_in_child(const char *now, pid_t child)
{
    int ended = 0;
    if (child == 0) {
        alarm(60);
        call(now);
        _exit(status != 0 || heap_works() ? status : 9);
    }
    status = waitpid(child, &ended, 0) == child ? ended : 10;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    for (const row_t *row = __start_rows; argc == 2 && row < __stop_rows; row++) puts(row->name);
    if (argc == 2) return 0;
    call("first");
    if (strncmp(circumstance, "used_", 5) == 0) use_heap();
    if (strcmp(circumstance, "thread") == 0)
        if (pthread_create(&thread, NULL, call_in_thread, NULL) != 0 ||
            pthread_join(thread, NULL) != 0)
            status = 11;
    if (strstr(circumstance, "fork") != NULL && circumstance[0] != 'v')
        call_in_child(circumstance, fork());
    if (strstr(circumstance, "clone") != NULL)
        call_in_child(circumstance, (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    if (strcmp(circumstance, "vfork") == 0) call_in_vfork(argv[0]);
    if (strcmp(circumstance, "late") == 0) call_late();
    if (status == 0 && !heap_works()) status = 6;
    return status > 255 ? 12 : status;
}
