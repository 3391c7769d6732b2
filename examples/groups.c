/* Entries of a cache that live long, apart from what each request allocates and frees: else one
 * entry that stays on a page keeps the whole page.
 *
 *   cc groups.c $(pkg-config --cflags --libs hakmem) -o groups && ./groups */
#include <hakmem.h>

#include <stdio.h>
#include <stdlib.h>

enum { ENTRIES = 10000, FREED_FOR_EACH = 20, SIZE = 96 };

HAKMEM_GROUP_MALLOC(entry_malloc, 1)

/* Between two entries a request comes and goes. Returns what stays in slabs, free, in KiB. */
static size_t kib_left(void *(*allocate)(size_t size), void *entries[ENTRIES])
{
    static void *passing[ENTRIES * FREED_FOR_EACH];
    for (size_t number = 0; number < ENTRIES; number++) {
        entries[number] = allocate(SIZE);
        for (size_t each = 0; each < FREED_FOR_EACH; each++)
            passing[number * FREED_FOR_EACH + each] = malloc(SIZE);
    }
    for (size_t index = 0; index < ENTRIES * FREED_FOR_EACH; index++)
        free(passing[index]);
    hakmem_statistics_t statistics;
    (void)hakmem_purge();
    (void)hakmem_get_statistics(&statistics);
    return (statistics.free_in_slabs - statistics.purged_in_slabs) / 1024;
}

int main(void)
{
    static void *entries[2][ENTRIES];
    size_t apart = kib_left(entry_malloc, entries[0]);
    size_t mixed = kib_left(malloc, entries[1]);
    printf("free, but held by entries: %zu KiB apart, %zu KiB mixed\n", apart, mixed);
    for (size_t number = 0; number < ENTRIES; number++) {
        free(entries[0][number]);
        free(entries[1][number]);
    }
    return apart < mixed ? 0 : 1;
}
