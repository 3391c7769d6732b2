/* posix_memalign, aligned_alloc, memalign, valloc, pvalloc: alignment, contents, bad arguments. */
#include "check.h"
#include "heap.h"

#include <errno.h>

enum { PAGE = 4096 };
static const size_t alignment_max = (size_t)16 << 20;

static void use_and_free(char *block, size_t alignment, size_t size)
{
    check(block != NULL);
    check(heap_is_aligned(block, alignment));
    check(malloc_usable_size(block) >= size);
    if (size > 0) block[0] = block[size - 1] = 1;
    free(hidden(block));
}

test(every_power_of_two_to_16_mib_is_honoured)
{
    static const size_t sizes[] = {0,    1,    8,     16,    17,     100,     1000,   1024,  1025,
                                   4095, 4096, 32768, 32769, 100000, 1048576, 5000000};
    for (size_t alignment = sizeof(void *); alignment <= alignment_max; alignment *= 2) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            void *block = NULL;
            check_eq(posix_memalign(&block, alignment, sizes[i]), 0);
            use_and_free(hidden(block), alignment, sizes[i]);
            use_and_free(hidden(memalign(alignment, sizes[i])), alignment, sizes[i]);
            use_and_free(hidden(aligned_alloc(alignment, sizes[i])), alignment, sizes[i]);
        }
    }
}

test(small_alignments_are_served_by_memalign)
{
    for (size_t alignment = 1; alignment < 16; alignment *= 2) {
        use_and_free(hidden(memalign(alignment, 40)), 16, 40);
        use_and_free(hidden(aligned_alloc(alignment, 40)), 16, 40);
    }
}

test(many_aligned_blocks_live_side_by_side)
{
    enum { COUNT = 200 };
    static char *blocks[COUNT];
    for (size_t alignment = 16; alignment <= 65536; alignment *= 2) {
        const size_t size = alignment / 2 + 24;
        for (unsigned i = 0; i < COUNT; i++) {
            blocks[i] = hidden(memalign(alignment, size));
            check(blocks[i] != NULL && heap_is_aligned(blocks[i], alignment));
            heap_fill(blocks[i], malloc_usable_size(blocks[i]), i);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            check(heap_holds(blocks[i], malloc_usable_size(blocks[i]), i));
            free(blocks[i]);
        }
    }
}

test(aligned_and_plain_blocks_of_one_class_mix)
{
    enum { COUNT = 300 };
    static char *blocks[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        blocks[i] = hidden(i % 3 == 0 ? memalign(256, 700) : malloc(700 + i % 60));
        check(blocks[i] != NULL);
        heap_fill(blocks[i], 700, i);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        check(heap_holds(blocks[i], 700, i));
        free(blocks[i]);
    }
}

test(valloc_gives_pages_and_pvalloc_whole_pages)
{
    static const size_t sizes[] = {0, 1, 100, 4095, 4096, 4097, 40000, 3000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        use_and_free(hidden(valloc(sizes[i])), PAGE, sizes[i]);
        const size_t rounded = (sizes[i] + PAGE - 1) / PAGE * PAGE;
        use_and_free(hidden(pvalloc(sizes[i])), PAGE, rounded);
    }
}

test(posix_memalign_refuses_what_is_no_power_of_two)
{
    static const size_t wrong[] = {0, 1, 2, 4, 3, 12, 24, 48, 100, 4095, SIZE_MAX};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        void *block = &block;
        errno = 77;
        check_eq(posix_memalign(&block, hidden_size(wrong[i]), 64), EINVAL);
        check(block == (void *)&block); /* Untouched on failure. */
        check_eq(errno, 77);            /* The result is the error; errno is not its place. */
    }
}

test(aligned_alloc_refuses_what_is_no_power_of_two)
{
    static const size_t wrong[] = {0, 3, 12, 24, 100, 4095};
    if (!heap_is_hakmem()) return; /* Older C libraries round up instead. */
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        errno = 0;
        check(hidden(aligned_alloc(hidden_size(wrong[i]), 64)) == NULL);
        check_eq(errno, EINVAL);
    }
}

test(impossible_alignments_fail_politely)
{
    errno = 0;
    check(hidden(memalign(hidden_size((size_t)1 << 63), 64)) == NULL);
    check(errno == ENOMEM || errno == EINVAL);
    void *block = NULL;
    check_eq(posix_memalign(&block, hidden_size((size_t)1 << 62), 64), ENOMEM);
    check(block == NULL);
}

check_main()
