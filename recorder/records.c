/* The file of the recorder: what is in it, and how it is made. See recorder.h. */
#include "recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#if RECORDER_UNWINDS
#include <unwind.h>
#endif

enum { FRAMES = 4, STACKS_MOST = 1 << 18, NAMES_MOST = 1000, PLAIN_ALIGNMENT = 16 };
#define FILE_MOST ((size_t)16 << 30)
#define FILE_STEP ((size_t)1 << 16)
#define PAGE_LEAST ((size_t)4096)

typedef struct head {
    char magic[sizeof RECORDER_MAGIC];
    uint64_t record_count; /* those behind it are zero */
    uint64_t unused;
} head_t;

typedef struct record {
    uint64_t address;
    uint64_t size;    /* as was asked for */
    uint64_t time_ns; /* since the process began */
    uint32_t stack;   /* its number, from 1 on; 0: too many stacks */
    uint16_t thread;  /* from 1 on; the last number is that of all further threads */
    uint8_t kind;
    uint8_t shift; /* the address was to be a multiple of 2^shift; 0: of what malloc gives */
} record_t;

typedef struct stack {
    uint64_t frames[FRAMES];
} call_stack_t;

_Static_assert(sizeof(record_t) == 32 && sizeof(call_stack_t) == 32 && sizeof(head_t) == 32,
               "the format of the file");

/* The kernel wipes it in every child of a fork, which may not write where its parent does. */
typedef struct owned {
    head_t *head; /* NULL: nothing is recorded */
    size_t ready; /* bytes of the file that the file system has provided */
} owned_t;

/* The lock protects all of it, and nobody else's code is called under it. */
static struct {
    pthread_mutex_t lock;
    owned_t *owned;
    void *mapped;
    size_t length; /* of the mapping */
    call_stack_t *stacks;
    uint32_t *slots; /* hash table of numbers; twice as many as stacks */
    uint32_t stack_count;
    uint16_t thread_count;
    uint64_t start_ns;
    bool has_begun;
    bool names_processes;
    char pattern[1024];
    struct stat messages; /* what standard error was at the start */
} self = {.lock = PTHREAD_MUTEX_INITIALIZER};

static OWN uint16_t thread_number;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- the file ---- */

static void *map(size_t size)
{
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

/* To standard error, unless the program has put another file there. */
static void complain(const char *what, const char *name, int error)
{
    struct stat now;
    char line[sizeof self.pattern + 256];
    int state;
    if (fstat(STDERR_FILENO, &now) != 0 || now.st_dev != self.messages.st_dev ||
        now.st_ino != self.messages.st_ino)
        return;
    const char *why = strerror(error);
    int length = snprintf(line, sizeof line, "recorder: %s: %s (%s)\n", what, why, name);
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    (void)!write(STDERR_FILENO, line, (size_t)length);
    (void)pthread_setcancelstate(state, &state);
}

/* The file's name: %p is the process, with a number behind it where that name is not the first. */
static void make_name(char *name, size_t room, int number)
{
    size_t length = 0;
    for (const char *from = self.pattern; *from != '\0' && length + 32 < room; from++) {
        if (from[0] != '%' || from[1] != 'p') {
            name[length++] = *from;
            continue;
        }
        length += (size_t)snprintf(name + length, 16, "%d", (int)getpid());
        if (number != 1)
            length += (size_t)snprintf(name + length, 16, "-%d", number);
        from++;
    }
    name[length] = '\0';
}

/* A new file, and no link. A process that executes another program gets a further one. */
static int create_file(char *name, size_t room)
{
    int file = -1;
    for (int number = 1; number <= (self.names_processes ? NAMES_MOST : 1); number++) {
        make_name(name, room, number);
        file = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST)
            break;
    }
    return file;
}

static void lower_to_limit(size_t *length, int resource, size_t share)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) == 0 && limit.rlim_cur / share < *length)
        *length = limit.rlim_cur / share;
}

/* The mapping of as much as the limits and the file system allow; NULL: of none. Nothing in it can
 * be read yet, so that a program that locks all its memory does not lock the hole. */
static head_t *map_file(int file)
{
    size_t most = FILE_MOST;
    lower_to_limit(&most, RLIMIT_FSIZE, 1);
    lower_to_limit(&most, RLIMIT_AS, 4);
    for (; most >= FILE_STEP; most /= 2) {
        self.length = most / FILE_STEP * FILE_STEP;
        if (ftruncate(file, (off_t)self.length) != 0)
            continue;
        self.mapped =
            mmap(NULL, self.length, PROT_NONE, MAP_SHARED | MAP_NORESERVE, file, 0);
        if (self.mapped != MAP_FAILED)
            return self.mapped;
    }
    self.mapped = NULL;
    errno = EFBIG;
    return NULL;
}

/* A full disk would end the program at a write to the mapping. So the kernel writes there first:
 * it says so. */
static bool provide_more(void)
{
    owned_t *owned = self.owned;
    char *start = (char *)owned->head + owned->ready;
    if (owned->ready == self.length) {
        errno = EFBIG;
        return false;
    }
    if (mprotect(start, FILE_STEP, PROT_READ | PROT_WRITE) != 0)
        return false;
    for (size_t offset = 0; offset < FILE_STEP; offset += PAGE_LEAST) {
        if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, start + offset) != 0) {
            errno = ENOSPC;
            return false;
        }
        memset(start + offset, 0, sizeof(struct timespec));
    }
    owned->ready += FILE_STEP;
    return true;
}

static void open_file(void)
{
    char name[sizeof self.pattern];
    int state;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    int file = create_file(name, sizeof name);
    *self.owned = (owned_t){.head = file < 0 ? NULL : map_file(file)};
    if (self.owned->head != NULL && provide_more()) {
        memcpy(self.owned->head->magic, RECORDER_MAGIC, sizeof self.owned->head->magic);
    } else {
        complain("nothing is recorded", name, errno);
        self.owned->head = NULL;
        if (file >= 0)
            unlink(name);
    }
    if (file >= 0)
        close(file);
    (void)pthread_setcancelstate(state, &state);
}

/* ---- beginning ---- */

/* Keeps the name from / on: the program may go elsewhere. */
static bool keep_pattern(void)
{
    const char *pattern = secure_getenv("RECORDER_FILE");
    size_t length = 0;
    if (pattern == NULL || *pattern == '\0')
        return false;
    if (*pattern != '/' && getcwd(self.pattern, sizeof self.pattern - 1) != NULL)
        strcat(self.pattern, "/");
    length = strlen(self.pattern);
    if (length + strlen(pattern) + 64 > sizeof self.pattern) {
        complain("nothing is recorded", pattern, ENAMETOOLONG);
        return false;
    }
    strcpy(self.pattern + length, pattern);
    self.names_processes = strstr(pattern, "%p") != NULL;
    return true;
}

/* The caller holds the lock. Before the environment is there nothing is recorded. */
static void begin(void)
{
    if (self.has_begun || environ == NULL)
        return;
    self.has_begun = true;
    (void)fstat(STDERR_FILENO, &self.messages);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    self.owned = map(page);
    self.stacks = map(STACKS_MOST * sizeof *self.stacks);
    self.slots = map(2 * STACKS_MOST * sizeof *self.slots);
    self.start_ns = now_ns();
    if (self.owned == NULL || self.stacks == NULL || self.slots == NULL)
        return;
    (void)madvise(self.owned, page, MADV_WIPEONFORK);
    if (keep_pattern())
        open_file();
}

/* ---- stacks ---- */

#if RECORDER_UNWINDS
typedef struct walk {
    call_stack_t stack;
    unsigned count;
    unsigned steps;
} walk_t;

/* Frames of ours come first; the caller's return address ends them. */
static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *argument)
{
    walk_t *walk = argument;
    uint64_t place = _Unwind_GetIP(context);
    bool is_ours = walk->count == 0 && place != walk->stack.frames[0];
    if (!is_ours)
        walk->stack.frames[walk->count++] = place;
    return walk->count == FRAMES || (is_ours && ++walk->steps == 8) ? _URC_END_OF_STACK
                                                                    : _URC_NO_REASON;
}
#endif

static call_stack_t stack_of(void *caller)
{
#if RECORDER_UNWINDS
    walk_t walk = {.stack.frames = {(uintptr_t)caller}};
    (void)_Unwind_Backtrace(take_frame, &walk);
    return walk.stack;
#else
    return (call_stack_t){.frames = {(uintptr_t)caller}};
#endif
}

/* ---- records; the caller holds the lock ---- */

/* Room for so many, and none of it counts before add_records. NULL: nothing is recorded. */
static record_t *record_room(size_t count)
{
    head_t *head = self.owned->head;
    if (head == NULL)
        return NULL;
    record_t *room = (record_t *)(head + 1) + head->record_count;
    if ((char *)(room + count) <= (char *)head + self.owned->ready || provide_more())
        return room;
    complain("no more is recorded", self.pattern, errno);
    self.owned->head = NULL;
    return NULL;
}

/* A process that is killed in between leaves whole records. A child that a signal handler has
 * forked in between has no head. */
static void add_records(size_t count)
{
    head_t *head = *(head_t *volatile *)&self.owned->head;
    if (head != NULL)
        __atomic_fetch_add(&head->record_count, count, __ATOMIC_RELEASE);
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
    record_t *records = self.stack_count == STACKS_MOST ? NULL : record_room(2);
    if (records == NULL)
        return 0;
    self.stacks[self.stack_count++] = *stack;
    records[0] = (record_t){.kind = STACK, .stack = self.stack_count};
    memcpy(&records[1], stack, sizeof *stack);
    add_records(2);
    return self.slots[slot] = self.stack_count;
}

static void add_record(kind_t kind, const void *block, size_t size, size_t alignment,
                       const call_stack_t *stack)
{
    uint32_t number = stack == NULL || self.owned->head == NULL ? 0 : number_of(stack);
    record_t *record = record_room(1);
    if (record == NULL)
        return;
    if (thread_number == 0)
        thread_number = self.thread_count == UINT16_MAX ? UINT16_MAX : ++self.thread_count;
    bool is_plain = alignment <= PLAIN_ALIGNMENT || (alignment & (alignment - 1)) != 0;
    *record = (record_t){.address = (uintptr_t)block,
                         .size = size,
                         .time_ns = now_ns() - self.start_ns,
                         .stack = number,
                         .thread = thread_number,
                         .kind = (uint8_t)kind,
                         .shift = (uint8_t)(is_plain ? 0 : __builtin_ctzl(alignment))};
    add_records(1);
}

bool records_are_wanted(void)
{
    /* relaxed: who sees it late records what is dropped then */
    return !__atomic_load_n(&self.has_begun, __ATOMIC_RELAXED) ||
           (self.owned != NULL && __atomic_load_n(&self.owned->head, __ATOMIC_RELAXED) != NULL);
}

void records_add(kind_t kind, const void *block, size_t size, size_t alignment, void *caller)
{
    call_stack_t stack;
    if (caller != NULL)
        stack = stack_of(caller);
    pthread_mutex_lock(&self.lock);
    begin();
    if (self.owned != NULL && self.owned->head != NULL)
        add_record(kind, block, size, alignment, caller == NULL ? NULL : &stack);
    pthread_mutex_unlock(&self.lock);
}

void records_begin(void)
{
    pthread_mutex_lock(&self.lock);
    begin();
    pthread_mutex_unlock(&self.lock);
}

void records_before_fork(void)
{
    pthread_mutex_lock(&self.lock);
}

void records_after_fork(void)
{
    pthread_mutex_unlock(&self.lock);
}

void records_in_child(bool goes_on)
{
    pthread_mutex_init(&self.lock, NULL);
    if (self.owned == NULL)
        return;
    self.owned->head = NULL; /* the kernel wipes it, but not in all versions */
    if (goes_on)
        return;
    if (self.mapped != NULL)
        munmap(self.mapped, self.length);
    self.mapped = NULL;
    self.stack_count = self.thread_count = thread_number = 0;
    if (!self.names_processes)
        return;
    (void)madvise(self.stacks, STACKS_MOST * sizeof *self.stacks, MADV_DONTNEED);
    (void)madvise(self.slots, 2 * STACKS_MOST * sizeof *self.slots, MADV_DONTNEED);
    self.start_ns = now_ns();
    open_file();
}
