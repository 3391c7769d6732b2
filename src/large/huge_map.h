/* Fresh mappings for huge blocks. What is cut off one to align it, and cannot be unmapped, is an
 * idle block. The caller does not hold the lock of the table. */
#ifndef HAKMEM_LARGE_HUGE_MAP_H
#define HAKMEM_LARGE_HUGE_MAP_H

#include "base/types.h"

/* Maps `size` bytes, whole pages, at a multiple of `alignment`. NULL: the kernel refuses. */
char *huge_map(size_t size, size_t alignment);

#endif
