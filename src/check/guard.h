/* Patterns that make wrong use of memory show: the debug mode (option junk).
 *
 *   in use   | 0xa5 until the program writes it | 0xc5 behind the size asked for |
 *   freed    | 0xdf ....................................................... |
 *
 * Fresh memory is filled whatever else is set. The bytes behind the request are compared when a
 * small block is freed, and the fill of a freed one when it is handed out again; both at the end of
 * the process and by hakmem_check. They need the block's record (check_frees). A lock keeps a
 * record and the pattern that it speaks of together. A byte behind the request is always there: one
 * that would fill its block gets a block of the next class. Of blocks above 32 KiB only the first
 * and last page are filled: more would touch memory that the program does not. */
#ifndef HAKMEM_CHECK_GUARD_H
#define HAKMEM_CHECK_GUARD_H

#include "base/types.h"
#include "os/lock.h"

/* Fills a block that is about to be handed out for a request of `size` bytes. */
void guard_fill_fresh(void *block, size_t size);

/* Writes the record of a small block of the class for a request of `size` bytes, 1 at least, and
 * fills what lies behind it. Where frees are checked. */
void guard_give_record(void *block, unsigned class, size_t size);

/* Fills what lies behind the request, if the block has a record. */
void guard_fill_slack(void *block, size_t size);

/* Ends the program unless the freed block of `length` bytes is as guard_take_back left it. */
void guard_check_filled(const void *block, size_t length);

/* A small block of the class was freed: ends the program if it wrote behind the request; fills the
 * block. Without a record it only fills. */
void guard_take_back(void *block, unsigned class);

/* Looks at all small blocks, in use or free, and ends the program if it wrote behind the end of one
 * or into a freed one. Other threads may allocate and free meanwhile. Returns how many there are;
 * 0: blocks have no patterns, or no records, or the hit path is open. */
size_t guard_check_all(void);

void guard_at_fork(fork_phase_t phase);

/* Fills a large block that was freed. */
void guard_fill_freed(void *block, size_t length);

#endif
