/* What is mapped serves when nothing can be mapped any more: denied SIZE. Fills 200 MiB with blocks
   of SIZE bytes, frees them all and forbids itself mmap and mremap. Then every size up to half of
   what is mapped still is asked for once, and each in turn until there is no more: what is served
   must be six tenths of what was freed, or of what the allocator had kept mapped of it. Huge blocks
   stay what they are; each serves one request up to its length. */
#include "filter.h"
#include "limited.h"

int main(int argc, char **argv)
{
    static const size_t sizes[] = {16,     100,     1000,    3000,    9000,    20000,
                                   100000, 1000000, 3000000, 5000000, 20000000};
    static const int mappings[] = {SYS_mmap, SYS_mremap};
    check_eq(argc, 2);
    free(hidden(malloc(100)));
    const size_t before = address_space_bytes();
    set_limit(RLIMIT_AS, 200 * MIB);
    const size_t size = strtoull(argv[1], NULL, 10);
    const bool is_huge = size >= 4 * MIB;
    const size_t freed = fill_and_free(size, SIZE_MAX) * size;
    const size_t mapped = address_space_bytes() - before;
    const size_t served = freed < mapped ? freed : mapped;
    (void)printf("%zu MiB freed, %zu MiB of that are mapped\n", freed >> 20, mapped >> 20);
    forbid(mappings, 2, ENOMEM);
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++) {
        void *block = hidden(malloc(sizes[index]));
        check(block != NULL || sizes[index] > (is_huge ? size : served / 2));
        if (block != NULL) memset(block, 1, sizes[index]);
        free(block);
    }
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes && !is_huge; index++) {
        const size_t bytes = fill_and_free(sizes[index], SIZE_MAX) * sizes[index];
        (void)printf("%zu MiB of %zu bytes\n", bytes >> 20, sizes[index]);
        check(bytes >= served / 10 * 6);
    }
    return 0;
}
