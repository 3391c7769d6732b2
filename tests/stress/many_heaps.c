/* As many heaps as there may be, made and destroyed: what described them goes back. */
#include "api/heap.h"
#include "stress/resident.h"

#include "preload/weak.h"

enum {
    HEAPS = 65535,
    /* Nine bytes of the page map stay for each unit of 8 KiB of addresses; a slab is 64 KiB. */
    PAGE_MAP_KIB = HEAPS * 8 / 1024 * 9,
    MOST_KIB = PAGE_MAP_KIB + (6 << 10),
};

static void make_and_destroy(size_t size)
{
    hakmem_heap_t **heaps = hidden(malloc(HEAPS * sizeof(hakmem_heap_t *)));
    check(heaps != NULL);
    for (size_t i = 0; i < HEAPS; i++) {
        heaps[i] = hakmem_heap_new();
        check(heaps[i] != NULL);
        if (size != 0) check(hakmem_heap_malloc(heaps[i], size) != NULL);
    }
    for (size_t i = 0; i < HEAPS; i++) hakmem_heap_destroy(heaps[i]);
    free(heaps);
    (void)hakmem_purge();
}

test(heaps_that_were_destroyed_leave_little)
{
    const size_t before = resident_kib();
    make_and_destroy(0);
    resident_must_not_exceed("after empty heaps", resident_kib(), before + MOST_KIB);
    for (size_t round = 0; round < 2; round++) make_and_destroy(100);
    resident_must_not_exceed("after heaps with a block", resident_kib(), before + MOST_KIB);
}

int main(int argc, char **argv)
{
    if (!heap_is_hakmem()) check_skip("needs HAKMEM");
    if (!resident_is_ours) check_skip("a sanitizer's own memory counts");
    return check_run(argc, argv);
}
