/* slab/private_heap.h: how many blocks of a class the program has in all private heaps. */
#include "slab/private_heap.h"

#include "unit/fresh.h"

enum { SMALL = 64, BLOCKS = 3000, HEAPS = PRIVATE_HEAP_LOCKS + 1 }; /* two heaps share a lock */

fresh_test(blocks_of_a_class_are_counted_over_all_heaps)
{
    static void *blocks[HEAPS][BLOCKS];
    private_heap_t *heaps[HEAPS];
    initialise();
    unsigned class = size_class_fixed_of(SMALL);
    for (unsigned index = 0; index < HEAPS; index++) {
        heaps[index] = private_heap_create();
        check(heaps[index] != NULL);
        for (unsigned block = 0; block < BLOCKS; block++) /* the last slab is not full */
            blocks[index][block] = private_heap_take(heaps[index], class);
    }
    check(private_heap_take(heaps[0], class + 1) != NULL);
    check_eq(private_heaps_used(class), HEAPS * BLOCKS);
    check_eq(private_heaps_used(class + 1), 1);
    for (unsigned block = 0; block < BLOCKS; block++)
        private_heap_give(slab_of(blocks[1][block]), blocks[1][block]);
    check_eq(private_heaps_used(class), (HEAPS - 1) * BLOCKS);
    check_eq(private_heaps_statistics().used_count, (HEAPS - 1) * BLOCKS + 1);
    for (unsigned index = 0; index < HEAPS; index++)
        check(private_heap_destroy(heaps[index], 0));
    check_eq(private_heaps_used(class), 0);
    check_eq(private_heaps_used(class + 1), 0);
}

check_main()
