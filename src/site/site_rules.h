/* Rules for call sites, from a policy: which small blocks stand apart from all others, what large
 * blocks wish, and how much longer realloc makes blocks that grow.
 *
 * A site is the return address of a call of malloc, calloc, operator new or realloc. While there
 * are rules, each call that misses looks its site up. Where a policy names a site and a size, every
 * block of that size class misses: the class is closed to the hit path (size_class.h). Blocks that
 * the site asks for come from the heap of its group (groups.h), with slabs of its own. Every free
 * of such a block takes the slow path too. Large blocks, and blocks that realloc moves, take it in
 * any case. */
#ifndef HAKMEM_SITE_SITE_RULES_H
#define HAKMEM_SITE_SITE_RULES_H

#include "base/types.h"
#include "options/policy_file.h"
#include "slab/private_heap.h"

/* Finds the sites of the policy in the code that is mapped now, and closes the classes that they
 * name. Once, from a constructor; takes the lock of the dynamic loader. Returns how many there
 * are. */
unsigned site_rules_create(const policy_t *policy);

/* The heap from which a block of the class for `caller` comes; NULL: that of malloc. */
private_heap_t *site_rules_heap(const void *caller, unsigned class);

/* What large blocks that the code at `caller` asks for wish: bits of huge_wish_t (large/huge.h). */
unsigned site_rules_wishes(const void *caller);

/* The size that realloc, called from there, had better give a block that grows to `size`. */
size_t site_rules_with_room(const void *caller, size_t size);

#endif
