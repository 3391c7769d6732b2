/* realloc and reallocarray: contents follow the block through every class border, up and down. */
#include "check.h"
#include "heap.h"
#include "preload/weak.h"

#include <errno.h>
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

/* The sizes at which an allocator may change its mind, each with its neighbours. */
static size_t border(size_t i)
{
    static const size_t centres[] = {16,     32,     64,      128,     256,     512,    1024,
                                     2048,   4096,   8192,    16384,   32768,   65536,  131072,
                                     262144, 524288, 1048576, 2097152, 4194304, 8388608};
    enum { COUNT = sizeof centres / sizeof centres[0] };
    return i < 3 * COUNT ? centres[i / 3] + i % 3 - 1 : 0;
}

test(contents_survive_growth_from_each_border_to_each)
{
    for (size_t i = 0; border(i) > 0; i++) {
        for (size_t k = i + 1; border(k) > 0; k += 2) {
            char *block = hidden(malloc(border(i)));
            check(block != NULL);
            heap_fill(block, border(i), 3);
            block = hidden(realloc(block, border(k)));
            check(block != NULL && heap_is_aligned(block, 16));
            check(heap_holds(block, border(i), 3));
            block[border(k) - 1] = 1;
            free(block);
        }
    }
}

/* Where frees are checked, no block is longer than was asked for. */
static bool growing_blocks_get_room(void)
{
    const char *mode = getenv("HAKMEM_MODE");
    return mode == NULL || (strcmp(mode, "checked") != 0 && strcmp(mode, "debug") != 0);
}

/* Eight arrays grow in turn. Returns how often one has moved. */
static unsigned grow_in_turn(char *arrays[8], size_t first, size_t last, size_t step)
{
    unsigned moves = 0;
    for (unsigned i = 0; i < 8; i++)
        check((arrays[i] = hidden(malloc(first))) != NULL);
    for (size_t size = first; size < last; size += step)
        for (unsigned i = 0; i < 8; i++) {
            uintptr_t before = (uintptr_t)arrays[i];
            arrays[i] = hidden(realloc(arrays[i], size + step));
            check(arrays[i] != NULL && malloc_usable_size(arrays[i]) >= size + step);
            moves += (uintptr_t)arrays[i] != before;
            arrays[i][size] = (char)i;
        }
    for (unsigned i = 0; i < 8; i++)
        check(arrays[i][first] == (char)i && arrays[i][last - step] == (char)i);
    return moves;
}

/* Else an array that grows is copied as often as it has steps. */
test(arrays_that_grow_in_small_steps_among_each_other_move_seldom)
{
    const size_t first = (size_t)64 << 10;
    const size_t last = (size_t)2 << 20;
    char *arrays[8];
    if (!heap_is_hakmem())
        check_skip("it is about HAKMEM");
    unsigned moves = grow_in_turn(arrays, first, last, 4096);
    check(!growing_blocks_get_room() || moves < 8 * 32); /* of 496 steps each */
    for (unsigned i = 0; i < 8; i++) {
        arrays[i] = hidden(realloc(arrays[i], last - first)); /* it grows no more */
        check(!growing_blocks_get_room() || malloc_usable_size(arrays[i]) < last);
        free(arrays[i]);
    }
}

test(a_small_array_that_grows_gets_no_room)
{
    if (!heap_is_hakmem())
        check_skip("it is about HAKMEM");
    char *array = hidden(malloc(256));
    for (size_t size = 512; size <= 16 << 10; size += size / 16) {
        array = hidden(realloc(array, size));
        check(array != NULL && malloc_usable_size(array) < size + size / 8);
    }
    free(array);
}

test(contents_survive_shrinking_from_each_border_to_each)
{
    for (size_t i = 1; border(i) > 0; i++) {
        for (size_t k = i; k-- > 0;) {
            if ((i + k) % 4 != 0)
                continue; /* A quarter of the pairs is enough to cross all. */
            char *block = hidden(malloc(border(i)));
            check(block != NULL);
            heap_fill(block, border(k), 5);
            block = hidden(realloc(block, border(k)));
            check(block != NULL && malloc_usable_size(block) >= border(k));
            check(heap_holds(block, border(k), 5));
            free(block);
        }
    }
}

test(a_block_grows_byte_by_byte)
{
    char *block = NULL;
    for (size_t size = 1; size <= 40000; size++) {
        block = hidden(realloc(block, size));
        check(block != NULL && heap_is_aligned(block, 16));
        block[size - 1] = (char)heap_pattern(size - 1, 9);
    }
    check(heap_holds(block, 40000, 9));
    for (size_t size = 40000; size-- > 1;) {
        block = hidden(realloc(block, size));
        check(block != NULL);
        check_eq((unsigned char)block[size - 1], heap_pattern(size - 1, 9));
    }
    free(block);
}

test(a_huge_block_doubles_and_halves)
{
    char *block = hidden(malloc((size_t)1 << 20));
    check(block != NULL);
    heap_fill(block, (size_t)1 << 20, 11);
    for (size_t size = (size_t)2 << 20; size <= (size_t)256 << 20; size *= 2) {
        block = hidden(realloc(block, size));
        check(block != NULL && heap_holds(block, (size_t)1 << 20, 11));
        block[size - 1] = 1;
    }
    for (size_t size = (size_t)128 << 20; size >= (size_t)1 << 20; size /= 2) {
        block = hidden(realloc(block, size));
        check(block != NULL);
        block[size - 1] = (char)heap_pattern(size - 1, 11);
    }
    check(heap_holds(block, (size_t)1 << 20, 11));
    free(block);
}

test(neighbours_survive_growth_in_place)
{
    enum { COUNT = 64 };
    char *blocks[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        blocks[i] = hidden(malloc(70000));
        check(blocks[i] != NULL);
        heap_fill(blocks[i], 70000, i);
    }
    for (unsigned i = 0; i < COUNT; i += 2) {
        blocks[i] = hidden(realloc(blocks[i], 150000));
        check(blocks[i] != NULL);
        heap_fill(blocks[i], 150000, i);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        check(heap_holds(blocks[i], i % 2 == 0 ? 150000 : 70000, i));
        free(blocks[i]);
    }
}

test(aligned_blocks_keep_their_contents)
{
    for (size_t alignment = 16; alignment <= 65536; alignment *= 4) {
        for (size_t size = 1; size < 300000; size = size * 3 + 7) {
            char *block = hidden(memalign(alignment, size));
            check(block != NULL && heap_is_aligned(block, alignment));
            heap_fill(block, size, 13);
            block = hidden(realloc(block, size * 2));
            check(block != NULL && heap_is_aligned(block, 16) && heap_holds(block, size, 13));
            block = hidden(realloc(block, size));
            check(block != NULL && heap_holds(block, size, 13));
            free(block);
        }
    }
}

test(realloc_of_null_is_malloc)
{
    char *block = hidden(realloc(hidden(NULL), 100));
    check(block != NULL);
    free(block);
    block = hidden(realloc(hidden(NULL), hidden_size(0)));
    check(block != NULL);
    free(block);
}

test(realloc_to_zero_frees_and_gives_null)
{
    static const size_t sizes[] = {1, 100, 5000, 100000, (size_t)9 << 20};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        errno = 77;
        check(hidden(realloc(hidden(malloc(sizes[i])), hidden_size(0))) == NULL);
        check_eq(errno, 77);
    }
}

test(failure_leaves_the_block_alone)
{
    static const size_t sizes[] = {40, 4000, 400000, 8000000};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *block = hidden(malloc(sizes[i]));
        check(block != NULL);
        heap_fill(block, sizes[i], 15);
        errno = 0;
        check(hidden(realloc(hidden(block), hidden_size(SIZE_MAX - 4096))) == NULL);
        check_eq(errno, ENOMEM);
        check(heap_holds(block, sizes[i], 15));
        errno = 0;
        check(hidden(reallocarray(hidden(block), hidden_size(SIZE_MAX / 2), 4)) == NULL);
        check_eq(errno, ENOMEM);
        check(heap_holds(block, sizes[i], 15));
        free(block);
    }
}

test(reallocarray_multiplies)
{
    char *block = hidden(reallocarray(hidden(NULL), 10, 10));
    check(block != NULL && malloc_usable_size(block) >= 100);
    heap_fill(block, 100, 17);
    block = hidden(reallocarray(block, 1000, 10));
    check(block != NULL && heap_holds(block, 100, 17));
    heap_fill(block, 10000, 17);
    check(heap_holds(block, 10000, 17));
    check(hidden(reallocarray(block, hidden_size(0), 10)) == NULL);
}

/* A kernel leaves a mapping that shrinks where it is; an emulator may move it. */
static bool mappings_shrink_in_place(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *start = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    check(start != MAP_FAILED);
    char *shrunk = mremap(start, 2 * page, page, MREMAP_MAYMOVE);
    check(shrunk != MAP_FAILED && munmap(shrunk, page) == 0);
    return shrunk == start;
}

/* From 4 MiB on what grows gets a mapping of its own. Up and down across it, page tables may
   change, but no byte is copied: the block stays, and nothing but mremap is called. */
test(a_block_that_goes_up_and_down_across_4_mib_stays)
{
    if (!heap_is_hakmem() || !mappings_shrink_in_place())
        return;
    const size_t low = ((size_t)4 << 20) - 20000, high = ((size_t)4 << 20) + 1;
    char *block = hidden(malloc((size_t)40 << 20)); /* surely with a mapping of its own */
    check(block != NULL);
    check(hidden(realloc(hidden(block), high)) == block);
    heap_fill(block, low, 19);
    (void)malloc_trim(0); /* else growth takes the place of what earlier tests have freed */
    hakmem_statistics_t before, after;
    check(hakmem_get_statistics(&before));
    for (unsigned round = 0; round < 1000; round++) {
        check(hidden(realloc(hidden(block), low)) == block);
        check(malloc_usable_size(block) >= low && malloc_usable_size(block) < high);
        check(hidden(realloc(hidden(block), high)) == block);
    }
    check(hakmem_get_statistics(&after));
    check_eq(after.used, before.used);
    check_eq(after.huge_used, before.huge_used);
    check_eq(after.mapped, before.mapped);
    check_eq(after.system_calls - before.system_calls, 2000);
    check(heap_holds(block, low, 19));
    /* Less than half of 4 MiB is no huge block any more. */
    block = hidden(realloc(block, ((size_t)2 << 20) - 1));
    check(block != NULL && heap_holds(block, ((size_t)2 << 20) - 1, 19));
    check(hakmem_get_statistics(&after));
    check(after.huge_used < before.huge_used);
    free(block);
}

check_main()
