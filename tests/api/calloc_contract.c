/* calloc: zero everywhere, however dirty the memory was that it got. */
#include "check.h"
#include "heap.h"

#include <errno.h>
#include <sys/mman.h>

static void dirty_and_free(size_t size, size_t count)
{
    enum { LIMIT = 256 };
    static void *blocks[LIMIT];
    check(count <= LIMIT);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hidden(malloc(size));
        check(blocks[i] != NULL);
        memset(blocks[i], 0xee, malloc_usable_size(blocks[i]));
    }
    for (size_t i = 0; i < count; i++) free(blocks[i]);
}

static void expect_zeroed(size_t size, size_t count)
{
    enum { LIMIT = 256 };
    static void *blocks[LIMIT];
    check(count <= LIMIT);
    for (size_t i = 0; i < count; i++) {
        blocks[i] = hidden(calloc(1, size));
        check(blocks[i] != NULL && heap_is_aligned(blocks[i], 16));
        check(heap_is_zero(blocks[i], size));
        memset(blocks[i], 0xee, size);
    }
    for (size_t i = 0; i < count; i++) free(blocks[i]);
}

/* Pages that hold memory, of those that are all within the block. */
static size_t resident_pages(const void *block, size_t size)
{
    static unsigned char state[1 << 15];
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const uintptr_t first = ((uintptr_t)block + page - 1) / page * page;
    const size_t count = ((uintptr_t)block + size - first) / page;
    size_t resident = 0;
    check(count <= sizeof state);
    check_eq(mincore((void *)first, count * page, state), 0); /* NOLINT: from an integer */
    for (size_t i = 0; i < count; i++) resident += state[i] & 1;
    return resident;
}

/* What the kernel has just mapped is zero. The first test: others leave memory that is not. */
test(calloc_of_fresh_large_memory_touches_little_of_it)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    static const size_t sizes[] = {(size_t)1 << 20, (size_t)8 << 20, (size_t)100 << 20};
    for (size_t kind = 0; kind < sizeof sizes / sizeof sizes[0]; kind++) {
        enum { MOST = 40 };
        void *blocks[MOST];
        const size_t count = kind == 2 ? 1 : MOST;
        size_t resident = 0;
        for (size_t i = 0; i < count; i++) {
            blocks[i] = hidden(calloc(1, sizes[kind]));
            check(blocks[i] != NULL);
            resident += resident_pages(blocks[i], sizes[kind]);
        }
        (void)printf("%zu of %zu MiB resident\n", resident * page >> 20, count * sizes[kind] >> 20);
        check(resident * page < count * sizes[kind] / 4);
        for (size_t i = 0; i < count; i++) free(blocks[i]);
    }
}

test(calloc_of_fresh_memory_is_zero)
{
    for (size_t size = 1; size <= 40000; size += 37) expect_zeroed(size, 2);
}

test(calloc_of_small_dirty_memory_is_zero)
{
    for (size_t size = 1; size <= 1100; size += 9) {
        dirty_and_free(size, 200);
        expect_zeroed(size, 200);
    }
}

test(calloc_of_medium_dirty_memory_is_zero)
{
    for (size_t size = 1024; size <= 33000; size += 511) {
        dirty_and_free(size, 40);
        expect_zeroed(size, 40);
    }
}

test(calloc_of_large_dirty_memory_is_zero)
{
    for (size_t size = 32768; size <= (size_t)3 << 20; size += 98765) {
        dirty_and_free(size, 6);
        expect_zeroed(size, 6);
    }
}

test(calloc_of_huge_dirty_memory_is_zero)
{
    for (size_t size = (size_t)4 << 20; size <= (size_t)40 << 20; size += 9999999) {
        dirty_and_free(size, 2);
        expect_zeroed(size, 2);
    }
}

test(calloc_is_zero_after_memory_went_back_and_came_again)
{
    for (size_t size = 16; size <= (size_t)8 << 20; size *= 5) {
        dirty_and_free(size, 20);
        (void)malloc_trim(0);
        expect_zeroed(size, 20);
    }
}

test(calloc_multiplies)
{
    for (size_t count = 1; count < 100; count++) {
        char *block = hidden(calloc(count, 17));
        check(block != NULL && malloc_usable_size(block) >= count * 17);
        check(heap_is_zero(block, count * 17));
        free(block);
    }
}

test(calloc_of_nothing_is_unique_and_freeable)
{
    void *first = hidden(calloc(hidden_size(0), 8));
    void *second = hidden(calloc(8, hidden_size(0)));
    void *third = hidden(calloc(hidden_size(0), hidden_size(SIZE_MAX)));
    check(first != NULL && second != NULL && third != NULL);
    check(first != second && second != third && first != third);
    free(first);
    free(second);
    free(third);
}

check_main()
