/* Ranges of addresses that do not overlap, found by any address inside. The caller locks.
 *
 * A treap (Seidel and Aragon 1996): ordered by address from left to right, and by a number made
 * from the address from top to bottom, which keeps it about as flat as if the ranges had come in
 * random order. Nodes are embedded in what they describe; `start` and `size` stay as they are while
 * the range is in the tree. */
#ifndef HAKMEM_LARGE_ADDRESS_TREE_H
#define HAKMEM_LARGE_ADDRESS_TREE_H

#include "base/types.h"

typedef struct address_range {
    struct address_range *left;
    struct address_range *right;
    char *start;
    size_t size; /* not 0 */
} address_range_t;

typedef struct address_tree {
    address_range_t *root;
} address_tree_t;

void address_tree_insert(address_tree_t *tree, address_range_t *range);
void address_tree_remove(address_tree_t *tree, address_range_t *range);

/* The range that `ptr` (any value) lies in, or NULL. */
address_range_t *address_tree_at(const address_tree_t *tree, const void *ptr);

#endif
