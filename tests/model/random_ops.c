/* Random calls against a naive model: random_ops [operations] [seed] [threads]; without a number of
   threads, one run with one thread and one with four.

   The model is a sorted array of live blocks, each with the bytes it must hold. Every result is
   checked against it: aligned, no overlap with any live block, zero after calloc, contents kept by
   realloc and by time, usable size constant, errno right. The model's own memory is static, so the
   allocator under test serves nothing but the calls under test. With several threads, blocks pass
   between them through a shelf, and the one model (under its own lock) sees all of them.

   The leak oracle: when everything is freed, the allocator counts as many bytes as at the start. */
#include "api/heap.h"
#include "check.h"
#include "model/shadow.h"
#include "preload/weak.h"

#include <errno.h>
#include <pthread.h>

/* A block that realloc makes as long as this gets a mapping of its own (src/options/tuning.h). */
enum { GROWN_MIN = 4 << 20, SLOT_COUNT = 512, SHELF_COUNT = 64, THREADS_MAX = 8, UNTOUCHED = 77 };

#ifdef __SANITIZE_THREAD__ /* which uses errno itself when it looks a race up in its list */
static const bool errno_is_ours = false;
#else
static const bool errno_is_ours = true;
#endif

typedef struct worker {
    uint64_t random;
    size_t operation_count;
    block_t slots[SLOT_COUNT];
    pthread_t thread;
} worker_t;

static worker_t workers[THREADS_MAX];
static block_t shelf[SHELF_COUNT];
static pthread_mutex_t shelf_lock = PTHREAD_MUTEX_INITIALIZER;

static void check_errno_untouched(void)
{
    if (errno_is_ours) check_eq(errno, UNTOUCHED);
}

static uint64_t random_next(worker_t *worker)
{
    uint64_t x = worker->random += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static size_t random_below(worker_t *worker, size_t bound)
{
    return (size_t)(random_next(worker) % bound);
}

/* Within 32 bytes of a place where an allocator may change its mind: an eighth between two powers
   of two, or a page. Now and then above 64 KiB, rarely above 1 MiB. */
static size_t random_edge(worker_t *worker)
{
    const size_t dice = random_below(worker, 1000);
    const size_t top = dice < 970 ? 16 : dice < 997 ? 20 : 22;
    const size_t power = (size_t)1 << (4 + random_below(worker, top - 3));
    size_t edge = power + power / 8 * random_below(worker, 8);
    if (dice % 8 == 0) edge = (edge + 4095) / 4096 * 4096;
    const size_t size = edge + random_below(worker, 65);
    return size > 32 ? size - 32 : 0;
}

static size_t random_size(worker_t *worker)
{
    const size_t dice = random_below(worker, 2000);
    if (dice < 1200) return random_below(worker, 300);
    if (dice < 1600) return random_below(worker, 5000);
    if (dice < 1700) return random_below(worker, 40000);
    if (dice < 1998) return random_edge(worker);
    if (dice < 1999) return random_below(worker, GROWN_MIN + 1);
    return GROWN_MIN + random_below(worker, 3 * GROWN_MIN);
}

static size_t random_alignment(worker_t *worker)
{
    const size_t dice = random_below(worker, 100);
    return (size_t)1 << (dice < 90 ? 3 + random_below(worker, 7) : 3 + random_below(worker, 15));
}

static void adopt(worker_t *worker, block_t *slot, void *ptr, size_t size, size_t alignment)
{
    check(ptr != NULL);
    check(heap_is_aligned(ptr, alignment < 16 ? 16 : alignment));
    slot->start = (unsigned char *)ptr;
    slot->size = size;
    slot->alignment = alignment;
    slot->usable = malloc_usable_size(ptr);
    slot->seed = random_next(worker);
    check(slot->usable >= size);
    shadow_add(slot);
    shadow_fill(slot);
}

static void allocate(worker_t *worker, block_t *slot)
{
    const size_t size = random_size(worker);
    const size_t alignment = random_alignment(worker);
    void *ptr = NULL;
    errno = UNTOUCHED;
    slot->kind = BLOCK_PLAIN;
    switch (random_below(worker, 8)) {
    case 0:
        ptr = hidden(calloc(1, size));
        check(ptr != NULL && heap_is_zero(ptr, size));
        adopt(worker, slot, ptr, size, 16);
        break;
    case 1:
        ptr = hidden(memalign(alignment, size));
        slot->kind = BLOCK_MEMALIGN;
        adopt(worker, slot, ptr, size, alignment);
        break;
    case 2:
        ptr = hidden(aligned_alloc(alignment, size));
        slot->kind = BLOCK_ALIGNED_ALLOC;
        adopt(worker, slot, ptr, size, alignment);
        break;
    case 3:
        check_eq(posix_memalign(&ptr, alignment, size), 0);
        slot->kind = BLOCK_MEMALIGN;
        adopt(worker, slot, hidden(ptr), size, alignment);
        break;
    case 4:
        adopt(worker, slot, hidden(realloc(hidden(NULL), size)), size, 16);
        break;
    default:
        adopt(worker, slot, hidden(malloc(size)), size, 16);
        break;
    }
    check_errno_untouched();
}

static void release(worker_t *worker, block_t *slot)
{
    shadow_verify(slot, slot->usable);
    check_eq(malloc_usable_size(slot->start), slot->usable);
    shadow_remove(slot);
    const bool sized = random_below(worker, 2) == 0;
    errno = UNTOUCHED;
    if (slot->kind == BLOCK_PLAIN && sized && free_sized != NULL) {
        free_sized(slot->start, slot->size);
    } else if (slot->kind == BLOCK_ALIGNED_ALLOC && sized && free_aligned_sized != NULL) {
        free_aligned_sized(slot->start, slot->alignment, slot->size);
    } else {
        free(slot->start);
    }
    check_errno_untouched();
    slot->start = NULL;
}

/* A third of the time near the old size; a huge block, of which there are few, stays huge then. */
static size_t random_new_size(worker_t *worker, const block_t *slot)
{
    if (random_below(worker, 3) != 0) return random_size(worker);
    if (slot->size >= GROWN_MIN) return GROWN_MIN + random_below(worker, 3 * GROWN_MIN);
    return slot->size + random_below(worker, 40);
}

static void resize(worker_t *worker, block_t *slot)
{
    const size_t size = random_new_size(worker, slot);
    shadow_verify(slot, slot->usable);
    shadow_remove(slot);
    errno = UNTOUCHED;
    if (size == 0) {
        check(hidden(realloc(slot->start, hidden_size(0))) == NULL);
        check_errno_untouched();
        slot->start = NULL;
        return;
    }
    block_t moved = *slot;
    moved.start = hidden(realloc(slot->start, size));
    check(moved.start != NULL);
    check_errno_untouched();
    shadow_verify(&moved, size < slot->size ? size : slot->size);
    slot->kind = BLOCK_PLAIN;
    adopt(worker, slot, moved.start, size, 16);
}

static void ask_for_too_much(worker_t *worker, block_t *slot)
{
    const size_t size = hidden_size(PTRDIFF_MAX + (size_t)1 + random_below(worker, 1 << 20));
    errno = 0;
    check(hidden(malloc(size)) == NULL);
    check_eq(errno, ENOMEM);
    if (slot->start == NULL) return;
    errno = 0;
    check(hidden(realloc(hidden(slot->start), size)) == NULL);
    check_eq(errno, ENOMEM);
    shadow_verify(slot, slot->usable);
}

/* Swaps a block of ours with whatever another thread left there. */
static void hand_off(worker_t *worker, block_t *slot)
{
    block_t *place = &shelf[random_below(worker, SHELF_COUNT)];
    check_eq(pthread_mutex_lock(&shelf_lock), 0);
    const block_t theirs = *place;
    *place = *slot;
    *slot = theirs;
    check_eq(pthread_mutex_unlock(&shelf_lock), 0);
}

static void step(worker_t *worker, bool hands_off)
{
    block_t *slot = &worker->slots[random_below(worker, SLOT_COUNT)];
    const size_t dice = random_below(worker, 1000);
    if (hands_off && dice < 200) {
        hand_off(worker, slot);
    } else if (dice == 999) {
        ask_for_too_much(worker, slot);
    } else if (slot->start == NULL) {
        allocate(worker, slot);
    } else if (dice < 400) {
        resize(worker, slot);
    } else {
        release(worker, slot);
    }
}

static size_t used_bytes(void)
{
    hakmem_statistics_t statistics = {0};
    if (hakmem_get_statistics != NULL) check(hakmem_get_statistics(&statistics));
    return statistics.used;
}

static pthread_barrier_t all_are_here;

static void *wait_for_all(void *unused)
{
    (void)pthread_barrier_wait(&all_are_here);
    return unused;
}

static void *work(void *argument)
{
    worker_t *worker = (worker_t *)argument;
    for (size_t i = 0; i < worker->operation_count; i++) step(worker, true);
    return NULL;
}

static void run_threads(size_t thread_count, void *(*body)(void *))
{
    for (size_t i = 0; i < thread_count; i++) {
        check_eq(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
    for (size_t i = 0; i < thread_count; i++) check_eq(pthread_join(workers[i].thread, NULL), 0);
}

static void release_everything(size_t thread_count)
{
    for (size_t i = 0; i < thread_count; i++) {
        for (size_t k = 0; k < SLOT_COUNT; k++) {
            if (workers[i].slots[k].start != NULL) release(&workers[0], &workers[i].slots[k]);
        }
    }
    for (size_t k = 0; k < SHELF_COUNT; k++) {
        if (shelf[k].start != NULL) release(&workers[0], &shelf[k]);
    }
    check_eq(shadow_count(), 0);
}

/* As many threads at once as later: what the C library keeps with their stacks, it keeps from now
   on. */
static void warm_up(size_t thread_count)
{
    check_eq(pthread_barrier_init(&all_are_here, NULL, (unsigned)thread_count), 0);
    run_threads(thread_count, wait_for_all);
    check_eq(pthread_barrier_destroy(&all_are_here), 0);
}

static void run(size_t operation_count, uint64_t seed, size_t thread_count)
{
    shadow_whole_bytes = GROWN_MIN; /* huge blocks are many pages and few cases */
    check(thread_count >= 1 && thread_count <= THREADS_MAX);
    (void)printf("operations %zu seed %ju threads %zu\n", operation_count, (uintmax_t)seed,
                 thread_count);
    (void)fflush(stdout);
    for (size_t i = 0; i < thread_count; i++) {
        workers[i].random = seed * 1000003 + i;
        workers[i].operation_count = operation_count / thread_count;
    }
    if (thread_count > 1) warm_up(thread_count);
    const size_t used_before = used_bytes();
    if (thread_count == 1) {
        for (size_t i = 0; i < operation_count; i++) step(&workers[0], false);
    } else {
        run_threads(thread_count, work);
    }
    release_everything(thread_count);
    check_eq(used_bytes(), used_before);
}

int main(int argc, char **argv)
{
    const size_t operation_count = argc > 1 ? strtoull(argv[1], NULL, 10) : 500000;
    const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : check_seed(1);
    const size_t thread_count = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    run(operation_count, seed, thread_count);
    if (argc <= 3) run(operation_count, seed, 4);
    (void)puts("ok");
    return 0;
}
