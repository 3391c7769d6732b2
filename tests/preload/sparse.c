/* More large blocks than the machine has memory for, none of them touched: they use up addresses
   and nothing else. Small blocks must still be had, of every kind, and be sound. */
#include "limited.h"

#include <sys/sysinfo.h>

/* Nine times the memory, and more than any allocator here plans for on a small machine. */
static size_t sparse_bytes(void)
{
    struct sysinfo info;
    check_eq(sysinfo(&info), 0);
    const size_t least = (size_t)80 << 30;
    const size_t memory = (size_t)info.totalram * info.mem_unit;
    return 9 * memory > least ? 9 * memory : least;
}

int main(void)
{
    const size_t large = 3 * MIB;
    const size_t count = sparse_bytes() / large;
    if (count > 1000000) check_skip("too much memory here for a short test");
    void **blocks = hidden(malloc(count * sizeof *blocks));
    for (size_t index = 0; index < count; index++) {
        blocks[index] = hidden(malloc(large));
        if (blocks[index] == NULL) check_skip("this kernel commits no more than it has");
    }
    static const size_t sizes[] = {16, 200, 1000, 3000, 9000, 20000, 32768, 100000};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++)
        check(fill_and_free(sizes[index], 16 * MIB) * sizes[index] >= 16 * MIB);
    for (size_t index = 0; index < count; index++) free(blocks[index]);
    return 0;
}
