/* Memory for our own structures, apart from the program's. Taken from the kernel in chunks, reused
 * by size, never given back: whoever holds a stale pointer to a structure may still read it. */
#ifndef HAKMEM_OS_META_H
#define HAKMEM_OS_META_H

#include "base/types.h"
#include "os/lock.h"

/* Zeroed memory of at least `size` bytes (1 to 4096), rounded up to a power of two of at least a
 * cache line and aligned to that. NULL when the kernel refuses. Any thread. */
void *meta_alloc(size_t size);

/* Takes back what meta_alloc gave for the same `size`. */
void meta_free(void *ptr, size_t size);

/* Bytes taken from the kernel so far. */
size_t meta_size(void);

void meta_at_fork(fork_phase_t phase);

#endif
