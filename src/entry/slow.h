/* The slow halves of the entry points, and the few questions that they share. */
#ifndef HAKMEM_ENTRY_SLOW_H
#define HAKMEM_ENTRY_SLOW_H

#include "base/types.h"
#include "cache/thread_cache.h"
#include "slab/block_record.h"
#include "slab/private_heap.h"
#include "slab/slab.h"

/* `caller` is the return address of the entry point: who asks. */
typedef void *(*allocate_slow_t)(size_t size, const void *caller);

/* The stack pointer with which the program has called the entry point: for a function that entry
 * points jump to, which gcc makes of a call at the end. */
#define STACK_OF_CALLER ((const char *)__builtin_dwarf_cfa())

/* malloc(size) for whatever reason the hit path missed. NULL with errno ENOMEM when refused. */
void *malloc_slow(size_t size, const void *caller);

/* The same for those who call it and do not jump. */
void *malloc_slow_from(size_t size, const void *caller, const char *stack);

/* The same for operator new: calls the new-handler and throws std::bad_alloc instead. */
void *new_slow(size_t size, const void *caller);

void *calloc_slow(size_t count, size_t size, const void *caller);

/* free(ptr) for whatever reason the hit path missed. Keeps errno. */
void free_slow(void *ptr);

/* The same where the caller has said how long the block is; options.size_check compares. */
void free_sized_slow(void *ptr, size_t size);

/* free(ptr) for a large block that realloc has just copied to a longer one. False: `ptr` is no
 * large block, and nothing has happened. */
bool free_outgrown(void *ptr);

/* A block whose address is a multiple of `alignment`, a power of two. NULL with ENOMEM. */
void *allocate_aligned(size_t alignment, size_t size);

/* A block of a private heap, all zero if `is_zeroed`. NULL with ENOMEM. */
void *allocate_private(private_heap_t *heap, size_t size, size_t alignment, bool is_zeroed);

/* A block for one that realloc moves and that a profile follows (samples_follow): its free is seen.
 * `heap` NULL: that of malloc; `group` 0: none. NULL with ENOMEM. */
void *allocate_followed(private_heap_t *heap, unsigned group, size_t size);

/* A block of a group (site/groups.h), or as malloc's where there is no such group. NULL with
 * ENOMEM. */
void *allocate_in_group(unsigned group, size_t size, size_t alignment);

/* The slab that the block at `ptr`, which is in use, belongs to, as far as can be said at once;
 * NULL: ask block_size. Any value may be asked about. */
static inline __attribute__((always_inline)) const slab_t *small_block_slab(const void *ptr)
{
    const slab_t *slab = slab_of(ptr);
    if (UNLIKELY(slab == NULL || !slab_surely_lacks(slab, ptr) || frees_are_checked() ||
                 thread_cache_has_on_top(ptr, slab->class)))
        return NULL;
    return slab;
}

/* Length of the block that begins at `ptr` (not NULL). Ends the program with a line naming `verb`
 * if none does; SIZE_MAX when it belongs to another allocator, which the caller must ask. */
size_t block_size(const void *ptr, const char *verb);

/* Answers NULL with errno ENOMEM. */
void *out_of_memory(void);

#endif
