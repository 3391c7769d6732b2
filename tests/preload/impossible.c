/* Requests for more than the machine has: refused with ENOMEM, for a few system calls
   each, and what the program has freed stays in its caches. */
#include "api/heap.h"
#include "check.h"
#include "weak.h"

#include <errno.h>
#include <sys/sysinfo.h>

enum { BLOCKS = 2000, REQUESTS = 100 };

static void fill_caches(void)
{
    static void *blocks[BLOCKS];
    for (size_t size = 16; size <= 600000; size += size / 2) {
        for (size_t index = 0; index < BLOCKS / (1 + size / 1000); index++)
            blocks[index] = hidden(malloc(size));
        for (size_t index = 0; index < BLOCKS / (1 + size / 1000); index++) free(blocks[index]);
    }
}

int main(void)
{
    struct sysinfo info;
    check_eq(sysinfo(&info), 0);
    const size_t memory = (size_t)(info.totalram + info.totalswap) * info.mem_unit;
    hakmem_statistics_t before = {0};
    hakmem_statistics_t after = {0};
    fill_caches();
    check(hakmem_get_statistics(&before));
    check(before.cached > 1000000);
    for (size_t request = 0; request < REQUESTS; request++) {
        errno = 0;
        void *block = hidden(malloc(memory + memory / 2 + request));
        if (block != NULL) check_skip("this kernel promises more than it has");
        check_eq(errno, ENOMEM);
    }
    check(hakmem_get_statistics(&after));
    (void)printf("cached %zu, then %zu; %zu system calls\n", (size_t)before.cached,
                 (size_t)after.cached, (size_t)(after.system_calls - before.system_calls));
    check_eq(after.cached, before.cached);
    check(after.system_calls - before.system_calls <= 3 * REQUESTS);
    return 0;
}
