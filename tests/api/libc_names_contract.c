/* The lesser names that are the same on every C library: sized frees and malloc_trim. */
#include "check.h"
#include "heap.h"

#include <errno.h>

test(sized_frees_are_present)
{
    if (heap_is_hakmem()) check(free_sized != NULL && free_aligned_sized != NULL);
}

test(free_sized_takes_blocks_of_malloc_calloc_realloc)
{
    if (!heap_is_hakmem() && free_sized == NULL) return;
    free_sized(hidden(NULL), 10);
    for (size_t size = 0; size <= (size_t)6 << 20; size = size * 3 / 2 + 1) {
        errno = 77;
        free_sized(hidden(malloc(size)), size);
        free_sized(hidden(calloc(1, size)), size);
        free_sized(hidden(realloc(hidden(malloc(8)), size + 1)), size + 1);
        check_eq(errno, 77);
    }
}

test(free_sized_after_realloc_shrank_takes_the_new_size)
{
    if (!heap_is_hakmem() && free_sized == NULL) return;
    for (size_t size = 100; size <= (size_t)6 << 20; size = size * 3 / 2) {
        char *block = hidden(realloc(hidden(malloc(size)), size / 2));
        free_sized(block, size / 2);
        block = hidden(realloc(hidden(malloc(size)), size - 1));
        free_sized(block, size - 1);
    }
}

test(free_aligned_sized_takes_blocks_of_aligned_alloc)
{
    if (!heap_is_hakmem() && free_aligned_sized == NULL) return;
    free_aligned_sized(hidden(NULL), 64, 10);
    for (size_t alignment = 16; alignment <= (size_t)4 << 20; alignment *= 2) {
        errno = 77;
        free_aligned_sized(hidden(aligned_alloc(alignment, 100)), alignment, 100);
        free_aligned_sized(hidden(aligned_alloc(alignment, 50000)), alignment, 50000);
        check_eq(errno, 77);
    }
}

test(malloc_trim_answers_zero_or_one_and_keeps_errno)
{
    enum { COUNT = 2000 };
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) blocks[i] = memset(hidden(malloc(9000)), 1, 9000);
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    const int first = malloc_trim(0);
    check(first == 0 || first == 1);
    if (heap_is_hakmem()) check_eq(first, 1);
    const int second = malloc_trim(SIZE_MAX / 4);
    check(second == 0 || second == 1);
}

check_main()
