/* The tables of the size classes, made from the formulas in size_class.h. */
#include "slab/size_class.h"

class_offset_t size_class_of_granule[GRANULE_COUNT];
uint8_t size_class_numbers[GRANULE_COUNT];
unsigned size_class_count = FIXED_CLASS_COUNT;
size_t size_open_granules;
size_t size_derived_granules;
size_class_t size_classes[CLASS_COUNT];
lock_t size_classes_lock = LOCK_INITIAL(LOCK_MADE_CLASSES);

_Static_assert(MID_MAX == (size_t)1 << 15, "the formulas end at 32 KiB with class 72");

/* Slabs of tiny blocks have 64 KiB, whose tail wastes 1.5 % at most; slabs of mid blocks have the
 * length from 64 to 128 KiB whose tail wastes least, a fifteenth at most. No more, for a program
 * has few blocks of most classes, and huge pages fill what it leaves untouched. */
static unsigned size_class_slab_units(size_t size)
{
    unsigned best = (unsigned)(SLAB_SHORTEST >> UNIT_SHIFT);
    size_t least = SLAB_SHORTEST % size;
    unsigned most = size > TINY_MAX ? (unsigned)(SLAB_LONGEST >> UNIT_SHIFT) : best;
    unsigned step = (unsigned)(SLAB_STEP >> UNIT_SHIFT);
    for (unsigned units = best + step; units <= most; units += step) {
        size_t waste = ((size_t)units << UNIT_SHIFT) % size;
        if (waste * best <= least * units) {
            best = units;
            least = waste;
        }
    }
    return best;
}

static void size_class_shape(unsigned class, size_t size, unsigned group)
{
    size_t unit_count = size_class_slab_units(size);
    size_t bin_max = larger_of(smaller_of(BIN_BYTES / size, BIN_MOST), BIN_LEAST);
    size_t depot_max =
        larger_of(smaller_of(DEPOT_BYTES / (bin_max * size), DEPOT_MOST), DEPOT_LEAST);
    size_classes[class] = (size_class_t){
        .size = (uint32_t)size,
        .unit_count = (uint16_t)unit_count,
        .block_count = (uint16_t)((unit_count << UNIT_SHIFT) / size),
        .bin_max = (uint8_t)bin_max,
        .group = (uint8_t)group,
        .depot_max = (uint16_t)depot_max,
        .reciprocal = (((uint64_t)1 << 40) + size - 1) / size,
    };
}

void size_classes_create(void)
{
    for (unsigned class = 1; class < FIXED_CLASS_COUNT; class++)
        size_class_shape(class, size_of_fixed_class(class), 0);
    for (size_t granule = 0; granule < GRANULE_COUNT; granule++) {
        unsigned class = size_class_fixed_of((granule + 1) << GRANULE_SHIFT);
        /* release: pairs with the acquire in size_class_of */
        __atomic_store_n(&size_class_numbers[granule], (uint8_t) class, __ATOMIC_RELEASE);
        __atomic_store_n(&size_class_of_granule[granule], offset_of_class(class), __ATOMIC_RELEASE);
    }
}

unsigned size_class_make(size_t size, unsigned group)
{
    unsigned class = size_class_count;
    if (class == CLASS_COUNT)
        return 0;
    size_class_shape(class, size, group);
    /* release: pairs with the acquire in size_classes_made */
    __atomic_store_n(&size_class_count, class + 1, __ATOMIC_RELEASE);
    return class;
}

void size_classes_open(bool wanted)
{
    /* release: whoever sees it on x86-64 sees the offsets; elsewhere 0 is a miss, too */
    size_t open = wanted ? GRANULE_COUNT : 0;
    __atomic_store_n(&size_open_granules, open, __ATOMIC_RELEASE);
    __atomic_store_n(&size_derived_granules, operators_are_replaced ? 0 : open, __ATOMIC_RELEASE);
}

void size_class_close(unsigned class)
{
    for (size_t granule = 0; granule < GRANULE_COUNT; granule++)
        if (size_class_fixed_of((granule + 1) << GRANULE_SHIFT) == class)
            /* The bin of class 0, not offset 0: that is no bin to pop from (cache/bin.h). relaxed:
             * whoever still finds the class makes one call more that is not looked at */
            __atomic_store_n(&size_class_of_granule[granule], class_offset_origin,
                             __ATOMIC_RELAXED);
}

unsigned size_class_aligned(size_t size, size_t alignment)
{
    if (size > MID_MAX || alignment > SLAB_ALIGNMENT)
        return 0;
    /* Fixed classes lie a power of two apart. Where that is the alignment or more, all are
     * multiples of it; where it is less, the multiple that is asked for is a class itself. */
    size_t wanted = align_up(larger_of(size, 1), alignment);
    return wanted <= MID_MAX ? size_class_of(wanted) : 0;
}
