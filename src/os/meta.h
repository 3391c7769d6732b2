/* Memory for our own structures, apart from the program's. The memory is taken from the kernel in
 * chunks and reused by size. Where many pages hold no structure in use, these pages lose their
 * memory. No chunk is ever unmapped: a stale pointer to a structure may still be read, and finds
 * another structure of the same length, or zeros. */
#ifndef HAKMEM_OS_META_H
#define HAKMEM_OS_META_H

#include "base/types.h"
#include "os/lock.h"

/* Bytes mapped at a time: 64 pages of 4 KiB; a small process takes one chunk. */
#define META_CHUNK (256 * KIB)

/* The longest object. */
#define META_MOST (4 * KIB)

/* Zeroed memory of at least `size` bytes (1 to META_MOST), rounded up to a power of two of at least
 * 128 and aligned to that. NULL when the kernel refuses. Any thread. */
void *meta_alloc(size_t size);

/* Takes back what meta_alloc gave for the same `size`. */
void meta_free(void *ptr, size_t size);

/* Was the last request refused by the kernel? */
bool meta_is_short(void);

/* Adds memory that the page heap has given up for good; start and size are multiples of
 * UNIT_SIZE. */
void meta_add(void *start, size_t size);

/* Bytes taken from the kernel or added so far. */
size_t meta_size(void);

/* Of these, the pages that hold memory. */
size_t meta_touched_size(void);

void meta_at_fork(fork_phase_t phase);

#endif
