/* A look at all small blocks, but those of private heaps. */
#ifndef HAKMEM_CHECK_ALL_BLOCKS_H
#define HAKMEM_CHECK_ALL_BLOCKS_H

#include "base/types.h"

/* Is this the block that is looked for? Called under the locks of its class, which keep a free
 * block (`is_free`: in its slab) free; what is not in the slab may come and go meanwhile. */
typedef bool (*block_test_t)(const void *block, unsigned class, bool is_free, void *context);

/* Shows all blocks of all slabs until one is wanted; returns that one, or NULL. */
const void *all_blocks_find(block_test_t is_wanted, void *context);

#endif
