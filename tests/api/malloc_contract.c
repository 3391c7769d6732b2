/* malloc and free: alignment, distinct addresses, writable to the last byte, contents kept. */
#include "check.h"
#include "heap.h"

#include <errno.h>

enum { LIVE_COUNT = 20000 };
static char *live[LIVE_COUNT];

test(malloc_of_zero_is_unique_and_freeable)
{
    enum { COUNT = 100 };
    void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = hidden(malloc(hidden_size(0)));
        check(blocks[i] != NULL);
        for (size_t k = 0; k < i; k++) check(blocks[i] != blocks[k]);
    }
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
}

test(every_size_to_40000_is_aligned_and_writable)
{
    for (size_t size = 1; size <= 40000; size++) {
        char *block = hidden(malloc(size));
        check(block != NULL);
        check(heap_is_aligned(block, 16));
        block[0] = block[size - 1] = (char)size;
        check(malloc_usable_size(block) >= size);
        free(hidden(block));
    }
}

test(every_size_to_40000_stays_aligned_while_all_live)
{
    for (size_t i = 0; i < LIVE_COUNT; i++) {
        const size_t size = 2 * i + 1;
        live[i] = hidden(malloc(size));
        check(live[i] != NULL && heap_is_aligned(live[i], 16));
        memset(live[i], (int)(i & 0x7f), size);
    }
    for (size_t i = 0; i < LIVE_COUNT; i++) {
        check_eq(live[i][0], i & 0x7f);
        check_eq(live[i][i], i & 0x7f);
        check_eq(live[i][2 * i], i & 0x7f);
        free(live[i]);
    }
}

test(blocks_of_one_size_never_overlap)
{
    static const size_t sizes[] = {1, 16, 24, 48, 100, 1000, 1024, 1025, 5000, 32768, 32769};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        enum { COUNT = 500 };
        for (unsigned i = 0; i < COUNT; i++) {
            live[i] = hidden(malloc(sizes[s]));
            check(live[i] != NULL);
            heap_fill(live[i], sizes[s], i);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            check(heap_holds(live[i], sizes[s], i));
            free(live[i]);
        }
    }
}

test(large_and_huge_blocks_hold_what_was_written)
{
    for (size_t size = 32 * 1024; size <= (size_t)96 << 20; size *= 3) {
        char *first = hidden(malloc(size));
        char *second = hidden(malloc(size + 1));
        check(first != NULL && second != NULL);
        check(heap_is_aligned(first, 16) && heap_is_aligned(second, 16));
        heap_fill(first, size, 1);
        heap_fill(second, size + 1, 2);
        check(heap_holds(first, size, 1));
        free(first);
        check(heap_holds(second, size + 1, 2));
        free(second);
    }
}

test(free_of_null_does_nothing)
{
    errno = 77;
    free(hidden(NULL));
    check_eq(errno, 77);
}

test(freed_memory_is_used_again)
{
    uintptr_t low = UINTPTR_MAX;
    uintptr_t high = 0;
    for (int i = 0; i < 1000000; i++) {
        char *block = hidden(malloc(64));
        check(block != NULL);
        if ((uintptr_t)block < low) low = (uintptr_t)block;
        if ((uintptr_t)block > high) high = (uintptr_t)block;
        free(block);
    }
    check(high - low < (uintptr_t)64 << 20);
}

check_main()
