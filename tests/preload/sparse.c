/* More large blocks than the machine has memory for, none of them touched: they use up addresses
   and nothing else. Small blocks must still be had, of every kind, and be sound. */
#include "api/heap.h"
#include "check.h"

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

static void small_blocks_are_there(size_t size)
{
    void *last = NULL;
    for (size_t bytes = 0; bytes < (size_t)16 << 20; bytes += size) {
        void **block = hidden(malloc(size));
        check(block != NULL);
        memset(block, 0x5a, size);
        *block = last;
        last = block;
    }
    while (last != NULL) {
        void *next = *(void **)last;
        check_eq(malloc_usable_size(last) >= size, true);
        free(last);
        last = next;
    }
}

int main(void)
{
    const size_t large = (size_t)3 << 20;
    const size_t count = sparse_bytes() / large;
    if (count > 1000000) check_skip("too much memory here for a short test");
    void **blocks = hidden(malloc(count * sizeof *blocks));
    for (size_t index = 0; index < count; index++) {
        blocks[index] = hidden(malloc(large));
        if (blocks[index] == NULL) check_skip("this kernel commits no more than it has");
    }
    static const size_t sizes[] = {16, 200, 1000, 3000, 9000, 20000, 32768, 100000};
    for (size_t index = 0; index < sizeof sizes / sizeof *sizes; index++)
        small_blocks_are_there(sizes[index]);
    for (size_t index = 0; index < count; index++) free(blocks[index]);
    return 0;
}
