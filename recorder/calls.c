/* The recorder: preloaded in front of an allocator, it writes down every call of malloc and its
 * family. See recorder.h. Any allocator may stand behind it. */
#include "recorder.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EARLY_BYTES = 1 << 16, WORD = 16 };

/* The functions behind ours; `malloc` is set last. */
static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void *(*valloc)(size_t);  /* NULL: there is none */
    void *(*pvalloc)(size_t); /* likewise */
    size_t (*usable)(void *);
} next;

/* For what dlsym allocates before these are known. */
static char early[EARLY_BYTES];
static size_t early_used;

/* The thread is in one of our functions: what is called meanwhile is not recorded. */
static OWN bool is_inside;
static OWN bool was_inside_at_fork;
static OWN const void *last_noted; /* since an operator new was called */

static void *find(const char *name)
{
    return dlsym(RTLD_NEXT, name);
}

static void *must_find(const char *name)
{
    void *found = find(name);
    if (found == NULL)
        abort();
    return found;
}

/* The functions behind ours, at the first call, which comes before our constructor. */
static void find_next(void)
{
    if (__atomic_load_n(&next.malloc, __ATOMIC_ACQUIRE) != NULL || is_inside)
        return;
    is_inside = true;
    *(void **)&next.calloc = must_find("calloc");
    *(void **)&next.realloc = must_find("realloc");
    *(void **)&next.free = must_find("free");
    *(void **)&next.memalign = must_find("memalign");
    *(void **)&next.aligned_alloc = must_find("aligned_alloc");
    *(void **)&next.posix_memalign = must_find("posix_memalign");
    *(void **)&next.valloc = find("valloc");
    *(void **)&next.pvalloc = find("pvalloc");
    *(void **)&next.usable = must_find("malloc_usable_size");
    void *(*found)(size_t);
    *(void **)&found = must_find("malloc");
    __atomic_store_n(&next.malloc, found, __ATOMIC_RELEASE); /* all are there */
    is_inside = false;
}

/* A signal handler that forks may have interrupted us, who hold the lock. */
static void before_fork(void)
{
    was_inside_at_fork = is_inside;
    is_inside = true; /* handlers of others may allocate */
    if (!was_inside_at_fork)
        records_before_fork();
}

static void after_fork(void)
{
    if (!was_inside_at_fork)
        records_after_fork();
    is_inside = was_inside_at_fork;
}

static void in_child(void)
{
    records_in_child(was_inside_at_fork);
    is_inside = was_inside_at_fork;
}

__attribute__((constructor)) static void start(void)
{
    find_next();
    is_inside = true;
    records_begin();
    pthread_atfork(before_fork, after_fork, in_child);
    is_inside = false;
}

static bool is_early(const void *block)
{
    return (uintptr_t)block - (uintptr_t)early < EARLY_BYTES;
}

/* Zeroed, and never freed. */
static void *early_block(size_t size)
{
    size_t room = (size + WORD - 1) & ~(size_t)(WORD - 1);
    size_t used = __atomic_fetch_add(&early_used, room, __ATOMIC_RELAXED);
    if (size > EARLY_BYTES || used > EARLY_BYTES || room > EARLY_BYTES - used)
        abort();
    return early + used;
}

static void note(kind_t kind, const void *block, size_t size, size_t alignment, void *caller)
{
    bool was_inside = is_inside;
    int saved_errno = errno;
    is_inside = true;
    if (records_are_wanted())
        records_add(kind, block, size, alignment, caller);
    last_noted = block;
    is_inside = was_inside;
    errno = saved_errno;
}

/* ---- the calls of C ---- */

/* True: this call is recorded, and what it calls is not, until leave. */
static bool enter(void)
{
    find_next();
    if (is_inside)
        return false;
    return is_inside = true;
}

static void leave(bool is_recorded)
{
    if (is_recorded)
        is_inside = false;
}

static void *leave_with(bool is_recorded, void *block, kind_t kind, size_t size, size_t alignment,
                        void *caller)
{
    if (is_recorded && block != NULL)
        note(kind, block, size, alignment, caller);
    leave(is_recorded);
    return block;
}

#define CALLER __builtin_return_address(0)

EXPORT void *malloc(size_t size)
{
    bool is_recorded = enter();
    void *block = next.malloc == NULL ? early_block(size) : next.malloc(size);
    return leave_with(is_recorded, block, BLOCK, size, 0, CALLER);
}

EXPORT void *calloc(size_t count, size_t size)
{
    size_t total;
    bool is_recorded = enter();
    if (__builtin_mul_overflow(count, size, &total))
        total = SIZE_MAX; /* no block has that */
    void *block = next.malloc == NULL ? early_block(total) : next.calloc(count, size);
    return leave_with(is_recorded, block, ZEROED, total, 0, CALLER);
}

EXPORT void free(void *block)
{
    if (block == NULL || is_early(block))
        return;
    bool is_recorded = enter();
    if (is_recorded)
        note(FREED, block, 0, 0, NULL);
    next.free(block);
    leave(is_recorded);
}

/* Not in the headers of all C libraries. */
EXPORT void *pvalloc(size_t size);
EXPORT void free_sized(void *block, size_t size);
EXPORT void free_aligned_sized(void *block, size_t alignment, size_t size);

void free_sized(void *block, size_t size)
{
    (void)size;
    free(block);
}

void free_aligned_sized(void *block, size_t alignment, size_t size)
{
    (void)alignment, (void)size;
    free(block);
}

/* The length of an early block is not known: what lies behind it is copied, too. */
static void *move_early(void *block, size_t size, void *caller)
{
    bool is_recorded = enter();
    void *moved = next.malloc == NULL ? early_block(size) : next.malloc(size);
    size_t room = (size_t)(early + EARLY_BYTES - (char *)block);
    if (moved != NULL)
        memcpy(moved, block, size < room ? size : room);
    return leave_with(is_recorded, moved, BLOCK, size, 0, caller);
}

static void *resize(void *block, size_t size, void *caller)
{
    if (is_early(block) || (block == NULL && next.malloc == NULL))
        return move_early(block == NULL ? early : block, size, caller);
    bool is_recorded = enter();
    bool is_old = block != NULL && size != 0;
    if (is_recorded && block != NULL)
        note(is_old ? RESIZE : FREED, block, 0, 0, NULL);
    void *moved = next.realloc(block, size);
    if (is_recorded && is_old && moved == NULL)
        note(RESIZED, block, next.usable(block), 0, caller);
    return leave_with(is_recorded, moved, is_old ? RESIZED : BLOCK, size, 0, caller);
}

EXPORT void *realloc(void *block, size_t size)
{
    return resize(block, size, CALLER);
}

EXPORT void *reallocarray(void *block, size_t count, size_t size)
{
    size_t total;
    if (!__builtin_mul_overflow(count, size, &total))
        return resize(block, total, CALLER);
    errno = ENOMEM;
    return NULL;
}

EXPORT void *memalign(size_t alignment, size_t size)
{
    bool is_recorded = enter();
    return leave_with(is_recorded, next.memalign(alignment, size), BLOCK, size, alignment, CALLER);
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
    bool is_recorded = enter();
    void *block = next.aligned_alloc(alignment, size);
    return leave_with(is_recorded, block, BLOCK, size, alignment, CALLER);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
    bool is_recorded = enter();
    int error = next.posix_memalign(out, alignment, size);
    (void)leave_with(is_recorded, error == 0 ? *out : NULL, BLOCK, size, alignment, CALLER);
    return error;
}

/* Of pages; NULL: the allocator has no function of that name, which is seldom called. */
static void *pages(void *(*real)(size_t), size_t size, size_t asked, void *caller)
{
    bool is_recorded = enter();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *block = real != NULL ? real(size) : next.memalign(page, asked);
    return leave_with(is_recorded, block, BLOCK, asked, page, caller);
}

EXPORT void *valloc(size_t size)
{
    find_next();
    return pages(next.valloc, size, size, CALLER);
}

void *pvalloc(size_t size)
{
    find_next();
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t whole = (size + page - 1) / page * page;
    return pages(next.pvalloc, size, whole < size ? SIZE_MAX / 2 : whole, CALLER);
}

EXPORT size_t malloc_usable_size(void *block)
{
    find_next();
    return block == NULL || is_early(block) ? 0 : next.usable(block);
}

/* ---- the operators of C++ ----
 *
 * Each goes to the operator behind it, for that one throws, calls handlers, and heeds operators
 * that the program has replaced. Some call malloc or another operator, which records the block. */

typedef void *new_t(size_t size, size_t alignment, const void *tag);
typedef void delete_t(void *block, size_t second, size_t third);

/* NULL: there is none. */
static void *find_operator(void **found, const char *name)
{
    bool was_inside = is_inside;
    void *there = __atomic_load_n(found, __ATOMIC_RELAXED);
    if (there != NULL)
        return there;
    is_inside = true;
    there = find(name);
    is_inside = was_inside;
    __atomic_store_n(found, there, __ATOMIC_RELAXED);
    return there;
}

/* Without the runtime of C++ nobody can throw. */
static void *new_without_runtime(size_t size, size_t alignment)
{
    void *block = alignment == 0 ? next.malloc(size) : next.memalign(alignment, size);
    if (block == NULL)
        abort();
    return block;
}

/* What is called may throw: nothing is to be undone here. */
static void *record_new(void **found, const char *name, size_t size, size_t alignment,
                        size_t second, const void *tag, void *caller)
{
    new_t *real;
    find_next();
    *(void **)&real = find_operator(found, name);
    last_noted = NULL;
    void *block = real == NULL ? new_without_runtime(size, alignment) : real(size, second, tag);
    if (!is_inside && block != NULL && block != last_noted)
        note(BLOCK, block, size, alignment, caller);
    return block;
}

static void record_delete(void **found, const char *name, void *block, size_t second, size_t third)
{
    delete_t *real;
    if (block == NULL)
        return;
    find_next();
    *(void **)&real = find_operator(found, name);
    bool is_recorded = enter();
    if (is_recorded)
        note(FREED, block, 0, 0, NULL);
    if (real == NULL)
        next.free(block);
    else
        real(block, second, third);
    leave(is_recorded);
}

/* `second` is the alignment or, like `third`, a size, a tag or what happens to be there: each is
 * in a register, and handed on as it is. */
#define NEW(symbol, alignment)                                                                  \
    EXPORT void *operator_##symbol(size_t size, size_t second, const void *tag)                 \
        __asm__(#symbol);                                                                       \
    void *operator_##symbol(size_t size, size_t second, const void *tag)                        \
    {                                                                                           \
        static void *found;                                                                     \
        return record_new(&found, #symbol, size, alignment, second, tag, CALLER);               \
    }
#define DELETE(symbol)                                                                          \
    EXPORT void operator_##symbol(void *block, size_t second, size_t third) __asm__(#symbol);   \
    void operator_##symbol(void *block, size_t second, size_t third)                            \
    {                                                                                           \
        static void *found;                                                                     \
        record_delete(&found, #symbol, block, second, third);                                   \
    }

NEW(_Znwm, 0)
NEW(_Znam, 0)
NEW(_ZnwmRKSt9nothrow_t, 0)
NEW(_ZnamRKSt9nothrow_t, 0)
NEW(_ZnwmSt11align_val_t, second)
NEW(_ZnamSt11align_val_t, second)
NEW(_ZnwmSt11align_val_tRKSt9nothrow_t, second)
NEW(_ZnamSt11align_val_tRKSt9nothrow_t, second)
DELETE(_ZdlPv)
DELETE(_ZdaPv)
DELETE(_ZdlPvm)
DELETE(_ZdaPvm)
DELETE(_ZdlPvRKSt9nothrow_t)
DELETE(_ZdaPvRKSt9nothrow_t)
DELETE(_ZdlPvSt11align_val_t)
DELETE(_ZdaPvSt11align_val_t)
DELETE(_ZdlPvmSt11align_val_t)
DELETE(_ZdaPvmSt11align_val_t)
DELETE(_ZdlPvSt11align_val_tRKSt9nothrow_t)
DELETE(_ZdaPvSt11align_val_tRKSt9nothrow_t)
