/* 140,000 blocks of 5 MB, never touched, so that they take addresses and no memory; then every
 * other one is freed. Each hole costs the kernel an entry in its table of mappings (65,530): the
 * program must still be able to map something. Skipped where there are not so many addresses. */
#include "api/heap.h"
#include "check.h"

#include <pthread.h>

enum { COUNT = 140000, SIZE = 5000000 };
static char *blocks[COUNT];

static void *run(void *argument)
{
    return argument;
}

static void check_threads_start(void)
{
    pthread_t threads[20];
    for (size_t i = 0; i < 20; i++) check_eq(pthread_create(&threads[i], NULL, run, NULL), 0);
    for (size_t i = 0; i < 20; i++) check_eq(pthread_join(threads[i], NULL), 0);
}

static size_t lines_of(const char *path)
{
    FILE *file = fopen(path, "r");
    check(file != NULL);
    size_t lines = 0;
    for (int character; (character = fgetc(file)) != EOF;) lines += character == '\n';
    check_eq(fclose(file), 0);
    return lines;
}

static void allocate(size_t from, size_t step)
{
    for (size_t i = from; i < COUNT; i += step) {
        blocks[i] = hidden(malloc(SIZE));
        if (blocks[i] == NULL) check_skip("700 GB of addresses are not to be had");
    }
}

test(every_other_of_very_many_huge_blocks_is_freed_and_threads_still_start)
{
    if (!heap_is_hakmem()) check_skip("it is about the mappings of hakmem");
    allocate(0, 1);
    blocks[1][0] = blocks[1][SIZE - 1] = 1;
    for (size_t i = 0; i < COUNT; i += 2) free(blocks[i]);
    const size_t holes = lines_of("/proc/self/maps");
    (void)printf("%zu mappings with every other block freed\n", holes);
    check(holes < 40000); /* half of the table, and what a program has */
    check_threads_start();
    allocate(0, 2);
    check_threads_start();
    check(blocks[1][0] == 1 && blocks[1][SIZE - 1] == 1);
    for (size_t i = 0; i < COUNT; i++) free(blocks[(i * 7919 + 1) % COUNT]); /* in any order */
    check_threads_start();
    (void)malloc_trim(0);
    const size_t mappings = lines_of("/proc/self/maps");
    (void)printf("%zu mappings with all freed\n", mappings);
    check(mappings < 1000);
}

check_main()
