/* What is built and taken down in rounds keeps its order in memory: the caches mix freed blocks,
 * and slabs hand them out by address again. */
#include "unit/cached.h"

enum { CLASS = 12, COUNT = 30000, ROOM = 2 * COUNT };

static char *list[ROOM];
static size_t length;
static uint64_t state = 1;

static void build(void)
{
    for (length = 0; length < COUNT; length++)
        list[length] = cached_alloc(CLASS);
}

/* One of sixteen goes, and as many come between others, as a program changes its tree. */
static void change(void)
{
    static char *changed[ROOM];
    size_t count = 0;
    for (size_t index = 0; index < length; index++) {
        uint64_t draw = next_random(&state) % 16;
        if (draw == 0)
            cached_free(CLASS, list[index]);
        else
            changed[count++] = list[index];
        if (draw == 1)
            changed[count++] = cached_alloc(CLASS);
    }
    memcpy(list, changed, count * sizeof *list);
    length = count;
}

static void take_down(void)
{
    for (size_t index = 0; index < length; index++)
        cached_free(CLASS, list[index]);
}

/* Per cent of the blocks whose neighbour in the list is the next in memory. */
static size_t neighbours(void)
{
    size_t count = 0;
    for (size_t index = 1; index < length; index++)
        count += list[index] == list[index - 1] + size_classes[CLASS].size;
    return count * 100 / length;
}

lawful_test(a_list_that_is_built_again_and_again_lies_in_order)
{
    for (unsigned round = 0; round < 20; round++) {
        build();
        check(neighbours() >= 95);
        change();
        take_down();
    }
    check_conserved(CLASS, 0);
}

/* A batch that comes and goes as it was stays in the depot. */
lawful_test(a_batch_in_order_does_not_go_to_the_slabs)
{
    const size_t count = 40 * (size_t)size_classes[CLASS].bin_max;
    size_t taken = 0;
    for (unsigned round = 0; round < 6; round++) {
        if (round == 4)
            taken = central_list_statistics(CLASS).free_count;
        for (length = 0; length < count; length++)
            list[length] = cached_alloc(CLASS);
        if (round >= 4)
            check_eq(central_list_statistics(CLASS).free_count, taken);
        take_down();
    }
    check_conserved(CLASS, 0);
}

check_main()
