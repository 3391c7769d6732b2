/* Groups. See groups.h. */
#include "site/groups.h"

#include "slab/block_record.h"

uint8_t group_classes[SITE_GROUPS + 1][FIXED_CLASS_COUNT];

/* Where frees are checked, the record of a block of 16 bytes has no room for its class. */
static size_t group_size(unsigned fixed)
{
    size_t size = size_classes[fixed].size;
    return frees_are_checked() ? larger_of(size, 2 * BLOCK_ALIGNMENT) : size;
}

NOINLINE unsigned group_class_provide(unsigned group, unsigned fixed)
{
    uint8_t *place = &group_classes[group][fixed];
    if (size_classes_made() == CLASS_COUNT)
        return fixed;
    lock_acquire(&size_classes_lock);
    if (*place == 0)
        /* release: pairs with the acquire in group_class */
        __atomic_store_n(place, (uint8_t)size_class_make(group_size(fixed), group),
                         __ATOMIC_RELEASE);
    unsigned class = *place;
    lock_release(&size_classes_lock);
    return class != 0 ? class : fixed;
}
