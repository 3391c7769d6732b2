/* site/groups.h: a group has classes of its own, as long as there are numbers. */
#include "site/groups.h"

#include "slab/block_record.h"
#include "slab/slab.h"

#include "unit/cached.h"
#include "unit/fresh.h"

enum { SMALL = 64, MANY = 5000 };

lawful_test(a_group_has_a_class_of_the_same_size)
{
    unsigned fixed = size_class_fixed_of(SMALL);
    unsigned class = group_class(2, fixed);
    check(class >= FIXED_CLASS_COUNT);
    check_eq(size_classes[class].size, SMALL);
    check_eq(size_classes[class].group, 2);
    check_eq(group_class(2, fixed), class);
    check(group_class(3, fixed) != class);
    check_eq(size_class_of(SMALL), fixed); /* no request has it by its size */
    check_eq(size_class_as_counted(class), fixed);
    check_eq(size_class_as_counted(fixed), fixed);
}

lawful_test(its_blocks_have_slabs_of_their_own)
{
    unsigned fixed = size_class_fixed_of(SMALL);
    unsigned class = group_class(1, fixed);
    for (unsigned index = 0; index < MANY; index++) {
        const void *block = central_list_take_one(index % 2 == 0 ? fixed : class);
        check_eq(slab_of(block)->class, index % 2 == 0 ? fixed : class);
        check_eq(class_of_unit(unit_of(block)), index % 2 == 0 ? fixed : class);
    }
}

lawful_test(without_a_number_a_block_is_like_others)
{
    unsigned made = 0;
    for (unsigned group = 1; group <= SITE_GROUPS; group++)
        for (unsigned fixed = 1; fixed < FIXED_CLASS_COUNT; fixed++)
            made += group_class(group, fixed) != fixed;
    check_eq(made, MADE_CLASSES_MOST);
    check_eq(size_classes_made(), CLASS_COUNT);
    check(group_class(1, 1) != 1); /* those who were first keep theirs */
    check_eq(group_class(SITE_GROUPS, FIXED_CLASS_COUNT - 1), FIXED_CLASS_COUNT - 1);
}

fresh_test(where_frees_are_checked_a_record_has_room_for_the_class)
{
    static uint8_t records[2 * UNIT_GRANULES];
    fake_os_set_environment((char *[]){"HAKMEM_CHECK_FREES=1", NULL});
    initialise();
    for (unsigned fixed = 1; fixed <= MADE_CLASSES_MOST; fixed++) {
        unsigned class = group_class(1, fixed);
        check_eq(size_classes[class].size, fixed == 1 ? 32 : size_classes[fixed].size);
        for (size_t size = 1; size <= size_classes[class].size; size++) {
            memset(records, 0xee, sizeof records);
            record_set(records, class, size);
            check_eq(record_class(records), class);
            check_eq(record_size(records), size);
            check_eq(records[size_classes[class].size >> GRANULE_SHIFT], 0xee);
        }
    }
}

static void *take_first(void *argument)
{
    static unsigned found[20];
    unsigned number = (unsigned)(uintptr_t)argument;
    __atomic_store_n(&found[number], group_class(1, 5), __ATOMIC_RELAXED);
    for (unsigned other = 1; other < 20; other++) {
        unsigned class = __atomic_load_n(&found[other], __ATOMIC_RELAXED);
        check(class == 0 || class == FIXED_CLASS_COUNT);
    }
    return NULL;
}

lawful_test(threads_that_are_first_together_make_one_class)
{
    run_threads(8, take_first);
    check_eq(size_classes_made(), FIXED_CLASS_COUNT + 1);
}

check_main()
