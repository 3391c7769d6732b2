/* Heaps of the program's own (hakmem_heap_new and the rest): their blocks are blocks like any
   other, stay in their heap, and go with it. */
#include "adds_up.h"
#include "check.h"
#include "heap.h"
#include "preload/weak.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

enum { SIZE_COUNT = 14, BLOCKS = 400 };
static const size_t sizes[SIZE_COUNT] = {1,    16,    17,     100,     1000,    1024,     1025,
                                         8000, 32768, 32769, 100000, 1 << 20, 5 << 20, 40 << 20};

static hakmem_statistics_t now(void)
{
    hakmem_statistics_t statistics;
    check(hakmem_get_statistics(&statistics));
    return statistics;
}

static hakmem_heap_t *new_heap(void)
{
    hakmem_heap_t *heap = hakmem_heap_new();
    check(heap != NULL);
    return heap;
}

static unsigned char *fill(void *block, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++) ((unsigned char *)block)[i] = heap_pattern(i, seed);
    return block;
}

static void check_filled(const void *block, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        check(((const unsigned char *)block)[i] == heap_pattern(i, seed));
}

test(blocks_of_all_sizes_come_from_the_heap_and_are_freed_like_others)
{
    hakmem_heap_t *heap = new_heap();
    for (unsigned i = 0; i < SIZE_COUNT; i++) {
        void *block = hidden(hakmem_heap_malloc(heap, sizes[i]));
        check(block != NULL && heap_is_aligned(block, 16));
        check(hakmem_heap_of(block) == heap);
        check(malloc_usable_size(block) >= sizes[i]);
        check_filled(fill(block, sizes[i], i), sizes[i], i);
        free(block);
        void *other = hidden(malloc(sizes[i]));
        check(hakmem_heap_of(other) == NULL);
        free(other);
    }
    check(hakmem_heap_of(NULL) == NULL && hakmem_heap_of(&heap) == NULL);
    hakmem_heap_destroy(heap);
}

test(all_blocks_go_with_the_heap)
{
    free(hidden(malloc(1)));
    hakmem_heap_destroy(new_heap());
    const size_t before = now().used;
    hakmem_heap_t *heap = new_heap();
    hakmem_heap_t *other = new_heap();
    void *kept = hidden(hakmem_heap_malloc(other, 1000));
    fill(kept, 1000, 7);
    for (unsigned i = 0; i < BLOCKS; i++) {
        const size_t size = sizes[i % (SIZE_COUNT - 3)];
        check(fill(hidden(hakmem_heap_malloc(heap, size)), size, i) != NULL);
    }
    check(now().used > before + 1000);
    hakmem_heap_destroy(heap);
    check_filled(kept, 1000, 7);
    hakmem_heap_destroy(other);
    check_eq(now().used, before);
    const hakmem_statistics_t is = now();
    check_adds_up(&is);
}

test(the_figures_add_up_while_heaps_have_blocks)
{
    hakmem_heap_t *heap = new_heap();
    static void *blocks[BLOCKS];
    for (unsigned i = 0; i < BLOCKS; i++)
        blocks[i] = hakmem_heap_malloc(heap, sizes[i % (SIZE_COUNT - 3)]);
    for (unsigned i = 0; i < BLOCKS; i += 3) free(blocks[i]);
    const hakmem_statistics_t is = now();
    check_adds_up(&is);
    check(heap_used() == is.used || heap_used() == SIZE_MAX);
    hakmem_heap_destroy(heap);
}

test(realloc_keeps_a_block_in_its_heap)
{
    hakmem_heap_t *heap = new_heap();
    static const size_t steps[] = {10,      100,     24,       40000,   20000,
                                   3 << 20, 9 << 20, 50 << 20, 1 << 20, 5};
    unsigned char *block = fill(hidden(hakmem_heap_malloc(heap, 16)), 16, 3);
    size_t common = 16;
    for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
        block = hidden(realloc(block, steps[i]));
        check(block != NULL && hakmem_heap_of(block) == heap);
        common = steps[i] < common ? steps[i] : common;
        check_filled(block, common, 3);
        common = steps[i];
        fill(block, common, 3);
    }
    free(block);
    hakmem_heap_destroy(heap);
}

test(calloc_of_a_heap_is_zero_also_where_blocks_were)
{
    hakmem_heap_t *heap = new_heap();
    for (unsigned turn = 0; turn < 3; turn++)
        for (unsigned i = 0; i < SIZE_COUNT - 1; i++) {
            unsigned char *block = hidden(hakmem_heap_calloc(heap, 1, sizes[i]));
            for (size_t at = 0; at < sizes[i]; at++) check(block[at] == 0);
            memset(block, 1, sizes[i]);
            free(block);
        }
    hakmem_heap_destroy(heap);
}

test(alignments_hold_in_a_heap)
{
    hakmem_heap_t *heap = new_heap();
    for (size_t alignment = 1; alignment <= (size_t)4 << 20; alignment *= 2)
        for (unsigned i = 0; i < SIZE_COUNT - 2; i += 3) {
            void *block = hidden(hakmem_heap_aligned_alloc(heap, alignment, sizes[i]));
            check(block != NULL && heap_is_aligned(block, alignment));
            check(hakmem_heap_of(block) == heap);
            if (i % 2 == 0) free(block);
        }
    hakmem_heap_destroy(heap);
}

test(what_cannot_be_had_is_said_as_ever)
{
    hakmem_heap_t *heap = new_heap();
    errno = 0;
    check(hakmem_heap_malloc(heap, hidden_size(SIZE_MAX)) == NULL && errno == ENOMEM);
    errno = 0;
    check(hakmem_heap_calloc(heap, hidden_size(SIZE_MAX / 2), 3) == NULL && errno == ENOMEM);
    errno = 0;
    check(hakmem_heap_aligned_alloc(heap, 48, 10) == NULL && errno == EINVAL);
    hakmem_heap_destroy(heap);
    hakmem_heap_destroy(NULL);
}

test(blocks_of_no_bytes_belong_to_the_heap_too)
{
    free(hidden(malloc(1)));
    const size_t before = now().used;
    hakmem_heap_t *heap = new_heap();
    for (unsigned i = 0; i < BLOCKS; i++)
        check(hakmem_heap_of(hidden(hakmem_heap_malloc(heap, 0))) == heap);
    void *grown = realloc(hidden(hakmem_heap_calloc(heap, 0, 8)), 100);
    check(hakmem_heap_of(hidden(grown)) == heap);
    hakmem_heap_destroy(heap);
    check_eq(now().used, before);
}

test(what_is_no_block_in_use_has_no_heap)
{
    hakmem_heap_t *heap = new_heap();
    void *kept = hakmem_heap_malloc(heap, 100);
    char *small = hidden(hakmem_heap_malloc(heap, 100));
    char *large = hidden(hakmem_heap_malloc(heap, 100000));
    check(hakmem_heap_of(small + 16) == NULL && hakmem_heap_of(large + 4096) == NULL);
    free(small);
    free(large);
    check(hakmem_heap_of(hidden(small)) == NULL && hakmem_heap_of(hidden(large)) == NULL);
    check(hakmem_heap_of(kept) == heap);
    hakmem_heap_destroy(heap);
}

test(thousands_of_heaps_come_and_go)
{
    enum { MANY = 3000 };
    static hakmem_heap_t *heaps[MANY];
    const size_t before = now().used;
    for (unsigned turn = 0; turn < 3; turn++) {
        for (unsigned i = 0; i < MANY; i++) {
            heaps[i] = new_heap();
            fill(hidden(hakmem_heap_malloc(heaps[i], 500)), 500, i);
        }
        for (unsigned i = 0; i < MANY; i++) hakmem_heap_destroy(heaps[(i * 7) % MANY]);
    }
    check_eq(now().used, before);
}

test(a_heap_tells_what_it_has)
{
    hakmem_heap_statistics_t has;
    hakmem_heap_t *heap = new_heap();
    hakmem_heap_t *other = new_heap();
    check(!hakmem_heap_get_statistics(heap, NULL) && !hakmem_heap_get_statistics(NULL, &has));
    check(hakmem_heap_get_statistics(heap, &has));
    check_eq(has.used + has.used_count + has.mapped, 0);
    void *small = hakmem_heap_malloc(heap, 100);
    void *large = hakmem_heap_malloc(heap, 200000);
    check(small != NULL && large != NULL && hakmem_heap_malloc(other, 100) != NULL);
    check(hakmem_heap_get_statistics(heap, &has));
    check_eq(has.used_count, 2);
    check(has.used >= 200100 && has.used < 250000 && has.mapped >= has.used);
    large = realloc(large, 400000);
    check(hakmem_heap_get_statistics(heap, &has));
    check(has.used_count == 2 && has.used >= 400100);
    free(small);
    free(large);
    check(hakmem_heap_get_statistics(heap, &has));
    check_eq(has.used + has.used_count + has.mapped, 0);
    hakmem_heap_destroy(heap);
    hakmem_heap_destroy(other);
}

/* ---- threads ---- */

static hakmem_heap_t *shared;
static void *slots[BLOCKS];

static void *replace_blocks(void *argument)
{
    uint64_t state = (uintptr_t)argument;
    for (unsigned turn = 0; turn < 20000; turn++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const size_t size = sizes[(state >> 40) % (SIZE_COUNT - 3)];
        unsigned char *block = hakmem_heap_malloc(shared, size);
        check(block != NULL);
        block[0] = block[size - 1] = 1;
        free(__atomic_exchange_n(&slots[(state >> 33) % BLOCKS], block, __ATOMIC_ACQ_REL));
    }
    return NULL;
}

test(threads_share_a_heap_and_free_each_others_blocks)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    shared = new_heap();
    for (uintptr_t i = 0; i < THREADS; i++)
        check_eq(pthread_create(&threads[i], NULL, replace_blocks, (void *)(i + 1)), 0);
    for (unsigned i = 0; i < THREADS; i++) check_eq(pthread_join(threads[i], NULL), 0);
    for (unsigned i = 0; i < BLOCKS; i += 2) free(slots[i]);
    hakmem_heap_destroy(shared);
}

/* ---- children ---- */

/* The status of a child that does `work`. */
static int status_of(void (*work)(void))
{
    (void)fflush(stdout);
    const pid_t child = fork();
    check(child >= 0);
    if (child == 0) {
        (void)fclose(stderr);
        work();
        _exit(0);
    }
    int status;
    check(waitpid(child, &status, 0) == child);
    return status;
}

static void use_heaps(void)
{
    void *block = hakmem_heap_malloc(shared, 100);
    check(hakmem_heap_of(block) == shared);
    hakmem_heap_destroy(shared);
    hakmem_heap_destroy(new_heap());
}

test(a_child_has_the_heaps_of_its_parent)
{
    shared = new_heap();
    free(hidden(hakmem_heap_malloc(shared, 100)));
    check_eq(status_of(use_heaps), 0);
    hakmem_heap_destroy(shared);
}

static void *fork_some(void *unused)
{
    for (unsigned i = 0; i < 20; i++) {
        const pid_t child = fork();
        check(child >= 0);
        if (child == 0) {
            for (size_t turn = 0; turn < 100; turn++)
                free(hidden(hakmem_heap_malloc(shared, turn * 50)));
            _exit(0);
        }
        int status;
        check(waitpid(child, &status, 0) == child);
        check_eq(status, 0);
    }
    return unused;
}

test(a_child_has_a_heap_that_other_threads_were_using)
{
    pthread_t threads[3];
    shared = new_heap();
    memset(slots, 0, sizeof slots);
    for (uintptr_t i = 0; i < 3; i++)
        check_eq(pthread_create(&threads[i], NULL, i == 0 ? fork_some : replace_blocks,
                                (void *)(i + 1)), 0);
    for (unsigned i = 0; i < 3; i++) check_eq(pthread_join(threads[i], NULL), 0);
    hakmem_heap_destroy(shared);
}

static void free_twice(void)
{
    void *first = hakmem_heap_malloc(shared, 100);
    void *second = hakmem_heap_malloc(shared, 100);
    free(hidden(first));
    free(hidden(hakmem_heap_malloc(shared, 5000)));
    free(hidden(first));
    free(second);
}

static void free_inside(void)
{
    free((char *)hidden(hakmem_heap_malloc(shared, 100)) + 16);
}

static void free_large_twice(void)
{
    void *block = hidden(hakmem_heap_malloc(shared, 100000));
    free(block);
    free(hidden(block));
}

static void destroy_twice(void)
{
    hakmem_heap_destroy(shared);
    hakmem_heap_destroy(hidden(shared));
}

static void allocate_in_destroyed(void)
{
    hakmem_heap_destroy(shared);
    (void)hidden(hakmem_heap_malloc(hidden(shared), 100));
}

/* No cache stands between such a block and its slab. */
test(wrong_frees_are_found_at_once_in_every_mode)
{
    static void (*const wrong[])(void) = {free_twice, free_inside, free_large_twice, destroy_twice,
                                          allocate_in_destroyed};
    shared = new_heap();
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const int status = status_of(wrong[i]);
        check(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    }
    hakmem_heap_destroy(shared);
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem()) check_skip("needs HAKMEM");
    return check_run(argc, argv);
}
