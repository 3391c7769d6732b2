/* A look at all small blocks. See all_blocks.h. */
#include "check/all_blocks.h"

#include "slab/central_list.h"
#include "slab/slab.h"

static const void *find_in_slab(const slab_t *slab, block_test_t is_wanted, void *context)
{
    const char *block = span_start(&slab->span);
    for (unsigned index = 0; index < slab->block_count; index++) {
        bool is_free = slab->free_bits[index / 64] >> index % 64 & 1;
        if (is_wanted(block, slab->class, is_free, context))
            return block;
        block += size_classes[slab->class].size;
    }
    return NULL;
}

const void *all_blocks_find(block_test_t is_wanted, void *context)
{
    /* acquire: pairs with the release in page_map_grow; the tables may be read */
    size_t unit_count = __atomic_load_n(&window_unit_count, __ATOMIC_ACQUIRE);
    const void *found = NULL;
    for (size_t unit = 0; unit < unit_count && found == NULL; unit++) {
        unsigned class = class_of_unit(unit);
        if (class == 0)
            continue;
        central_list_lock(class);
        const slab_t *slab = class_of_unit(unit) == class ? slab_of(unit_address(unit)) : NULL;
        if (slab != NULL && span_start(&slab->span) == unit_address(unit))
            found = find_in_slab(slab, is_wanted, context);
        central_list_unlock(class);
    }
    return found;
}
