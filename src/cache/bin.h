/* Bins. One thread owns each bin; nothing here locks.
 *
 * A bin is one pointer, `top`, into a magazine: an array of block pointers, 1 KiB, aligned to that.
 *
 *   next count | NULL | block block block  ... stale ...  BIN_FULL | stale | BIN_FULL
 *                ^      slots[0]                                            slots[124]
 *              bottom                ▲ top                 ▲ slots[capacity]
 *
 * The two ends are values, not lengths: a pop that finds NULL under the top is a miss, a push that
 * finds BIN_FULL at the top is a miss. So hit and miss are told apart by the cache line that the
 * operation touches anyway, and moving BIN_FULL is all it takes to change a bin's capacity.
 *
 * (Magazines: Bonwick and Adams, USENIX 2001. Ends marked by values: our own.) */
#ifndef HAKMEM_CACHE_BIN_H
#define HAKMEM_CACHE_BIN_H

#include "base/types.h"
#include "slab/size_class.h"

#define MAGAZINE_SIZE ((size_t)1024)
#define MAGAZINE_SLOTS BIN_MOST

/* No block lies at this address. */
#define BIN_FULL ((void *)-1)

typedef struct magazine {
    struct magazine *next; /* in a depot or a pool */
    size_t count;          /* blocks in it, while no bin points into it */
    void *bottom;          /* NULL for ever */
    void *slots[MAGAZINE_SLOTS + 1];
} magazine_t;

_Static_assert(sizeof(magazine_t) == MAGAZINE_SIZE, "the magazine of a top is found by a mask");

/* void *, so that a compiler must assume that a slot and the bin itself may be the same memory: it
 * then bumps `top` in place, one instruction, instead of writing back a copy. */
typedef struct bin {
    void **top;
} bin_t;

/* The magazine that the bin's top points into. */
static inline magazine_t *bin_magazine(const bin_t *bin)
{
    return (magazine_t *)((uintptr_t)bin->top & ~(MAGAZINE_SIZE - 1));
}

static inline size_t bin_count(const bin_t *bin)
{
    return (size_t)(bin->top - bin_magazine(bin)->slots);
}

/* A block, or NULL: the bin is empty. */
static inline void *bin_pop(bin_t *bin)
{
    void **top = bin->top;
    void *block = top[-1];
    if (LIKELY(block != NULL))
        bin->top = top - 1;
    return block;
}

/* False: the bin is full, or the block is its top already (freed twice in a row). */
static inline bool bin_push(bin_t *bin, void *block)
{
    void **top = bin->top;
    if (UNLIKELY(*top == BIN_FULL) || UNLIKELY(top[-1] == block))
        return false;
    *top = block;
    bin->top++;
    return true;
}

/* Is the block the first or the last in the bin? It has been freed before, then. */
static inline bool bin_has_at_an_end(const bin_t *bin, const void *block)
{
    return bin_count(bin) != 0 && (bin->top[-1] == block || bin_magazine(bin)->slots[0] == block);
}

#endif
