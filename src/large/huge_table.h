/* The table of huge blocks, live and kept ones, by address. The caller holds its lock. */
#ifndef HAKMEM_LARGE_HUGE_TABLE_H
#define HAKMEM_LARGE_HUGE_TABLE_H

#include "base/types.h"
#include "large/huge.h"
#include "large/huge_kept.h"
#include "os/lock.h"

typedef struct huge_table {
    lock_t lock;
    address_tree_t tree;
    size_t mapping_count; /* numbers of mappings given so far; atomic */
    huge_statistics_t statistics;
} huge_table_t;

extern HIDDEN huge_table_t huge_table;

/* The block that holds the byte at `ptr` (any value), or NULL. */
huge_t *huge_table_at(const void *ptr);

/* The block that begins at `ptr`, or NULL. */
huge_t *huge_table_find(const void *ptr);

void huge_table_insert(huge_t *huge);
void huge_table_remove(huge_t *huge);

/* Counts a block that becomes LIVE, or ceases to be. */
void huge_table_count_live(const huge_t *huge, bool is_new);

/* The block is a mapping of its own. The block is not in the table; the lock need not be held. */
void huge_table_set_mapping(huge_t *huge);

/* Cuts what a warm block holds beyond `size` bytes off it; the rest stays warm, with its age.
 * False: there is no memory to describe the rest. */
bool huge_table_cut(huge_t *huge, size_t size);

/* Lengthens a LIVE block to at most `new_size` bytes by kept ones that were cut off the same
 * mapping, so that the kernel can move the whole. Returns how many of these bytes hold no memory.
 */
size_t huge_table_absorb(huge_t *huge, size_t new_size);

#endif
