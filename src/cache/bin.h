/* Bins. One thread owns each bin; nothing here locks.
 *
 * A bin is one pointer, `top`, into a magazine: an array of block pointers, 1 KiB, aligned to that.
 *
 *   next count | NULL | block block block  ... stale ...  full | stale
 *                ^      slots[0]                          slots[capacity]
 *              bottom                ▲ top
 *
 * The two ends are values, not lengths: a pop that finds NULL under the top is a miss, and so is a
 * push where the slot at the top holds its own address ("full"). A hit and a miss are thus
 * separated by the cache line that the operation touches anyway, and writing one slot is all it
 * takes to change a bin's capacity.
 *
 * The bins of a thread stand in its static TLS, where the hit path finds them without any other
 * address: see base/arch/thread_space.h. On x86-64 offset 0 is no bin there but a word that holds
 * its own address; taken for the top of a bin, it is full. To pop from it would be wrong: the words
 * in front of it are the program's.
 *
 * (Magazines: Bonwick and Adams, USENIX 2001. Ends marked by values: our own.) */
#ifndef HAKMEM_CACHE_BIN_H
#define HAKMEM_CACHE_BIN_H

#include "base/arch/thread_space.h"
#include "base/types.h"
#include "slab/size_class.h"

#define MAGAZINE_SIZE ((size_t)1024)
#define MAGAZINE_SLOTS BIN_MOST

typedef struct magazine {
    struct magazine *next; /* in a depot or a pool */
    size_t count;          /* blocks in it, while no bin points into it */
    void *bottom;          /* NULL for ever */
    void *slots[MAGAZINE_SLOTS + 1];
} magazine_t;

_Static_assert(sizeof(magazine_t) == MAGAZINE_SIZE, "the magazine of a top is found by a mask");

/* void *, so that a compiler must assume that a slot and the bin itself may be the same memory: the
 * compiler then bumps `top` in place, one instruction, instead of writing back a copy. */
typedef struct bin {
    void **top;
} bin_t;

_Static_assert(sizeof(bin_t) == 1 << CLASS_OFFSET_SHIFT, "what class_offset_t means");

/* The bins of the calling thread, each both empty and full while it has no cache (thread_cache.h);
 * that of class 0 always is. */
extern HIDDEN _Thread_local bin_t thread_bins[CLASS_COUNT];

/* The magazine that such a bin points into: one with room for nothing. */
extern HIDDEN const magazine_t empty_magazine;
#define EMPTY_TOP ((void **)(uintptr_t)empty_magazine.slots)

/* One of them as the hit path reaches it. */
typedef THREAD_SPACE bin_t thread_bin_t;

static inline thread_bin_t *thread_bin(class_offset_t offset)
{
    return (thread_bin_t *)thread_space_at(thread_bins, offset);
}

/* The magazine that the bin's top points into. */
static inline magazine_t *bin_magazine(const bin_t *bin)
{
    return (magazine_t *)((uintptr_t)bin->top & ~(MAGAZINE_SIZE - 1));
}

static inline size_t bin_count(const bin_t *bin)
{
    return (size_t)(bin->top - bin_magazine(bin)->slots);
}

/* Ends a bin there: marks the slot as full. */
static inline void bin_end_at(void **slot)
{
    *slot = slot;
}

/* The block becomes the top one. The block is in its slot before the top says so: a signal handler
 * that calls exit looks through the bin (verify.c). */
static inline void bin_place(bin_t *bin, void *block)
{
    void **top = bin->top;
    *top = block;
    __atomic_signal_fence(__ATOMIC_RELEASE);
    bin->top = top + 1;
}

/* Is the block one of the two below the top? Of a bin with fewer than two this reads `bottom` and
 * `count`, which no block has for its address. */
static inline bool top_has(void *const *top, const void *block)
{
    return UNLIKELY(top[-1] == block) || UNLIKELY(top[-2] == block);
}

static inline bool top_is_full(void *const *top)
{
    return *top == (const void *)top;
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

/* False: the bin is full, or the block is one of the two on top (freed twice, with at most one
 * other free between). */
static inline bool bin_push(bin_t *bin, void *block)
{
    void **top = bin->top;
    if (UNLIKELY(top_is_full(top)) || top_has(top, block))
        return false;
    bin_place(bin, block);
    return true;
}

/* bin_pop and bin_push for a bin of the calling thread. The types differ, so the bodies stand here
 * again. */
static inline void *thread_bin_pop(thread_bin_t *bin)
{
    void **top = bin->top;
    void *block = top[-1];
    if (LIKELY(block != NULL))
        bin->top = top - 1;
    return block;
}

static inline bool thread_bin_push(thread_bin_t *bin, void *block)
{
    void **top = bin->top;
    if (UNLIKELY(top_is_full(top)) || top_has(top, block))
        return false;
    *top = block;
    __atomic_signal_fence(__ATOMIC_RELEASE); /* as in bin_place */
    bin->top++;
    return true;
}

/* Is the block the first in the bin or one of the last two? Then the block has been freed
 * before. */
static inline bool bin_has_at_an_end(const bin_t *bin, const void *block)
{
    return bin_count(bin) != 0 &&
           (top_has(bin->top, block) || bin_magazine(bin)->slots[0] == block);
}

#endif
