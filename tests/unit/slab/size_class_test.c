/* slab/size_class.h, every size and every offset: table, formula and definition are one. */
#include "slab/size_class.h"

#include "heap/page_map.h"
#include "unit/fresh.h"

/* The definition: multiples of 16 up to 128, then eight steps to each doubling. */
static size_t naive_sizes(size_t *sizes)
{
    size_t count = 1;
    for (size_t size = 16; size <= 128; size += 16)
        sizes[count++] = size;
    for (size_t power = 128; power < MID_MAX; power *= 2)
        for (size_t step = 1; step <= 8; step++)
            sizes[count++] = power + step * power / 8;
    return count;
}

fresh_test(the_classes_are_those_of_the_definition)
{
    size_t sizes[2 * CLASS_COUNT];
    check_eq(naive_sizes(sizes), FIXED_CLASS_COUNT);
    size_classes_create();
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        check_eq(size_of_fixed_class(class), sizes[class]);
        check_eq(size_classes[class].size, sizes[class]);
    }
    check_eq(sizes[FIXED_CLASS_COUNT - 1], MID_MAX);
}

fresh_test(every_size_has_the_smallest_class_that_fits)
{
    size_t sizes[2 * CLASS_COUNT];
    naive_sizes(sizes);
    size_classes_create();
    for (size_t size = 1; size <= MID_MAX; size++) {
        unsigned naive = 1;
        while (sizes[naive] < size)
            naive++;
        check_eq(size_class_of(size), naive);
        check_eq(class_of_offset(size_class_of_granule[granule_of(size)]), naive);
    }
}

fresh_test(sizes_that_no_class_serves_have_no_granule)
{
    check(granule_of(0) >= GRANULE_COUNT);
    check(granule_of(MID_MAX) < GRANULE_COUNT);
    check(granule_of(MID_MAX + 1) >= GRANULE_COUNT);
    check(granule_of(PTRDIFF_MAX) >= GRANULE_COUNT);
    check(granule_of(SIZE_MAX) >= GRANULE_COUNT);
}

fresh_test(before_initialisation_every_granule_has_class_0)
{
    for (size_t granule = 0; granule < GRANULE_COUNT; granule++)
        check_eq(size_class_of_granule[granule] + size_class_numbers[granule], 0);
    check_eq(size_open_granules, 0);
}

fresh_test(sizes_are_open_to_the_hit_path_on_demand)
{
    size_classes_create();
    check_eq(size_open_granules, 0);
    size_classes_open(true);
    check_eq(size_open_granules, GRANULE_COUNT);
    size_classes_open(false);
    check_eq(size_open_granules, 0);
}

fresh_test(derived_forms_are_open_with_the_others_unless_operators_are_replaced)
{
    size_classes_create();
    size_classes_open(true);
    check_eq(size_derived_granules, GRANULE_COUNT);
    operators_are_replaced = true;
    size_classes_open(true);
    check_eq(size_derived_granules, 0);
    check_eq(size_open_granules, GRANULE_COUNT);
}

fresh_test(a_class_is_closed_by_itself)
{
    class_offset_origin = -640; /* as where the bins stand in front of the thread pointer */
    size_classes_create();
    unsigned closed = size_class_of(200);
    size_class_close(closed);
    for (size_t granule = 0; granule < GRANULE_COUNT; granule++) {
        unsigned class = size_class_of((granule + 1) << GRANULE_SHIFT);
        check_eq(class_of_offset(size_class_of_granule[granule]), class == closed ? 0 : class);
        check(size_class_of_granule[granule] != 0);
    }
}

fresh_test(rounding_wastes_an_eighth_at_most)
{
    for (size_t size = 1; size <= MID_MAX; size++) {
        size_t waste = size_of_fixed_class(size_class_fixed_of(size)) - size;
        check(waste < 16 || waste * 8 <= size);
    }
}

fresh_test(the_reciprocal_is_exact_for_every_offset_of_a_slab)
{
    size_classes_create();
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        const size_class_t *shape = &size_classes[class];
        size_t end = (size_t)shape->unit_count << UNIT_SHIFT;
        for (uint64_t offset = 0; offset < end; offset++)
            if (offset * shape->reciprocal >> 40 != offset / shape->size)
                check_eq(offset * shape->reciprocal >> 40, offset / shape->size);
    }
}

fresh_test(the_blocks_of_a_slab_fit_into_it)
{
    size_classes_create();
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        const size_class_t *shape = &size_classes[class];
        size_t bytes = (size_t)shape->unit_count << UNIT_SHIFT;
        check(shape->block_count >= 3);
        check((size_t)shape->block_count * shape->size <= bytes);
        check(bytes - (size_t)shape->block_count * shape->size < shape->size);
    }
}

fresh_test(slabs_of_tiny_blocks_waste_less_than_a_sixtieth)
{
    size_classes_create();
    for (unsigned class = 1; size_of_fixed_class(class) <= TINY_MAX; class++) {
        const size_class_t *shape = &size_classes[class];
        size_t bytes = (size_t)shape->unit_count << UNIT_SHIFT;
        check((bytes - (size_t)shape->block_count * shape->size) * 60 < bytes);
    }
}

fresh_test(slabs_of_mid_blocks_waste_a_fifteenth_at_most)
{
    size_classes_create();
    for (unsigned class = size_class_of(TINY_MAX) + 1; class < FIXED_CLASS_COUNT; class++) {
        const size_class_t *shape = &size_classes[class];
        size_t bytes = (size_t)shape->unit_count << UNIT_SHIFT;
        check((bytes - (size_t)shape->block_count * shape->size) * 15 <= bytes);
    }
}

fresh_test(a_bin_holds_64_kib_but_8_to_124_blocks_and_a_depot_1_mib_but_2_to_64_bins)
{
    size_classes_create();
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++) {
        size_t blocks = 64 * KIB / size_of_fixed_class(class);
        blocks = blocks < 8 ? 8 : blocks > 124 ? 124 : blocks;
        check_eq(size_classes[class].bin_max, blocks);
        size_t bins = MIB / (blocks * size_of_fixed_class(class));
        check_eq(size_classes[class].depot_max, bins < 2 ? 2 : bins > 64 ? 64 : bins);
    }
}

/* Slabs begin on a unit, so blocks are aligned to whatever divides their size and the unit. */
static unsigned naive_aligned(size_t size, size_t alignment)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT && alignment <= SLAB_ALIGNMENT; class++)
        if (size_of_fixed_class(class) >= size && size_of_fixed_class(class) % alignment == 0)
            return class;
    return 0;
}

fresh_test(an_aligned_request_gets_the_smallest_class_that_is_aligned)
{
    size_classes_create();
    for (size_t alignment = 1; alignment <= 128 * KIB; alignment *= 2)
        for (size_t size = 0; size <= MID_MAX + 1; size++)
            check_eq(size_class_aligned(size, alignment), naive_aligned(size, alignment));
}

fresh_test(what_is_too_large_or_too_aligned_has_no_class)
{
    size_classes_create();
    check_eq(size_class_aligned(MID_MAX + 1, 16), 0);
    check_eq(size_class_aligned(SIZE_MAX, 16), 0);
    check_eq(size_class_aligned(16, 2 * SLAB_ALIGNMENT), 0);
    check_eq(size_class_aligned(16, (size_t)1 << 63), 0);
    check_eq(size_class_aligned(MID_MAX, SLAB_ALIGNMENT), FIXED_CLASS_COUNT - 1);
}

check_main()
