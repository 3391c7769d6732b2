/* The C library's own heap behind ours: for LD_SAFE, and for blocks that a library bound to the C
 * library directly (RTLD_DEEPBIND) got there and gives to us. */
#ifndef HAKMEM_ENTRY_LIBC_HEAP_H
#define HAKMEM_ENTRY_LIBC_HEAP_H

#include "base/types.h"

/* Everything is to come from the C library, and the calling thread is not just looking up its
 * functions (which may allocate). */
bool libc_heap_serves(void);

/* Is `ptr`, which is not ours, surely a block of the C library's heap? */
bool libc_heap_owns(const void *ptr);

void *libc_heap_malloc(size_t size);
void *libc_heap_calloc(size_t count, size_t size);
void *libc_heap_realloc(void *ptr, size_t size);
void *libc_heap_memalign(size_t alignment, size_t size);
size_t libc_heap_usable_size(void *ptr);
void libc_heap_free(void *ptr);

#endif
