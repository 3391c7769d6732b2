/* Private heaps: heaps that the program makes beside the one of malloc, and gives up as a whole.
 *
 * A private heap has slabs of its own, so that none of its blocks stands among others', and a list
 * of its large blocks. Pages come from the page heap that serves everything: what one heap gives
 * up serves the next without a page fault, and one budget says what is kept. In the page map its
 * slabs have class 0: the hit path of free misses for its blocks, and pays nothing for them.
 *
 * A block may be freed by any thread, by free like any other. Each call takes a lock, one of 16
 * that all private heaps share. */
#ifndef HAKMEM_SLAB_PRIVATE_HEAP_H
#define HAKMEM_SLAB_PRIVATE_HEAP_H

#include "base/types.h"
#include "os/lock.h"
#include "slab/slab.h"

typedef struct private_heap private_heap_t;

/* What all private heaps have in slabs. */
typedef struct private_statistics {
    size_t slab_count;
    size_t slab_bytes;
    size_t used_bytes; /* blocks that the program has */
    size_t free_bytes; /* free blocks */
    size_t used_count;
    size_t free_count;
} private_statistics_t;

/* A new heap. NULL: no memory, or there are PRIVATE_HEAPS_MOST. */
private_heap_t *private_heap_create(void);

/* Is there such a heap now? May be asked of one that was destroyed, too. */
bool private_heap_exists(const private_heap_t *heap);

/* Takes all blocks of the heap back, in use or not, and the heap itself. Nobody may use either any
 * more. False: there is no such heap. */
bool private_heap_destroy(private_heap_t *heap, uint64_t now_ms);

/* The heap that the block at `ptr`, which is in use, belongs to; NULL: that of malloc. For any
 * value. */
private_heap_t *private_heap_of(const void *ptr);

/* A block of the class (not 0). NULL: no memory. */
void *private_heap_take(private_heap_t *heap, unsigned class);

/* A large block of at least `size` bytes at a multiple of `alignment`. *is_zero says whether it
 * surely reads as zero. NULL: no memory. */
void *private_heap_take_large(private_heap_t *heap, size_t size, size_t alignment, bool *is_zero);

/* Takes the small block at `ptr` back into its slab, which a private heap has. A block that is
 * free already, or none, ends the program with a line that says so. */
void private_heap_give(slab_t *slab, void *ptr);

/* The large block in the span is about to be freed: its heap forgets it. */
void private_heap_forget(span_t *span);

/* Of one heap: blocks that the program has, their bytes, and those of slabs and large blocks. */
typedef struct private_heap_size {
    size_t used_count;
    size_t used_bytes;
    size_t mapped_bytes;
} private_heap_size_t;

private_heap_size_t private_heap_size(const private_heap_t *heap);

/* The sum over all private heaps. */
private_statistics_t private_heaps_statistics(void);

/* Blocks of the class that the program has in them; a guess while other threads run. */
size_t private_heaps_used(unsigned class);

/* The law: lists, counts and numbers agree, in all private heaps. Takes the locks. */
bool private_heaps_are_valid(void);

void private_heaps_create(void);
void private_heaps_at_fork(fork_phase_t phase);

#endif
