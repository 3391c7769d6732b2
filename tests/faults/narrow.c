/* Lives of the victim under limits that the kernel enforces: narrow WAY.

   "as", "data": so many MiB of address space or data more than now, then as many as it likes.
   "maps": so many entries are left in the table of mappings. "locked": memory stays resident, and
   the kernel refuses to take pages back. "given": the limit was there before us and stays; only
   what the victim needs in the end must be had under it. */
#include "faults/life.h"
#include "stress/resident.h"

#include <sys/resource.h>

static char *filling;
static const size_t most_entries = 300000; /* Filling a longer table would take seconds. */

static size_t table_entries(void)
{
    char text[64];
    return resident_read("/proc/sys/vm/max_map_count", text, sizeof text) > 0
               ? strtoul(text, NULL, 10)
               : SIZE_MAX;
}

/* What this process has of "VmSize:" or "VmData:", in bytes. */
static size_t has_now(const char *what)
{
    char text[4096];
    check(resident_read("/proc/self/status", text, sizeof text) > 0);
    const char *line = strstr(text, what);
    check(line != NULL);
    return strtoul(line + strlen(what), NULL, 10) * 1024;
}

static void limit(int resource, size_t bytes)
{
    struct rlimit limits;
    check_eq(getrlimit(resource, &limits), 0);
    limits.rlim_cur = bytes == 0 ? limits.rlim_max : bytes;
    check_eq(setrlimit(resource, &limits), 0);
}

static void limit_address_space(size_t mebibytes)
{
    limit(RLIMIT_AS, has_now("VmSize:") + mebibytes * VICTIM_MIB);
}

static void free_address_space(void)
{
    limit(RLIMIT_AS, 0);
}

static void limit_data(size_t mebibytes)
{
    limit(RLIMIT_DATA, has_now("VmData:") + mebibytes * VICTIM_MIB);
}

static void free_data(void)
{
    limit(RLIMIT_DATA, 0);
}

/* Every other page of a long mapping gets another protection, until the table is full. */
static void fill_table(size_t left)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    const size_t size = 2 * most_entries * page;
    filling = (char *)mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                           0);
    check(filling != MAP_FAILED);
    size_t i = 0;
    while (i < most_entries && mprotect(filling + 2 * i * page, page, PROT_READ) == 0) i++;
    check(i > left && i < most_entries);
    for (size_t back = 0; back < left; back += 2) {
        check_eq(mprotect(filling + 2 * --i * page, page, PROT_NONE), 0);
    }
}

static void empty_table(void)
{
    const size_t size = 2 * most_entries * (size_t)sysconf(_SC_PAGESIZE);
    check_eq(munmap(filling, size), 0);
    injection->mapped_bytes += size; /* it was none of the allocator's */
}

static void lock_memory(size_t unused)
{
    (void)unused;
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) check_skip("memory cannot be locked here");
}

static void unlock_memory(void)
{
    check_eq(munlockall(), 0);
}

typedef struct way {
    const char *name;
    void (*begin)(size_t step);
    void (*end)(void);
    size_t steps[8]; /* Up to the first 0 after the first. */
} way_t;

static const way_t ways[] = {
    {"as", limit_address_space, free_address_space, {0, 1, 8, 40, 80, 160, 240, 320}},
    {"data", limit_data, free_data, {0, 1, 8, 40, 80, 160, 240, 320}},
    {"maps", fill_table, empty_table, {0, 2, 4, 10, 20, 40, 100}},
    {"locked", lock_memory, unlock_memory, {0}},
    {"given", NULL, NULL, {0}},
};

static void judge(const char *name, size_t step, int status)
{
    (void)printf("%s %zu: refused %zu, used %zu, lost %zu, kept %zu\n", name, step,
                 outcome->refusals, outcome->used, outcome->lost, outcome->kept);
    check(!WIFSIGNALED(status));
    if (WEXITSTATUS(status) == CHECK_SKIPPED) check_end(CHECK_SKIPPED);
    check_eq(WEXITSTATUS(status), 0);
    check(outcome->used <= usual.used);
    check(outcome->kept <= usual.kept);
    check(outcome->lost <= usual.lost);
}

int main(int argc, char **argv)
{
    enum { WAYS = sizeof ways / sizeof ways[0], LIVES = 3 };
    const way_t *way = ways;
    check_eq(argc, 2);
    while (way < ways + WAYS && strcmp(way->name, argv[1]) != 0) way++;
    check(way < ways + WAYS);
    life_prepare(way->begin == NULL);
    if (way->begin == fill_table && table_entries() >= most_entries)
        check_skip("the table of mappings is too long to be filled");
    for (size_t i = 0; i < 8 && (i == 0 || way->steps[i] != 0); i++) {
        const life_t life = {.has_allocated = true, .step = way->steps[i], .begin = way->begin,
                             .end = way->end, .fault = {.kind = FAULT_ANY}};
        for (size_t k = 0; k < LIVES; k++) judge(way->name, life.step, life_run(&life));
    }
    return 0;
}
