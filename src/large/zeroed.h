/* Does the program write all of the large zeroed blocks that it asks for? Many a program asks for a
 * large one, a table or an array, and touches little of it. The pages of such a block had better
 * come from the kernel, one by one as they are touched; where all of them are written, it is
 * cheaper to clear memory that is there.
 *
 * Nobody can know before. Therefore blocks whose pages came from the kernel are looked at when they
 * are freed: how many of these pages are there? */
#ifndef HAKMEM_LARGE_ZEROED_H
#define HAKMEM_LARGE_ZEROED_H

#include "base/types.h"

/* Were such blocks mostly touched in a few places, lately? Any thread. */
bool zeroed_are_sparse(void);

/* Notes that the block, whose pages came from the kernel, is about to be freed; it is the caller's.
 * Was it touched in a few places only, and does it fill whole pages? Any thread. */
bool zeroed_note_freed(const char *start, size_t size);

#endif
