/* malloc_usable_size: at least what was asked, at most a little more, constant, all of it ours. */
#include "check.h"
#include "heap.h"

test(null_has_no_size)
{
    check_eq(malloc_usable_size(hidden(NULL)), 0);
}

test(small_and_medium_waste_at_most_an_eighth)
{
    if (!heap_is_hakmem()) return;
    for (size_t size = 1; size <= 32768; size++) {
        void *block = hidden(malloc(size));
        const size_t usable = malloc_usable_size(block);
        check(usable >= size);
        check(usable <= size + 15 || usable - size <= usable / 8);
        free(block);
    }
}

test(large_and_huge_waste_at_most_an_eighth)
{
    if (!heap_is_hakmem()) return;
    for (size_t size = 32769; size <= (size_t)64 << 20; size += size / 3) {
        void *block = hidden(malloc(size));
        const size_t usable = malloc_usable_size(block);
        check(usable >= size);
        check(usable - size <= usable / 8 || usable - size < 65536);
        free(block);
    }
}

/* Whatever was freed before: above 64 KiB a cached block may serve that is a quarter longer than a
   fresh one. */
static void check_loss(size_t size, size_t usable)
{
    check(usable >= size);
    check(usable - size <= (size <= 65536 ? size / 4 : size / 8 * 3));
}

test(blocks_above_the_size_classes_lose_little_to_rounding)
{
    enum { COUNT = 64, MOST = 6 << 20 };
    static void *blocks[COUNT];
    if (!heap_is_hakmem()) return;
    for (size_t round = 0, size = 32769; round < 20000; round++, size += size / 61) {
        if (size > MOST) size = 32769 + round;
        void **place = &blocks[round * 7 % COUNT];
        if (round % 3 != 0) free(*place), *place = NULL;
        else free(hidden(malloc(size)));
        if (*place != NULL) continue;
        *place = hidden(malloc(size));
        check_loss(size, malloc_usable_size(*place));
    }
    for (unsigned i = 0; i < COUNT; i++) free(blocks[i]);
}

test(between_32_and_64_kib_blocks_lose_less_than_8_kib)
{
    if (!heap_is_hakmem()) return;
    for (size_t size = 65536; size > 32768; size -= 13) {
        void *block = hidden(malloc(size));
        check(malloc_usable_size(block) - size < 8192);
        free(block);
    }
}

test(the_size_is_constant_while_the_block_lives)
{
    enum { COUNT = 400 };
    static void *blocks[COUNT];
    static size_t sizes[COUNT];
    for (size_t i = 0; i < COUNT; i++) {
        blocks[i] = hidden(i % 5 == 0 ? memalign(64, i * 101 + 1) : malloc(i * 101 + 1));
        sizes[i] = malloc_usable_size(blocks[i]);
    }
    for (size_t i = 0; i < COUNT; i += 3) {
        free(blocks[i]);
        blocks[i] = NULL;
    }
    (void)malloc_trim(0);
    for (size_t i = 0; i < COUNT; i++) {
        if (blocks[i] == NULL) continue;
        check_eq(malloc_usable_size(blocks[i]), sizes[i]);
        free(blocks[i]);
    }
}

test(all_of_it_is_writable_without_harm_to_neighbours)
{
    enum { COUNT = 64 };
    static void *blocks[COUNT];
    for (size_t size = 0; size <= 400000; size = size * 5 / 4 + 1) {
        for (unsigned i = 0; i < COUNT; i++) {
            blocks[i] = hidden(malloc(size));
            check(blocks[i] != NULL);
            heap_fill(blocks[i], malloc_usable_size(blocks[i]), i);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            check(heap_holds(blocks[i], malloc_usable_size(blocks[i]), i));
            free(blocks[i]);
        }
    }
}

test(all_of_an_aligned_block_is_writable)
{
    enum { COUNT = 32 };
    static void *blocks[COUNT];
    for (size_t alignment = 32; alignment <= 1048576; alignment *= 8) {
        for (unsigned i = 0; i < COUNT; i++) {
            blocks[i] = hidden(memalign(alignment, 100 + i));
            check(blocks[i] != NULL && malloc_usable_size(blocks[i]) >= 100 + i);
            heap_fill(blocks[i], malloc_usable_size(blocks[i]), i);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            check(heap_holds(blocks[i], malloc_usable_size(blocks[i]), i));
            free(blocks[i]);
        }
    }
}

check_main()
