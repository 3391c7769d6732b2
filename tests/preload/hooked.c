/* A program that registers its memory with a device, as UCX and Open MPI do: a hook in munmap,
   madvise and mremap learns which pages are gone, and allocates and frees meanwhile. A page that
   was registered and not announced since must hold what was written to it. With INTERPOSE the
   program has functions of these names; else it patches those of the C library in place. */
#include "check.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { KIB = 1024, MIB = 1024 * KIB, PAGE = 4 * KIB, SLOTS = 48, PAGES_MOST = 1 << 21 };
enum { PATTERN = 0x5a, OWN_ERRNO = 77, HOOK_ERRNO = 78, THREADS_MOST = 8, ENOUGH = 64 };
#define WRITTEN 0x5a5a5a5a5a5a5a5au

/* ---- what is registered ---- */

typedef struct page {
    uintptr_t start;
    bool is_registered;
} page_t;

static page_t pages[PAGES_MOST];
static pthread_mutex_t registry = PTHREAD_MUTEX_INITIALIZER;
static size_t announced_count;
static size_t page_count;

/* The entry of the page; NULL: there is none, and none is added. */
static page_t *page_at(uintptr_t start, bool adds)
{
    size_t at = start / PAGE * 0x9e3779b97f4a7c15u >> 43;
    while (pages[at].start != start && pages[at].start != 0) at = (at + 1) % PAGES_MOST;
    if (pages[at].start == start) return &pages[at];
    if (!adds) return NULL;
    check(++page_count < PAGES_MOST / 2);
    pages[at].start = start;
    return &pages[at];
}

/* Of what the program has written to the page, something must be left. The heap may have written to
   parts of it, and a page that was lost is zero. */
static void check_page(const page_t *page)
{
    const uint64_t *words = (const uint64_t *)page->start;
    unsigned char resident;
    if (!page->is_registered) return;
    bool is_mapped = mincore((void *)page->start, PAGE, &resident) == 0;
    for (size_t at = 0; is_mapped && at < PAGE / sizeof *words; at++)
        if (words[at] == WRITTEN) return;
    (void)fprintf(stderr, "%p was not announced, and is %s\n", (void *)page->start,
                  is_mapped ? "lost" : "unmapped");
    check_end(1);
}

/* Writes the block, all that is usable of it, for realloc copies that; and registers its pages. */
static void use(char *block)
{
    check(block != NULL);
    uintptr_t end = (uintptr_t)block + malloc_usable_size(block);
    for (unsigned turn = 0; turn < 2; turn++) {
        check_eq(pthread_mutex_lock(&registry), 0);
        for (uintptr_t next, at = (uintptr_t)block; at < end; at = next) {
            next = (at | (PAGE - 1)) + 1;
            page_t *page = page_at(at & ~(uintptr_t)(PAGE - 1), turn == 1);
            if (turn == 0 && page != NULL) check_page(page);
            if (turn == 1 && (next < end ? next : end) - at >= ENOUGH) page->is_registered = true;
        }
        check_eq(pthread_mutex_unlock(&registry), 0);
        if (turn == 0) memset(block, PATTERN, end - (uintptr_t)block);
    }
}

/* ---- the hook ---- */

/* volatile: for the compiler no function of the C library calls one of this file */
static _Thread_local volatile bool is_in_hook;

/* The range is about to lose its pages. */
static void announce(const void *start, size_t size)
{
    static const size_t sizes[] = {40, 3000, 30000, 100000, 5 * MIB, 40 * MIB};
    uintptr_t first = (uintptr_t)start & ~(uintptr_t)(PAGE - 1);
    check_eq(pthread_mutex_lock(&registry), 0);
    announced_count++;
    for (uintptr_t at = first; at < (uintptr_t)start + size; at += PAGE) {
        page_t *page = page_at(at, false);
        if (page != NULL) page->is_registered = false;
    }
    check_eq(pthread_mutex_unlock(&registry), 0);
    if (is_in_hook) return;
    is_in_hook = true;
    for (size_t which = 0; which < sizeof sizes / sizeof *sizes; which++) {
        char *volatile block = malloc(sizes[which]);
        char *volatile other = malloc(64);
        if (sizes[which] < MIB) { /* what realloc copies must look as what the program writes */
            memset(block, PATTERN, malloc_usable_size(block));
            block = realloc(block, sizes[which] * 2);
        }
        free(block);
        free(other);
    }
    is_in_hook = false;
}

static int hooked_munmap(void *start, size_t size)
{
    announce(start, size);
    int result = (int)syscall(SYS_munmap, start, size);
    errno = HOOK_ERRNO;
    return result;
}

static int hooked_madvise(void *start, size_t size, int advice)
{
    if (advice == MADV_DONTNEED) announce(start, size);
    int result = (int)syscall(SYS_madvise, start, size, advice);
    errno = HOOK_ERRNO;
    return result;
}

static void *hooked_mremap(void *start, size_t old_size, size_t new_size, int flags, ...)
{
    va_list more;
    va_start(more, flags);
    void *wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void *) : NULL;
    va_end(more);
    announce(start, old_size);
    void *result = (void *)syscall(SYS_mremap, start, old_size, new_size, flags, wanted);
    errno = HOOK_ERRNO;
    return result;
}

#ifdef INTERPOSE
int munmap(void *start, size_t size) { return hooked_munmap(start, size); }
int madvise(void *start, size_t size, int advice) { return hooked_madvise(start, size, advice); }
void *mremap(void *start, size_t old_size, size_t new_size, int flags, ...)
{
    return hooked_mremap(start, old_size, new_size, flags);
}
static void set_hooks(void) {}
#elif defined __x86_64__
/* The function begins with a jump to the hook from now on: jmp *0(%rip), and the address. */
static void patch(const char *name, uintptr_t hook)
{
    unsigned char jump[14] = {0xff, 0x25};
    char *function = dlsym(RTLD_DEFAULT, name);
    check(function != NULL);
    char *page = (char *)((uintptr_t)function & ~(uintptr_t)(PAGE - 1));
    memcpy(jump + 6, &hook, sizeof hook);
    if (mprotect(page, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC) != 0)
        check_skip("code cannot be written to here");
    memcpy(function, jump, sizeof jump);
}

static void set_hooks(void)
{
    patch("munmap", (uintptr_t)hooked_munmap);
    patch("madvise", (uintptr_t)hooked_madvise);
    patch("mremap", (uintptr_t)hooked_mremap);
}
#else
static void set_hooks(void) { check_skip("the patch is of x86-64"); }
#endif

/* ---- a program ---- */

/* The heap's own function; NULL with another heap. */
static size_t (*purge)(void);
static size_t most_bytes;
static pthread_barrier_t start_line;

typedef struct worker {
    uint64_t random;
    char *blocks[SLOTS];
    size_t sizes[SLOTS];
    size_t bytes;
} worker_t;

static uint64_t next_random(worker_t *self)
{
    self->random ^= self->random << 13;
    self->random ^= self->random >> 7;
    return self->random ^= self->random << 17;
}

/* From 100 bytes to 100 MB, or as much as a thread may have: as often of each order. */
static size_t random_size(worker_t *self)
{
    size_t size = (size_t)100 << next_random(self) % 20;
    size += next_random(self) % size;
    return size < most_bytes / 3 ? size : 100 + next_random(self) % 10000;
}

static void let_go(worker_t *self, unsigned slot)
{
    errno = OWN_ERRNO;
    free(self->blocks[slot]);
    check_eq(errno, OWN_ERRNO);
    self->bytes -= self->sizes[slot];
    self->sizes[slot] = 0;
    self->blocks[slot] = NULL;
}

/* Small ones shrink and grow over the bounds at which other parts of the heap serve them. */
static void resize(worker_t *self, unsigned slot)
{
    static const size_t bounds[] = {32 * KIB, 4 * MIB, 32 * MIB};
    size_t bound = bounds[next_random(self) % 3];
    size_t size = bound - bound / 4 + next_random(self) % (bound / 2);
    size_t before = self->sizes[slot];
    if (self->bytes + size > most_bytes) size = 100 + next_random(self) % 1000;
    char *block = realloc(self->blocks[slot], size);
    use(block);
    self->blocks[slot] = block;
    self->sizes[slot] = size;
    self->bytes += size - before;
}

static void step(worker_t *self)
{
    unsigned slot = (unsigned)(next_random(self) % SLOTS);
    uint64_t what = next_random(self) % 8;
    if (self->blocks[slot] != NULL && what >= 3) {
        let_go(self, slot);
    } else if (what < 2) {
        resize(self, slot);
    } else if (self->blocks[slot] == NULL) {
        size_t size = random_size(self);
        if (self->bytes + size > most_bytes) return;
        self->blocks[slot] = malloc(size);
        use(self->blocks[slot]);
        self->sizes[slot] = size;
        self->bytes += size;
    }
}

/* Of many small blocks few stay for a while, so that single pages of slabs go. */
static void use_small(worker_t *self)
{
    enum { COUNT = 4000 };
    char *blocks[COUNT];
    size_t size = 100 + next_random(self) % 3000;
    for (unsigned at = 0; at < COUNT; at++) use(blocks[at] = malloc(size));
    for (unsigned at = 0; at < COUNT; at++)
        if (at % 200 != 0) free(blocks[at]);
    if (next_random(self) % 2 == 0) (void)malloc_trim(0);
    (void)usleep(120000);
    for (unsigned at = 0; at < COUNT; at += 200) free(blocks[at]);
}

static void *work(void *random)
{
    worker_t self = {.random = (uint64_t)(uintptr_t)random};
    (void)pthread_barrier_wait(&start_line); /* pthread_create clears memory that it allocates */
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned count = 0; count < 100; count++) step(&self);
        for (unsigned slot = 0; slot < SLOTS && round % 3 == 0; slot++) let_go(&self, slot);
        if (round % 4 == 1 && purge != NULL) (void)purge();
        use_small(&self);
    }
    for (unsigned slot = 0; slot < SLOTS; slot++) let_go(&self, slot);
    return NULL;
}

/* hooked THREADS */
int main(int argc, char **argv)
{
    pthread_t threads[THREADS_MOST];
    unsigned long count = argc > 1 ? strtoul(argv[1], NULL, 10) : 1;
    check(count - 1 < THREADS_MOST);
    *(void **)&purge = dlsym(RTLD_DEFAULT, "hakmem_purge");
    most_bytes = 240 * (size_t)MIB / count;
    set_hooks();
    check_eq(pthread_barrier_init(&start_line, NULL, (unsigned)count), 0);
    for (uintptr_t at = 1; at < count; at++)
        check_eq(pthread_create(&threads[at], NULL, work, (void *)at), 0);
    (void)work((void *)(uintptr_t)99);
    for (unsigned at = 1; at < count; at++) check_eq(pthread_join(threads[at], NULL), 0);
    for (size_t at = 0; at < PAGES_MOST; at++) check_page(&pages[at]);
    check(announced_count > 0);
    (void)printf("%zu pages, %zu announcements\n", page_count, announced_count);
    return 0;
}
