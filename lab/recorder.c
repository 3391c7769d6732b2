/* The recorder: preloaded in front of an allocator, it writes down every call of malloc and its
 * family with the innermost return addresses of the call, for tools/lifetimes.py. Any allocator
 * may stand behind it: what is recorded is which block, how long, where from and when.
 *
 *     RECORDER_FILE=/tmp/%p.stacks LD_PRELOAD="librecorder.so libhakmem.so" program
 *
 * Without %p in the name only the first process is recorded. The file is mapped, so a process that
 * a signal ends loses nothing. It is a head and records of 32 bytes (record_t). A record of the
 * kind STACK names a new number; the record behind it is four return addresses, innermost first,
 * 0 where the stack has fewer. realloc is two records: RESIZE with the old address, RESIZED with
 * the new one, which is 0 where it has failed.
 *
 * One lock around the call and its record keeps the order: a free stands before the block that gets
 * the same memory. The child of a fork begins a file of its own, without what its parent held. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include <unwind.h>

enum { FRAMES = 4, STACKS_MOST = 1 << 18, EARLY_BYTES = 1 << 16 };
#define RECORDS_MOST ((size_t)1 << 27)

typedef enum kind { STACK = 1, BLOCK, FREED, RESIZE, RESIZED } kind_t;

typedef struct head {
    char magic[16];
    uint64_t record_count; /* those behind it are zero */
    uint64_t unused;
} head_t;

typedef struct record {
    uint64_t address;
    uint64_t size;    /* as was asked for */
    uint64_t time_ns; /* since the process began */
    uint32_t stack;   /* its number, from 1 on; 0: too many stacks */
    uint16_t thread;  /* from 1 on */
    uint8_t kind;
    uint8_t shift; /* the address was to be a multiple of 2^shift; 0: of what malloc gives */
} record_t;

typedef struct stack {
    uint64_t frames[FRAMES];
} call_stack_t;

_Static_assert(sizeof(record_t) == 32 && sizeof(call_stack_t) == 32 && sizeof(head_t) == 32,
               "the format of the file");

static struct {
    pthread_mutex_t lock;
    head_t *head; /* NULL: nothing is recorded */
    call_stack_t *stacks;
    uint32_t *slots; /* hash table of numbers; twice as many as stacks */
    uint32_t stack_count;
    uint16_t thread_count;
    uint64_t start_ns;
    bool names_processes;
    char early[EARLY_BYTES]; /* for what dlsym allocates before the functions below are known */
    size_t early_used;
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void (*free)(void *);
    void *(*memalign)(size_t, size_t);
    size_t (*usable)(void *);
} next;

/* The thread is in one of our functions: what the unwinder allocates is not noted. */
static __thread bool is_inside __attribute__((tls_model("initial-exec")));
static __thread uint16_t thread_number __attribute__((tls_model("initial-exec")));

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- beginning ---- */

static void *map(size_t size)
{
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

/* The head of the file that RECORDER_FILE names; NULL: there is none. */
static head_t *open_file(void)
{
    const char *pattern = getenv("RECORDER_FILE");
    const char *place = pattern == NULL ? NULL : strstr(pattern, "%p");
    char name[512];
    if (pattern == NULL)
        return NULL;
    self.names_processes = place != NULL;
    if (place != NULL)
        snprintf(name, sizeof name, "%.*s%d%s", (int)(place - pattern), pattern, (int)getpid(),
                 place + 2);
    else
        snprintf(name, sizeof name, "%s", pattern);
    /* A process that executes another program begins anew; another process must not. */
    int mode = O_RDWR | O_CREAT | O_CLOEXEC | (place != NULL ? O_TRUNC : O_EXCL);
    int file = open(name, mode, 0600);
    if (file < 0)
        return NULL;
    size_t size = sizeof(head_t) + RECORDS_MOST * sizeof(record_t);
    void *start = MAP_FAILED;
    if (ftruncate(file, (off_t)size) == 0)
        start = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file, 0);
    close(file);
    if (start == MAP_FAILED)
        return NULL;
    head_t *head = start;
    memcpy(head->magic, "hakmem stacks 1\n", sizeof head->magic);
    return head;
}

static void begin(void)
{
    self.stack_count = 0;
    self.thread_count = 0;
    thread_number = 0;
    self.start_ns = now_ns();
    self.stacks = map(STACKS_MOST * sizeof *self.stacks);
    self.slots = map(2 * STACKS_MOST * sizeof *self.slots);
    self.head = self.stacks == NULL || self.slots == NULL ? NULL : open_file();
}

static void before_fork(void)
{
    pthread_mutex_lock(&self.lock);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&self.lock);
}

static void in_child(void)
{
    pthread_mutex_init(&self.lock, NULL);
    is_inside = true;
    self.head = NULL; /* the mapping stays, and is the parent's */
    if (self.names_processes)
        begin();
    is_inside = false;
}

static void *must_find(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    return found;
}

/* The functions behind ours, at the first call: that may come before the environment is there. */
static void find_next(void)
{
    if (next.malloc != NULL || is_inside)
        return;
    is_inside = true;
    *(void **)&next.calloc = must_find("calloc");
    *(void **)&next.realloc = must_find("realloc");
    *(void **)&next.free = must_find("free");
    *(void **)&next.memalign = must_find("memalign");
    *(void **)&next.usable = must_find("malloc_usable_size");
    *(void **)&next.malloc = must_find("malloc");
    is_inside = false;
}

__attribute__((constructor)) static void start(void)
{
    find_next();
    is_inside = true;
    begin();
    pthread_atfork(before_fork, after_fork, in_child);
    is_inside = false;
}

static bool is_early(const void *block)
{
    return (uintptr_t)block - (uintptr_t)self.early < EARLY_BYTES;
}

/* Zeroed, and never freed. */
static void *early_block(size_t size)
{
    size_t used = self.early_used;
    if (size > EARLY_BYTES - used - 16)
        abort();
    self.early_used = used + ((size + 15) & ~(size_t)15);
    return self.early + used;
}

/* ---- stacks ---- */

typedef struct walk {
    uint64_t caller;
    call_stack_t stack;
    unsigned count;
    unsigned steps;
} walk_t;

/* Frames of ours come first; the caller's return address ends them. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    walk_t *walk = argument;
    uint64_t place = _Unwind_GetIP(context);
    bool is_ours = walk->count == 0 && place != walk->caller;
    if (!is_ours)
        walk->stack.frames[walk->count++] = place;
    return walk->count == FRAMES || (is_ours && ++walk->steps == 8) ? _URC_END_OF_STACK
                                                                    : _URC_NO_REASON;
}

static call_stack_t stack_of(void *caller)
{
    walk_t walk = {.caller = (uint64_t)(uintptr_t)caller};
    (void)_Unwind_Backtrace(take_frame, &walk);
    walk.stack.frames[0] = walk.caller;
    return walk.stack;
}

/* ---- records; the caller holds the lock ---- */

static void *new_record(void)
{
    if (self.head == NULL || self.head->record_count == RECORDS_MOST)
        return NULL;
    return (record_t *)(self.head + 1) + self.head->record_count++;
}

static uint32_t number_of(const call_stack_t *stack)
{
    uint64_t hash = 0;
    for (unsigned frame = 0; frame < FRAMES; frame++)
        hash = (hash ^ stack->frames[frame]) * 0x9e3779b97f4a7c15u;
    size_t slot = hash >> 40;
    for (;; slot++) {
        slot %= (size_t)2 * STACKS_MOST;
        uint32_t number = self.slots[slot];
        if (number == 0)
            break;
        if (memcmp(&self.stacks[number - 1], stack, sizeof *stack) == 0)
            return number;
    }
    record_t *record = self.stack_count == STACKS_MOST ? NULL : new_record();
    call_stack_t *frames = record == NULL ? NULL : new_record();
    if (frames == NULL)
        return 0;
    self.stacks[self.stack_count++] = *frames = *stack;
    *record = (record_t){.kind = STACK, .stack = self.stack_count};
    return self.slots[slot] = self.stack_count;
}

static void note(kind_t kind, const void *block, size_t size, uint32_t stack, size_t alignment)
{
    record_t *record = new_record();
    if (thread_number == 0)
        thread_number = ++self.thread_count;
    if (record != NULL)
        *record = (record_t){.address = (uintptr_t)block,
                             .size = size,
                             .time_ns = now_ns() - self.start_ns,
                             .stack = stack,
                             .thread = thread_number,
                             .kind = (uint8_t)kind,
                             .shift = (uint8_t)(alignment <= 16 ? 0 : __builtin_ctzl(alignment))};
}

/* Takes the lock; the number of the caller's stack. */
static uint32_t enter(void *caller)
{
    is_inside = true;
    call_stack_t stack = stack_of(caller);
    pthread_mutex_lock(&self.lock);
    return number_of(&stack);
}

static void leave(void)
{
    pthread_mutex_unlock(&self.lock);
    is_inside = false;
}

static bool is_recording(void)
{
    find_next();
    return !is_inside && self.head != NULL;
}

/* ---- the calls ---- */

typedef enum zeroing { AS_IS, ZEROED } zeroing_t;

static void *pass(size_t size, size_t alignment, zeroing_t zeroing)
{
    if (next.malloc == NULL)
        return early_block(size);
    if (alignment > 16)
        return next.memalign(alignment, size);
    return zeroing == ZEROED ? next.calloc(1, size) : next.malloc(size);
}

static void *allocate(size_t size, size_t alignment, zeroing_t zeroing, void *caller)
{
    if (!is_recording())
        return pass(size, alignment, zeroing);
    uint32_t stack = enter(caller);
    void *block = pass(size, alignment, zeroing);
    if (block != NULL)
        note(BLOCK, block, size, stack, alignment);
    leave();
    return block;
}

static void release(void *block)
{
    if (block == NULL || is_early(block))
        return;
    if (!is_recording()) {
        next.free(block);
        return;
    }
    is_inside = true;
    pthread_mutex_lock(&self.lock);
    note(FREED, block, 0, 0, 0);
    next.free(block);
    leave();
}

static void *resize(void *block, size_t size, void *caller)
{
    if (block == NULL)
        return allocate(size, 0, AS_IS, caller);
    if (is_early(block)) {
        void *moved = allocate(size, 0, AS_IS, caller);
        size_t room = (size_t)(self.early + EARLY_BYTES - (char *)block);
        return moved == NULL ? NULL : memcpy(moved, block, size < room ? size : room);
    }
    if (!is_recording())
        return next.realloc(block, size);
    uint32_t stack = enter(caller);
    note(RESIZE, block, 0, 0, 0);
    void *moved = next.realloc(block, size);
    if (moved == NULL && size == 0)
        note(FREED, block, 0, 0, 0);
    else
        note(RESIZED, moved, size, stack, 0);
    leave();
    return moved;
}

#define CALLER __builtin_return_address(0)
#define PAGE ((size_t)4096)

void *malloc(size_t size)
{
    return allocate(size, 0, AS_IS, CALLER);
}

void *calloc(size_t count, size_t size)
{
    size_t total;
    if (!__builtin_mul_overflow(count, size, &total))
        return allocate(total, 0, ZEROED, CALLER);
    errno = ENOMEM;
    return NULL;
}

void *realloc(void *block, size_t size)
{
    return resize(block, size, CALLER);
}

void *reallocarray(void *block, size_t count, size_t size)
{
    size_t total;
    if (!__builtin_mul_overflow(count, size, &total))
        return resize(block, total, CALLER);
    errno = ENOMEM;
    return NULL;
}

void free(void *block)
{
    release(block);
}

void *memalign(size_t alignment, size_t size)
{
    return allocate(size, alignment, AS_IS, CALLER);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return allocate(size, alignment, AS_IS, CALLER);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    if (alignment < sizeof(void *) || (alignment & (alignment - 1)) != 0)
        return EINVAL;
    int saved_errno = errno;
    void *block = allocate(size, alignment, AS_IS, CALLER);
    errno = saved_errno;
    if (block != NULL)
        *out = block;
    return block == NULL ? ENOMEM : 0;
}

void *valloc(size_t size)
{
    return allocate(size, PAGE, AS_IS, CALLER);
}

void *pvalloc(size_t size)
{
    return allocate((size + PAGE - 1) / PAGE * PAGE, PAGE, AS_IS, CALLER);
}

size_t malloc_usable_size(void *block)
{
    find_next();
    return block == NULL || is_early(block) ? 0 : next.usable(block);
}

/* ---- C++: the operators call malloc in some libraries, and not in others ---- */

static void *must(void *block)
{
    if (block == NULL)
        abort();
    return block;
}

/* A name of the C++ runtime, with what it takes and does. */
#define OPERATOR(type, name, parameters, body)      \
    type operator_##name parameters __asm__(#name); \
    type operator_##name parameters                 \
    {                                               \
        body;                                       \
    }
#define NEW(name)                      \
    OPERATOR(void *, name, (size_t size), \
             return must(allocate(size, 0, AS_IS, CALLER)))
#define NEW_NOTHROW(name)                                   \
    OPERATOR(void *, name, (size_t size, const void *unused), \
             (void)unused; return allocate(size, 0, AS_IS, CALLER))
#define NEW_ALIGNED(name)                             \
    OPERATOR(void *, name, (size_t size, size_t alignment), \
             return must(allocate(size, alignment, AS_IS, CALLER)))
#define NEW_ALIGNED_NOTHROW(name)                                             \
    OPERATOR(void *, name, (size_t size, size_t alignment, const void *unused), \
             (void)unused; return allocate(size, alignment, AS_IS, CALLER))
/* What follows the block is a size, an alignment or nothrow, in registers that nobody reads. */
#define DELETE(name) OPERATOR(void, name, (void *block), release(block))

NEW(_Znwm)
NEW(_Znam)
NEW_NOTHROW(_ZnwmRKSt9nothrow_t)
NEW_NOTHROW(_ZnamRKSt9nothrow_t)
NEW_ALIGNED(_ZnwmSt11align_val_t)
NEW_ALIGNED(_ZnamSt11align_val_t)
NEW_ALIGNED_NOTHROW(_ZnwmSt11align_val_tRKSt9nothrow_t)
NEW_ALIGNED_NOTHROW(_ZnamSt11align_val_tRKSt9nothrow_t)
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
