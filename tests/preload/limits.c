/* A process that runs out of memory: limits WAY SIZE, where SIZE is that of the blocks.
   "as": 64 MiB of address space more than now. "data": the same of data. "late": 400 MiB in all,
   then 1 MiB must still be had. "given": the limit was set before we started.
   Fills until malloc gives NULL with ENOMEM, frees all, must then get 16 MiB and fill as much
   again. */
#include "limited.h"

/* More than any limit here allows: the allocator had reserved memory before the limit fell. */
static const size_t not_felt_bytes = (size_t)2 << 30;

int main(int argc, char **argv)
{
    check_eq(argc, 3);
    const char *way = argv[1];
    const size_t size = strtoull(argv[2], NULL, 10);
    free(hidden(malloc(size)));
    if (strcmp(way, "as") == 0) set_limit(RLIMIT_AS, address_space_bytes() + 64 * MIB);
    if (strcmp(way, "data") == 0) set_limit(RLIMIT_DATA, address_space_bytes() + 64 * MIB);
    if (strcmp(way, "late") == 0) set_limit(RLIMIT_AS, 400 * MIB);
    if (strcmp(way, "late") == 0) check(hidden(malloc(MIB)) != NULL);
    const size_t first = fill_and_free(size, not_felt_bytes);
    check(first > 0);
    void *big = hidden(malloc(16 * MIB));
    check(big != NULL);
    memset(big, 1, 16 * MIB);
    free(big);
    const size_t second = fill_and_free(size, not_felt_bytes);
    (void)printf("%zu blocks, then %zu\n", first, second);
    check(second >= first - first / 10);
    if (strcmp(way, "given") == 0) check(first * size < not_felt_bytes);
    return 0;
}
