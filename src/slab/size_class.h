/* Size classes. A request is rounded up to one of 72 fixed sizes: every multiple of 16 bytes up to
 * 128, then eight to each doubling up to 32 KiB, so that rounding wastes less than an eighth. A few
 * more are made for groups while the program runs (site/groups.h).
 *
 *   class   0       1   2  ...   8    9   10  ...  16   17  ...    72   73 ...
 *   size    none   16  32  ... 128  144  160  ... 256  288  ... 32768   made
 *
 * Class 0 is "not a block of a slab": its bin is always empty and always full, so that whatever is
 * odd (before initialisation, a large block, a foreign pointer) takes the slow path untested. */
#ifndef HAKMEM_SLAB_SIZE_CLASS_H
#define HAKMEM_SLAB_SIZE_CLASS_H

#include "base/bits.h"
#include "base/types.h"
#include "options/tuning.h"
#include "os/lock.h"
#include "heap/page_map.h"

#define FIXED_CLASS_COUNT 73
#define CLASS_COUNT (FIXED_CLASS_COUNT + MADE_CLASSES_MOST)
#define TINY_MAX ((size_t)1 << 10)
#define MID_MAX ((size_t)32 << 10)

/* Sizes are looked up in steps of 16 bytes. */
#define GRANULE_COUNT (MID_MAX >> GRANULE_SHIFT)

/* Most blocks that a bin holds, of any class: what a magazine of 1 KiB has room for (bin.h). */
#define BIN_MOST 124

typedef struct size_class {
    uint32_t size;        /* bytes of a block */
    uint16_t unit_count;  /* units of a slab; it may have less where the heap cannot grow */
    uint16_t block_count; /* blocks of a slab of so many */
    uint8_t bin_max;      /* most blocks in a bin */
    uint8_t group;        /* whose blocks they are; 0: of none (site/groups.h) */
    uint16_t depot_max;   /* most magazines in a depot */
    uint64_t reciprocal;  /* 2^40 / size, rounded up: offset * reciprocal >> 40 is the block */
} size_class_t;

/* Class of the sizes 16 * index + 1 to 16 * index + 16, as an offset; 0 before initialisation. */
extern HIDDEN class_offset_t size_class_of_granule[GRANULE_COUNT];

/* Its class, for the hit path. */
static inline class_offset_t size_class_offset(size_t granule)
{
    /* relaxed: of a class that is new to the thread the bin is empty, and the miss asks again */
    return __atomic_load_n(&size_class_of_granule[granule], __ATOMIC_RELAXED);
}

/* Granules that the hit path of malloc may look up there: all, or none before initialisation, where
 * every free is checked (check_frees) and while a profile samples (observe/sampler.h). Each call
 * then takes the slow path at its first test. */
extern HIDDEN size_t size_open_granules;

/* The same for the forms of operator new that derive from others; none where operators are
 * replaced (operators_are_replaced). */
extern HIDDEN size_t size_derived_granules;

extern HIDDEN size_class_t size_classes[CLASS_COUNT];

/* Granule of a size; for 0 and for sizes above MID_MAX it is GRANULE_COUNT or more. */
static inline size_t granule_of(size_t size)
{
    return (size - 1) >> GRANULE_SHIFT;
}

/* Class of a size from 1 to MID_MAX among the fixed ones, by arithmetic. */
static inline unsigned size_class_fixed_of(size_t size)
{
    size_t last = size - 1;
    if (size <= 128)
        return (unsigned)(last >> GRANULE_SHIFT) + 1;
    unsigned power = highest_bit(last);
    return 9 + (power - 7) * 8 + (unsigned)((last >> (power - 3)) & 7);
}

/* The class that serves sizes of each granule; 0 before initialisation. size_class_of_granule
 * repeats it for the hit path, but for classes that are closed. */
extern HIDDEN uint8_t size_class_numbers[GRANULE_COUNT];

/* Class that serves a size from 1 to MID_MAX; 0 before initialisation. */
static inline unsigned size_class_of(size_t size)
{
    /* acquire: pairs with the release in size_classes_create; the class is whole */
    return __atomic_load_n(&size_class_numbers[granule_of(size)], __ATOMIC_ACQUIRE);
}

/* Classes are those from 1 to less than this: more, the longer the program runs. */
extern HIDDEN unsigned size_class_count;

static inline unsigned size_classes_made(void)
{
    /* acquire: pairs with the release in size_class_make; the classes are whole */
    return __atomic_load_n(&size_class_count, __ATOMIC_ACQUIRE);
}

/* Bytes of a block of a fixed class, by arithmetic. */
static inline size_t size_of_fixed_class(unsigned class)
{
    if (class <= 8)
        return (size_t) class << GRANULE_SHIFT;
    unsigned power = 7 + (class - 9) / 8;
    return ((size_t)1 << power) + ((size_t)((class - 9) % 8 + 1) << (power - 3));
}

/* The smallest class whose blocks have at least `size` bytes and all lie at multiples of
 * `alignment` (a power of two); 0 when no class has, and before initialisation. */
unsigned size_class_aligned(size_t size, size_t alignment);

/* Fills the tables; once, at initialisation. They are not open yet. */
void size_classes_create(void);

/* Protects the table of classes while a class is made. */
extern HIDDEN lock_t size_classes_lock;

/* Opens the hit path of malloc, or closes it, so that every call takes the slow path. Any thread;
 * calls under way are not waited for. */
void size_classes_open(bool wanted);

/* Closes it for one fixed class, for good. Its requests find class 0 in the table, and so no block.
 * Any thread. */
void size_class_close(unsigned class);

/* The class that stands for its blocks where sizes are counted: each size has one. */
static inline unsigned size_class_as_counted(unsigned class)
{
    const size_class_t *shape = &size_classes[class];
    return shape->group == 0 ? class : size_class_fixed_of(shape->size);
}

/* Makes a class for blocks of `size` bytes, a multiple of 16, of the group. Returns 0 if there are
 * no numbers left. No number gets another size. The caller holds size_classes_lock. */
unsigned size_class_make(size_t size, unsigned group);

#endif
