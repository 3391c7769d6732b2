/*
 * The floor: an allocator that does nothing but hand back memory fast enough to keep a benchmark
 * honest. What a benchmark costs on it is the cost of the benchmark; the laboratory subtracts it.
 *
 * A block is preceded by a header of 16 bytes that holds its class. Classes are steps of 16 bytes
 * up to 1 KiB, then four to each doubling: finer steps above would measure page faults on blocks
 * that are never reused. A thread has one linked list per class, last in, first out, and no
 * checks. A list that reaches CHAIN_LENGTH goes whole to a shared stack of chains, from which a
 * thread with an empty list takes one: so memory freed by a consumer returns to its producer. The
 * lists of a thread that ends pass to the next one. Nothing is ever given back to the kernel.
 *
 * Never for users. Built alone, without link-time optimisation, which would inline it away.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
    GRANULE = 16,
    LINEAR_CLASSES = 64, /* class c holds (c + 1) * 16 bytes; the last one 1 KiB */
    LINEAR_SHIFT = 10,
    STEP_SHIFT = 2, /* four steps to each doubling */
    CLASS_COUNT = LINEAR_CLASSES + ((63 - LINEAR_SHIFT) << STEP_SHIFT),
    ALIGNED_MARK = 65535, /* the class of a header in front of an aligned block */
    LARGEST_CARVED = 64 << 10,
    CHAIN_LENGTH = 256,
    CHUNK_SIZE = 8 << 20
};

typedef struct block {
    uint64_t class;
    struct block *origin; /* of an aligned block: the block that it lies in */
    struct block *next;   /* of a free block */
    struct block *next_chain;
} block_t;

enum { HEADER_SIZE = offsetof(block_t, next) };

typedef struct list {
    block_t *head;
    size_t length;
} list_t;

typedef struct lists {
    list_t lists[CLASS_COUNT];
    char *chunk;
    char *chunk_end;
    struct lists *next; /* while no thread has them */
} lists_t;

static lists_t empty_lists;
static __thread lists_t *own __attribute__((tls_model("initial-exec"))) = &empty_lists;
static block_t *chains[CLASS_COUNT];
static lists_t *orphans;
static atomic_flag shared_lock = ATOMIC_FLAG_INIT;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void lock_shared(void)
{
    /* acquire: pairs with the release in unlock_shared */
    while (atomic_flag_test_and_set_explicit(&shared_lock, memory_order_acquire)) sched_yield();
}

static void unlock_shared(void)
{
    /* release: pairs with the acquire in lock_shared */
    atomic_flag_clear_explicit(&shared_lock, memory_order_release);
}

static void *map(size_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void *start = mmap(NULL, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    return start == MAP_FAILED ? NULL : start;
}

static void give_lists(void *argument)
{
    lists_t *lists = argument;
    own = &empty_lists;
    lock_shared();
    lists->next = orphans;
    orphans = lists;
    unlock_shared();
}

static void create_key(void)
{
    pthread_key_create(&thread_end, give_lists);
}

static bool take_lists(void)
{
    pthread_once(&thread_end_once, create_key);
    lock_shared();
    lists_t *lists = orphans;
    if (lists != NULL) orphans = lists->next;
    unlock_shared();
    if (lists == NULL) lists = map(sizeof(lists_t));
    if (lists == NULL) return false;
    own = lists;
    pthread_setspecific(thread_end, lists);
    return true;
}

static inline size_t class_of(size_t size)
{
    if (size <= LINEAR_CLASSES * GRANULE) return (size + (size == 0) - 1) / GRANULE;
    size_t top_bit = 63 - (size_t)__builtin_clzl(size - 1);
    size_t step = ((size - 1) >> (top_bit - STEP_SHIFT)) & ((1 << STEP_SHIFT) - 1);
    return LINEAR_CLASSES + ((top_bit - LINEAR_SHIFT) << STEP_SHIFT) + step;
}

static inline size_t class_size(size_t class)
{
    if (class < LINEAR_CLASSES) return (class + 1) * GRANULE;
    size_t top_bit = LINEAR_SHIFT + ((class - LINEAR_CLASSES) >> STEP_SHIFT);
    size_t step = (class - LINEAR_CLASSES) & ((1 << STEP_SHIFT) - 1);
    return ((1 << STEP_SHIFT) + step + 1) << (top_bit - STEP_SHIFT);
}

/* The next chain of the class, or NULL. */
static block_t *take_chain(size_t class)
{
    if (chains[class] == NULL) return NULL;
    lock_shared();
    block_t *chain = chains[class];
    if (chain != NULL) chains[class] = chain->next_chain;
    unlock_shared();
    return chain;
}

static __attribute__((noinline)) void give_chain(list_t *list, size_t class)
{
    block_t *chain = list->head;
    list->head = NULL;
    list->length = 0;
    lock_shared();
    chain->next_chain = chains[class];
    chains[class] = chain;
    unlock_shared();
}

/* A block never used before: small ones from the chunk of the thread, others mapped. */
static block_t *carve(lists_t *lists, size_t class)
{
    size_t size = class_size(class) + HEADER_SIZE;
    if (class_size(class) > LARGEST_CARVED) return map(size);
    if ((size_t)(lists->chunk_end - lists->chunk) < size) {
        char *chunk = map(CHUNK_SIZE);
        if (chunk == NULL) return NULL;
        lists->chunk = chunk;
        lists->chunk_end = chunk + CHUNK_SIZE;
    }
    block_t *block = (block_t *)(void *)lists->chunk;
    lists->chunk += size;
    return block;
}

static __attribute__((noinline)) void *malloc_slow(size_t size)
{
    block_t *block = NULL;
    size_t class = class_of(size);
    if (size <= (size_t)PTRDIFF_MAX && class < CLASS_COUNT) {
        if (own == &empty_lists && !take_lists()) return NULL;
        block = take_chain(class);
        if (block != NULL) {
            own->lists[class] = (list_t){block->next, CHAIN_LENGTH - 1};
            return &block->next;
        }
        block = carve(own, class);
    }
    if (block == NULL) {
        errno = ENOMEM;
        return NULL;
    }
    block->class = class;
    return &block->next;
}

static inline block_t *block_of(void *start)
{
    return (block_t *)(void *)((char *)start - HEADER_SIZE);
}

static inline void *allocate(size_t size)
{
    size_t class = class_of(size);
    if (class >= CLASS_COUNT) return malloc_slow(size);
    list_t *list = &own->lists[class];
    block_t *block = list->head;
    if (block == NULL) return malloc_slow(size);
    list->head = block->next;
    list->length--;
    return &block->next;
}

void *malloc(size_t size)
{
    return allocate(size);
}

void free(void *start)
{
    if (start == NULL) return;
    block_t *block = block_of(start);
    if (block->class == ALIGNED_MARK) block = block->origin;
    if (own == &empty_lists && !take_lists()) return;
    list_t *list = &own->lists[block->class];
    block->next = list->head;
    list->head = block;
    if (++list->length >= CHAIN_LENGTH) give_chain(list, block->class);
}

static size_t usable_size(void *start)
{
    block_t *block = block_of(start);
    if (block->class != ALIGNED_MARK) return class_size(block->class);
    char *end = (char *)&block->origin->next + class_size(block->origin->class);
    return (size_t)(end - (char *)start);
}

void *calloc(size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total)) {
        errno = ENOMEM;
        return NULL;
    }
    void *start = allocate(total); /* malloc here would be turned into calloc */
    return start == NULL ? NULL : memset(start, 0, total);
}

/* Moves the pages of a mapped block, as a growing buffer wants it; NULL if it is not mapped. */
static void *grow_mapping(void *start, size_t size)
{
    block_t *block = block_of(start);
    size_t class = class_of(size);
    if (block->class >= CLASS_COUNT || class_size(block->class) <= LARGEST_CARVED) return NULL;
    if (class >= CLASS_COUNT) return NULL;
    block = mremap(block, class_size(block->class) + HEADER_SIZE, class_size(class) + HEADER_SIZE,
                   MREMAP_MAYMOVE);
    if (block == MAP_FAILED) return NULL;
    block->class = class;
    return &block->next;
}

void *realloc(void *start, size_t size)
{
    if (start == NULL) return malloc(size);
    if (size == 0) {
        free(start);
        return NULL;
    }
    size_t old_size = usable_size(start);
    if (size <= old_size) return start;
    void *moved = grow_mapping(start, size);
    if (moved != NULL) return moved;
    moved = malloc(size);
    if (moved == NULL) return NULL;
    memcpy(moved, start, old_size);
    free(start);
    return moved;
}

static void *allocate_aligned(size_t alignment, size_t size)
{
    if (alignment <= GRANULE) return malloc(size);
    if (size > (size_t)PTRDIFF_MAX - alignment - HEADER_SIZE) {
        errno = ENOMEM;
        return NULL;
    }
    char *start = malloc(size + alignment + HEADER_SIZE);
    if (start == NULL) return NULL;
    uintptr_t address = ((uintptr_t)start + HEADER_SIZE + alignment - 1) & ~(alignment - 1);
    block_t *aligned = block_of((void *)address);
    aligned->class = ALIGNED_MARK;
    aligned->origin = block_of(start);
    return &aligned->next;
}

/* Declared here: the system's headers for these bring builtin attributes that do not fit. */
void *aligned_alloc(size_t alignment, size_t size);
void *memalign(size_t alignment, size_t size);
void *valloc(size_t size);
void *pvalloc(size_t size);
size_t malloc_usable_size(void *start);

void *aligned_alloc(size_t alignment, size_t size)
{
    return allocate_aligned(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
    return allocate_aligned(alignment, size);
}

int posix_memalign(void **result, size_t alignment, size_t size)
{
    void *start = allocate_aligned(alignment, size);
    if (start == NULL) return ENOMEM;
    *result = start;
    return 0;
}

void *valloc(size_t size)
{
    return allocate_aligned(4096, size);
}

void *pvalloc(size_t size)
{
    return allocate_aligned(4096, (size + 4095) & ~(size_t)4095);
}

size_t malloc_usable_size(void *start)
{
    return start == NULL ? 0 : usable_size(start);
}
