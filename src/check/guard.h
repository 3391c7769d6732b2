/* Patterns that make wrong use of memory show: the debug mode (option junk).
 *
 *   in use   | 0xa5 until the program writes it | 0xc5 behind the size asked for |
 *   freed    | 0xdf ....................................................... |
 *
 * Fresh memory is filled whatever else is set. The bytes behind the request are compared when a
 * small block is freed, and the fill of a freed one when it is handed out again; both at the end of
 * the process and by hakmem_check. Both checks need the block's record (check_frees). A lock keeps
 * a record and the pattern that it speaks of together. A byte behind the request is always there:
 * one that would fill its block gets a block of the next class. Of blocks above 32 KiB only the
 * first and last page are filled: more would touch memory that the program does not. */
#ifndef HAKMEM_CHECK_GUARD_H
#define HAKMEM_CHECK_GUARD_H

#include "base/types.h"
#include "options/options.h"
#include "os/lock.h"

/* Bytes behind each request that are guarded at least. */
static inline size_t guard_bytes(void)
{
    return options.junk ? 1 : 0;
}

/* A small block of malloc's heap is handed out for a request of `size` bytes, 1 at least, where
 * frees are checked: writes its record. In the debug mode it also compares the pattern of a freed
 * block, and fills what lies behind the request. */
void guard_hand_out(void *block, unsigned class, size_t size);

/* Writes the record of such a block in use, and in the debug mode fills what lies behind the
 * request. */
void guard_set_record(void *block, unsigned class, size_t size);

/* A small block of malloc's heap was freed, where frees are checked or in the debug mode: clears
 * its record. In the debug mode it also ends the program if the program wrote behind the request,
 * and fills the block. */
void guard_take_back(void *block, unsigned class);

/* In the debug mode: */
void guard_fill_fresh_block(void *block, size_t size);
void guard_fill_freed_block(void *block, size_t length);
void guard_fill_slack_of(void *block, size_t size);

/* In the debug mode: fills a block that is about to be handed out for a request of `size` bytes. */
static inline void guard_fill_fresh(void *block, size_t size)
{
    if (UNLIKELY(options.junk))
        guard_fill_fresh_block(block, size);
}

/* In the debug mode: fills what lies behind the request, if the block has a record. */
static inline void guard_fill_slack(void *block, size_t size)
{
    if (UNLIKELY(options.junk))
        guard_fill_slack_of(block, size);
}

/* In the debug mode: fills a block that has no record and was freed. */
static inline void guard_fill_freed(void *block, size_t length)
{
    if (UNLIKELY(options.junk))
        guard_fill_freed_block(block, length);
}

/* Looks at all small blocks, in use or free, and ends the program if it wrote behind the end of one
 * or into a freed one. Other threads may allocate and free meanwhile. Returns how many there are;
 * 0: blocks have no patterns, or no records, or the hit path is open. */
size_t guard_check_all(void);

void guard_at_fork(fork_phase_t phase);

#endif
