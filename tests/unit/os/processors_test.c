/* os/processors.h: groups by number, in turn, or none; and each has lists of its own. */
#include "os/processors.h"

#include "cache/depot.h"
#include "slab/central_list.h"
#include "unit/fresh.h"

enum { CLASS = 4, COUNT = 10, PROCESSORS = 96 };

static unsigned group_on(unsigned processor)
{
    fake_os_run_on(processor);
    return processor_group();
}

fresh_test(few_processors_are_one_group)
{
    fake_os_set_processors(GROUP_CORES);
    options_load(os_environment(), NULL, NULL);
    check_eq(group_on(3), 0);
    processors_split(0);
    check_eq(processor_groups_now(), 1);
    check_eq(group_on(3), 0);
}

fresh_test(eight_neighbours_are_a_group)
{
    fake_os_set_processors(20);
    options_load(os_environment(), NULL, NULL);
    processors_split(0);
    check_eq(processor_groups_now(), 3);
    for (unsigned processor = 0; processor < 20; processor++)
        check_eq(group_on(processor), processor / 8);
    processors_split(7); /* only the first call counts */
    check_eq(processor_groups_now(), 3);
}

fresh_test(groups_go_by_the_numbers_of_processors)
{
    fake_os_set_processors(PROCESSORS);
    options_load(os_environment(), NULL, NULL);
    processors_split(0);
    check_eq(processor_groups_now(), PROCESSORS / 8);
    for (unsigned processor = 0; processor < PROCESSORS; processor++)
        check_eq(group_on(processor), processor / 8);
    check_eq(fake_os_file_reads(), 0);
}

fresh_test(groups_that_were_asked_for_have_processors_in_turn)
{
    initialise();
    processors_split(3);
    check_eq(processor_groups_now(), 3);
    for (unsigned processor = 0; processor < PROCESSORS; processor++)
        check_eq(group_on(processor), processor % 3);
}

fresh_test(more_groups_than_there_is_room_for_share)
{
    fake_os_set_processors(PROCESSORS_MOST);
    options_load(os_environment(), NULL, NULL);
    processors_split(0);
    check_eq(processor_groups_now(), GROUPS_MOST);
    check_eq(group_on(PROCESSORS_MOST - 1), (PROCESSORS_MOST - 1) / 8 % GROUPS_MOST);
    check(group_on(PROCESSORS_MOST + 5) < GROUPS_MOST); /* hot-plugged since */
}

fresh_test(where_the_kernel_names_no_processor_there_is_a_group)
{
    fake_os_set_processors(0);
    options_load(os_environment(), NULL, NULL);
    processors_split(0);
    check_eq(processor_groups_now(), 1);
}

static size_t slab_count(void)
{
    return central_list_statistics(CLASS).slab_count;
}

fresh_test(blocks_go_back_to_the_slabs_they_came_from)
{
    void *blocks[2 * COUNT];
    void *again[COUNT];
    initialise();
    check_eq(central_list_take(CLASS, blocks + COUNT, COUNT), COUNT);
    processors_split(2);
    check_eq(group_on(1), 1);
    check_eq(central_list_take(CLASS, blocks + 2 * COUNT, COUNT), COUNT);
    check_eq(slab_count(), 2);
    void *const first = blocks[0];
    void *const other = blocks[COUNT];
    for (unsigned index = 1; index < COUNT; index += 2) { /* mixed, as threads bring them */
        void *const block = blocks[index];
        blocks[index] = blocks[COUNT + index];
        blocks[COUNT + index] = block;
    }
    central_list_give(CLASS, blocks, 2 * COUNT);
    check(central_lists_are_valid());
    check_eq(slab_count(), 2); /* each list keeps an empty one */
    check_eq(central_list_take(CLASS, again + COUNT, COUNT), COUNT);
    check(again[0] == other);
    check_eq(group_on(2), 0);
    check_eq(central_list_take(CLASS, again + COUNT, COUNT), COUNT);
    check(again[0] == first);
    central_lists_trim(1, true);
    check_eq(slab_count(), 2);
}

fresh_test(without_memory_the_slabs_of_others_serve)
{
    void *blocks[COUNT];
    initialise();
    processors_split(2);
    check_eq(central_list_take(CLASS, blocks + 1, 1), 1);
    check_eq(group_on(1), 1);
    fake_os_fail_always(FAKE_MAP_AT);
    while (page_heap_alloc_slab(4, 4, UNIT_SIZE, CLASS, false) != NULL ||
           page_heap_alloc_slab(4, 4, UNIT_SIZE, CLASS, false) != NULL)
        ;
    check_eq(central_list_take(CLASS, blocks + COUNT, COUNT), COUNT);
    check_eq(slab_count(), 1);
    fake_os_fail_never();
}

fresh_test(depots_are_apart_and_serve_others_that_are_empty)
{
    magazine_t *magazine;
    initialise();
    processors_split(2);
    magazine = magazine_create();
    check_eq(central_list_take(CLASS, magazine->slots + COUNT, COUNT), COUNT);
    magazine->count = COUNT;
    check(depot_give(CLASS, magazine) != NULL);
    check_eq(depot_block_count(CLASS), COUNT);
    check_eq(group_on(1), 1);
    check(depot_take(CLASS, NULL) == magazine);
    check(depot_take(CLASS, NULL) == NULL);
    check(depot_give(CLASS, magazine) != NULL);
    check_eq(depot_block_count(CLASS), COUNT);
    check(depots_are_valid());
    depots_trim(true);
    check_eq(depot_block_count(CLASS), 0);
    check_laws();
}

static void free_twice(void)
{
    void *block;
    initialise();
    processors_split(2);
    check_eq(group_on(1), 1);
    check_eq(central_list_take(CLASS, &block + 1, 1), 1);
    check_eq(group_on(0), 0);
    central_list_give(CLASS, &block, 1);
    central_list_give(CLASS, &block, 1);
}

test(a_double_free_is_found_in_whatever_list)
{
    char words[200];
    check_eq(fresh_status(free_twice, words, sizeof words), FAKE_ABORT_STATUS);
    check(strstr(words, "hakmem: double free of 0x") != NULL);
}

check_main()
