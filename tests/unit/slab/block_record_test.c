/* slab/block_record.h: what is written for a block of each class is what is read back, and no
 * record reaches into the next block's. */
#include "slab/block_record.h"

#include "slab/slab.h"

#include "unit/fresh.h"

static uint8_t records[GRANULE_COUNT + 8];

test(class_and_size_are_read_back_for_every_size)
{
    size_classes_create();
    for (size_t size = 1; size <= MID_MAX; size++) {
        unsigned class = size_class_fixed_of(size);
        record_set(records, class, size);
        check_eq(record_class(records), class);
        check_eq(record_size(records), size);
        for (unsigned behind = 1; behind < 4; behind++) /* no other granule begins a block */
            check_eq(record_class(records + behind), 0);
        memset(records, 0, 4);
    }
}

test(a_record_has_as_many_bytes_as_its_block_has_granules)
{
    size_classes_create();
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        size_t granules = size_of_fixed_class(class) >> GRANULE_SHIFT;
        memset(records, 0xee, sizeof records);
        record_set(records, class, size_of_fixed_class(class));
        for (size_t index = granules; index < granules + 4; index++)
            check_eq(records[index], 0xee);
    }
}

test(a_cleared_or_filled_block_is_of_no_class)
{
    record_set(records, 9, 130);
    record_clear(records);
    check_eq(record_class(records), 0);
    *records = RECORD_FILLED;
    check_eq(record_class(records), 0);
}

fresh_test(records_lie_one_byte_per_granule_and_are_zero_in_new_memory)
{
    fake_os_set_environment((char *[]){"HAKMEM_CHECK_FREES=1", NULL});
    initialise();
    check(frees_are_checked());
    slab_t *slab = slab_create(3);
    char *start = span_start(&slab->span);
    check(block_record(start + 16) == block_record(start) + 1);
    for (size_t offset = 0; offset < span_size(&slab->span); offset += 16)
        check_eq(*block_record(start + offset), 0);
}

fresh_test(a_slab_that_goes_leaves_no_marks)
{
    fake_os_set_environment((char *[]){"HAKMEM_CHECK_FREES=1", NULL});
    initialise();
    slab_t *slab = slab_create(3);
    char *start = span_start(&slab->span);
    *block_record(start) = RECORD_FILLED;
    *block_record(start + span_size(&slab->span) - 16) = RECORD_FILLED;
    slab_destroy(slab, 1);
    check_eq(*block_record(start), 0);
    check_eq(*block_record(start + 64 * KIB - 16), 0);
}

lawful_test(without_the_option_there_are_none_and_the_hit_path_is_open)
{
    check(!frees_are_checked());
    check(slab_create(3) != NULL);
    check_eq(window_open_granules, window_unit_count * UNIT_GRANULES);
}

test(a_misaligned_address_has_the_number_of_no_granule)
{
    window_base = (uintptr_t)1 << 44;
    const char *base = (const char *)window_base;
    for (unsigned offset = 1; offset < 16; offset++)
        check(granule_at(base + 4096 + offset) >= (size_t)1 << 60);
    check_eq(granule_at(base + 4096), 256);
    check(granule_at(base - 16) > (size_t)1 << 59);
    window_base = WINDOW_NOWHERE;
}

check_main()
