/* The names that only glibc has: cfree, the __libc_ aliases, mallopt, and reports on the heap. */
#include "check.h"
#include "heap.h"

#include <errno.h>

test(all_names_of_glibc_are_present)
{
    if (!heap_is_hakmem()) return;
    check(cfree != NULL);
    check(__libc_malloc != NULL && __libc_calloc != NULL && __libc_realloc != NULL);
    check(__libc_memalign != NULL && __libc_free != NULL);
    check(__libc_valloc != NULL && __libc_pvalloc != NULL);
}

test(cfree_is_free)
{
    if (!heap_is_hakmem() && cfree == NULL) return;
    cfree(hidden(NULL));
    cfree(hidden(malloc(100)));
    cfree(hidden(calloc(3, 100000)));
}

test(libc_aliases_are_the_same_heap)
{
    if (!heap_is_hakmem()) return; /* Under another preloaded allocator they are not its own. */
    free(hidden(__libc_malloc(100)));
    __libc_free(hidden(malloc(100)));
    char *block = hidden(__libc_calloc(10, 10));
    check(block != NULL && heap_is_zero(block, 100));
    block = hidden(__libc_realloc(block, 5000));
    check(block != NULL && heap_is_zero(block, 100));
    free(block);
    block = hidden(__libc_memalign(1024, 100));
    check(block != NULL && heap_is_aligned(block, 1024));
    free(block);
    block = hidden(__libc_valloc(100));
    check(block != NULL && heap_is_aligned(block, 4096));
    free(block);
    block = hidden(__libc_pvalloc(100));
    check(block != NULL && malloc_usable_size(block) >= 4096);
    free(block);
    errno = 0;
    check(hidden(__libc_pvalloc(hidden_size(SIZE_MAX - 10))) == NULL);
    check_eq(errno, ENOMEM);
}

test(mallinfo2_counts_what_lives)
{
    enum { COUNT = 1000, SIZE = 50000 };
    static void *blocks[COUNT];
    const size_t before = heap_used();
    for (size_t i = 0; i < COUNT; i++) blocks[i] = hidden(malloc(SIZE));
    const size_t during = heap_used();
    check(during >= before + COUNT * (size_t)SIZE);
    check(mallinfo2().arena + mallinfo2().hblkhd >= mallinfo2().uordblks);
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    check(heap_used() < during - COUNT * (size_t)SIZE / 2);
}

test(mallinfo2_sees_small_blocks_too)
{
    enum { COUNT = 100000, SIZE = 64 };
    static void *blocks[COUNT];
    const size_t before = mallinfo2().uordblks;
    for (size_t i = 0; i < COUNT; i++) blocks[i] = hidden(malloc(SIZE));
    const size_t during = mallinfo2().uordblks;
    /* Blocks in a thread's cache may count on either side: a quarter is the slack. */
    check(during >= before + COUNT * (size_t)SIZE * 3 / 4);
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
}

test(mallinfo2_counts_the_pieces)
{
    free(hidden(malloc(100)));
    const struct mallinfo2 before = mallinfo2();
    check(before.fordblks == 0 || before.ordblks >= 1);
    check_eq(before.arena, before.uordblks + before.fordblks);
    check(before.keepcost <= before.fordblks);
    /* From 128 KiB on, glibc's threshold at first, a block has a mapping of its own there. */
    for (size_t size = 160 << 10; size <= (size_t)64 << 20; size *= 20) {
        void *large = hidden(malloc(size));
        const struct mallinfo2 during = mallinfo2();
        check_eq(during.hblks, before.hblks + 1);
        check(during.hblkhd >= before.hblkhd + size);
        free(large);
        check_eq(mallinfo2().hblks, before.hblks);
    }
    if (!heap_is_hakmem()) return;
    check(before.smblks == 0 && before.fsmblks == 0 && before.usmblks == 0);
}

/* A large block that was freed is one piece more, whoever keeps it. */
test(mallinfo2_counts_what_was_freed)
{
    enum { COUNT = 20 };
    static void *blocks[COUNT];
    for (size_t i = 0; i < COUNT; i++) blocks[i] = hidden(malloc(100000));
    const size_t before = mallinfo2().ordblks;
    for (size_t i = 0; i < COUNT; i += 2) free(blocks[i]);
    check(mallinfo2().ordblks >= before + COUNT / 2);
    for (size_t i = 1; i < COUNT; i += 2) free(blocks[i]);
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
test(mallinfo_answers_in_ints)
{
    void *block = hidden(malloc(100000));
    const struct mallinfo info = mallinfo();
    check(info.arena >= 0 && info.uordblks + info.hblkhd >= 100000);
    free(block);
}
#pragma GCC diagnostic pop

test(malloc_info_writes_xml)
{
    char text[65536];
    FILE *stream = fmemopen(text, sizeof text, "w");
    check(stream != NULL);
    check_eq(malloc_info(0, stream), 0);
    check_eq(fclose(stream), 0);
    check(strncmp(text, "<malloc version=", 16) == 0);
    check(strstr(text, "</malloc>") != NULL);
}

test(malloc_info_refuses_unknown_options)
{
    const int result = malloc_info(1, stdout);
    check(result == EINVAL || (result == -1 && errno == EINVAL));
}

test(malloc_stats_writes_to_stderr_what_glibc_does)
{
    int ends[2];
    check_eq(pipe(ends), 0);
    const int saved = dup(2);
    check(saved >= 0 && dup2(ends[1], 2) == 2);
    malloc_stats();
    (void)fflush(stderr);
    check(dup2(saved, 2) == 2);
    (void)close(ends[1]);
    static char text[4096];
    for (size_t length = 0, got = 1; got != 0; length += got) {
        const ssize_t count = read(ends[0], text + length, sizeof text - 1 - length);
        check(count >= 0);
        got = (size_t)count;
    }
    /* What programs look for, in glibc's words. */
    static const char *const rows[] = {"Arena 0:\n",
                                       "system bytes     = ",
                                       "in use bytes     = ",
                                       "Total (incl. mmap):\n",
                                       "max mmap regions = ",
                                       "max mmap bytes   = "};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) check(strstr(text, rows[i]) != NULL);
    (void)close(ends[0]);
    (void)close(saved);
}

test(mallopt_accepts_every_known_parameter)
{
    static const int parameters[][2] = {
        {M_MMAP_THRESHOLD, 1 << 20}, {M_MMAP_MAX, 65536}, {M_TRIM_THRESHOLD, 1 << 20},
        {M_TOP_PAD, 1 << 17},        {M_ARENA_MAX, 2},    {M_ARENA_TEST, 2},
        {M_PERTURB, 0},              {M_CHECK_ACTION, 3}, {M_MXFAST, 64}};
    for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
        check_eq(mallopt(parameters[i][0], parameters[i][1]), 1);
    }
    void *block = hidden(malloc(2 << 20));
    check(block != NULL);
    free(block);
}

check_main()
