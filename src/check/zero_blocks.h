/* Blocks of no bytes: what malloc(0) answers where frees are checked. The blocks lie in memory that
 * can be neither read nor written, so that any use of them ends the program. Each has an address of
 * its own. There are 65,536; when all are in use, malloc(0) answers a block of 16 bytes. One lock;
 * any thread. */
#ifndef HAKMEM_CHECK_ZERO_BLOCKS_H
#define HAKMEM_CHECK_ZERO_BLOCKS_H

#include "base/types.h"
#include "os/lock.h"

/* Reserves their addresses; once, at initialisation. Without memory for it there are none. */
void zero_blocks_create(void);

/* A block, or NULL: none is left, or there never were any. */
void *zero_block_alloc(void);

/* Does `ptr` lie among them? Any value. */
bool zero_blocks_have(const void *ptr);

/* Does a block in use begin at `ptr`, which lies among them? */
bool zero_block_is_used(const void *ptr);

/* Takes the block back. False: it was not in use. */
bool zero_block_free(void *ptr);

void zero_blocks_at_fork(fork_phase_t phase);

#endif
