/* A program that has locked its memory: the kernel refuses to take pages back, and must not be
 * asked again and again. Skipped where that much may not be locked. */
#include "api/heap.h"
#include "check.h"
#include "preload/weak.h"

#include <errno.h>
#include <sys/mman.h>

enum { COUNT = 1500, SIZE = 100000, PAIRS = 100000 };
static char *blocks[COUNT];

static uint64_t system_calls(void)
{
    hakmem_statistics_t now;
    check(hakmem_get_statistics(&now));
    return now.system_calls;
}

test(the_kernel_is_not_asked_at_every_free)
{
    if (!heap_is_hakmem()) check_skip("it counts the system calls of hakmem");
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) check_skip("mlockall is not allowed here");
    void *room = mmap(NULL, 2 * COUNT * SIZE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) check_skip("so much may not be locked here: ulimit -l");
    check_eq(munmap(room, 2 * COUNT * SIZE), 0);
    /* More than may wait: 143 MiB, of which no block is in use. */
    for (size_t i = 0; i < COUNT; i++) check((blocks[i] = hidden(malloc(SIZE))) != NULL);
    for (size_t i = 0; i < COUNT; i++) free(blocks[i]);
    const uint64_t before = system_calls();
    for (size_t i = 0; i < PAIRS; i++) {
        char *block = hidden(malloc(SIZE + i % 40 * 50000));
        check(block != NULL);
        free(block);
    }
    const uint64_t made = system_calls() - before;
    (void)printf("%ju system calls for %d pairs\n", (uintmax_t)made, PAIRS);
    check(made <= 1000);
    check_eq(munlockall(), 0);
    check(hakmem_purge() > 0); /* at once, whatever was refused a moment ago */
}

check_main()
