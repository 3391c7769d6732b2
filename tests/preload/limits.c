/* A process that runs out of memory: limits WAY SIZE, where SIZE is that of the blocks.
   "as": 64 MiB of address space more than now. "data": the same of data. "late": 400 MiB in all,
   then 1 MiB must still be had. "given": the limit was set before we started.
   Fills until malloc gives NULL with ENOMEM, frees all, must then get 16 MiB and fill as much
   again. */
#include "api/heap.h"
#include "check.h"

#include <errno.h>
#include <sys/resource.h>

typedef struct link {
    struct link *next;
} link_t;

/* More than any limit here allows: the allocator had reserved memory before the limit fell. */
static const size_t not_felt_bytes = (size_t)2 << 30;

static size_t fill_and_free(size_t size)
{
    link_t *all = NULL;
    size_t count = 0;
    while (count * size < not_felt_bytes) {
        errno = 0;
        link_t *link = hidden(malloc(size));
        if (link == NULL) {
            check_eq(errno, ENOMEM);
            break;
        }
        memset(link, 0x5a, size);
        link->next = all;
        all = link;
        count++;
    }
    while (all != NULL) {
        link_t *next = all->next;
        check(size == sizeof *all || ((unsigned char *)all)[size - 1] == 0x5a);
        free(all);
        all = next;
    }
    return count;
}

static size_t address_space_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long pages = 0;
    check(file != NULL && fscanf(file, "%lu", &pages) == 1);
    (void)fclose(file);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

static void set_limit(int resource, size_t bytes)
{
    const struct rlimit limit = {bytes, bytes};
    check_eq(setrlimit(resource, &limit), 0);
}

int main(int argc, char **argv)
{
    check_eq(argc, 3);
    const char *way = argv[1];
    const size_t size = strtoull(argv[2], NULL, 10);
    const size_t room = (size_t)64 << 20;
    free(hidden(malloc(size)));
    if (strcmp(way, "as") == 0) set_limit(RLIMIT_AS, address_space_bytes() + room);
    if (strcmp(way, "data") == 0) set_limit(RLIMIT_DATA, address_space_bytes() + room);
    if (strcmp(way, "late") == 0) set_limit(RLIMIT_AS, (size_t)400 << 20);
    if (strcmp(way, "late") == 0) check(hidden(malloc(1 << 20)) != NULL);
    const size_t first = fill_and_free(size);
    check(first > 0);
    void *big = hidden(malloc((size_t)16 << 20));
    check(big != NULL);
    memset(big, 1, (size_t)16 << 20);
    free(big);
    const size_t second = fill_and_free(size);
    (void)printf("%zu blocks, then %zu\n", first, second);
    check(second >= first - first / 10);
    if (strcmp(way, "given") == 0) check(first * size < not_felt_bytes);
    return 0;
}
