/* Groups, by number: classes of their own for blocks that stand apart from all others.
 *
 * Where one block stays on a page, the page stays. Hence blocks that live long had better not stand
 * among blocks of their size that come and go. A policy names call sites whose blocks have a group
 * (site_rules.h), and a program may name one itself (hakmem_malloc_group).
 *
 * A group has a size class of its own for each size that is asked for in it. The class is made when
 * it is first wanted, and has bins, depots and slabs as every class has. No request has it by its
 * size. Blocks above MID_MAX have pages of their own as it is, and no group. */
#ifndef HAKMEM_SITE_GROUPS_H
#define HAKMEM_SITE_GROUPS_H

#include "base/types.h"
#include "options/tuning.h"
#include "slab/size_class.h"

/* By group and fixed class; 0: none is made yet. */
extern HIDDEN uint8_t group_classes[SITE_GROUPS + 1][FIXED_CLASS_COUNT];

/* What this thread has seen of that: 0 is possible at any time. Group 0 has no class. */
static inline unsigned group_class_seen(unsigned group, unsigned fixed)
{
    /* relaxed: of a class that is new to the thread the bin is empty, and the miss asks again */
    return __atomic_load_n(&group_classes[group][fixed], __ATOMIC_RELAXED);
}

/* Makes the class if it can. Returns it, or `fixed`. */
unsigned group_class_provide(unsigned group, unsigned fixed);

/* The class for blocks of a group from 1 to SITE_GROUPS that the fixed class serves otherwise;
 * `fixed` itself if there are no numbers left. Any thread. */
static inline unsigned group_class(unsigned group, unsigned fixed)
{
    /* acquire: pairs with the release in group_class_provide; the class is whole */
    unsigned class = __atomic_load_n(&group_classes[group][fixed], __ATOMIC_ACQUIRE);
    return LIKELY(class != 0) ? class : group_class_provide(group, fixed);
}

#endif
