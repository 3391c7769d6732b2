/* Memory for our own structures, apart from the program's. Taken from the kernel in chunks, reused
 * by size, never given back: a stale pointer to a structure may still be read. */
#ifndef HAKMEM_OS_META_H
#define HAKMEM_OS_META_H

#include "base/types.h"
#include "os/lock.h"

/* Zeroed memory of at least `size` bytes (1 to 4096), rounded up to a power of two of at least a
 * cache line and aligned to that. NULL when the kernel refuses. Any thread. */
void *meta_alloc(size_t size);

/* Takes back what meta_alloc gave for the same `size`. */
void meta_free(void *ptr, size_t size);

/* Was the last request refused by the kernel? */
bool meta_is_short(void);

/* Adds memory that the page heaps have given up for good; it starts at a multiple of 4096. */
void meta_add(void *start, size_t size);

/* Bytes taken from the kernel or added so far. */
size_t meta_size(void);

/* Of these, the pages that were touched; none of them is ever given back. */
size_t meta_touched_size(void);

void meta_at_fork(fork_phase_t phase);

#endif
