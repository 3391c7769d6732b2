/* Groups: heaps, by number, for blocks that stand apart from all others.
 *
 * Where one block stays on a page, the page stays. Hence blocks that live long had better not stand
 * among blocks of their size that come and go. A policy names call sites whose blocks have a group
 * (site_rules.h), and a program may name one itself (hakmem_malloc_group). A group is a private
 * heap that nobody destroys; it is made when it is first wanted. */
#ifndef HAKMEM_SITE_GROUPS_H
#define HAKMEM_SITE_GROUPS_H

#include "base/types.h"
#include "options/tuning.h"
#include "slab/private_heap.h"

/* The heap of a group from 1 to SITE_GROUPS. NULL: another number, no memory, or all
 * blocks are guarded (the option junk). Any thread. */
private_heap_t *group_heap(unsigned group);

/* Is the heap that of a group? Of those the program knows nothing. */
bool groups_own(const private_heap_t *heap);

#endif
