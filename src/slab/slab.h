/* A slab: a span cut into equal blocks. Any thread may hold any block; a slab has no owner.
 *
 *   blocks      |  0  |  1  |  2  |  3  |  4  | ...          nothing of ours is written in them
 *   free_bits      1     0     0     1     1    ...          out of line, 1 = in the slab
 *
 * A block whose bit is 0 is with the program or in a magazine. The law: free_count is the number of
 * 1 bits, and there are none beyond block_count. The bits, the counts and the lists change under
 * the lock of the central list of the class, or of the private heap; slab_check reads one bit
 * without it, for a block that the caller holds. */
#ifndef HAKMEM_SLAB_SLAB_H
#define HAKMEM_SLAB_SLAB_H

#include "base/list.h"
#include "base/types.h"
#include "slab/size_class.h"
#include "heap/span.h"

typedef struct slab {
    span_t span;         /* first: a slab is a span */
    list_node_t node;    /* in its central list, while it has free blocks; or in its private heap */
    uint64_t *free_bits; /* one bit per block; `only_word` where 64 are enough */
    uint64_t only_word;
    uint16_t free_count;
    uint16_t block_count;
    uint16_t first_word; /* no word before this one has a free block */
    uint8_t class;
    uint8_t fill;          /* its list in the central list of the class; for central_list.c */
    uint16_t looked_count; /* free_count when idle pages were last looked for; 0: look again */
    uint32_t purged; /* a bit for each page that was given back: none of its blocks is in use */
} slab_t;

_Static_assert(sizeof(slab_t) <= SPAN_DESCRIPTOR_SIZE, "a span becomes a slab where it stands");

typedef enum slab_verdict { IN_USE, NOT_A_BLOCK, ALREADY_FREE } slab_verdict_t;

/* The slab that `ptr` lies in, or NULL; safe for any value whatever. */
static inline slab_t *slab_of(const void *ptr)
{
    span_t *span = span_at(ptr);
    return span != NULL && span_state(span) == SPAN_SLAB ? (slab_t *)span : NULL;
}

/* Cuts a new slab, all of its blocks free. NULL: no memory. */
slab_t *slab_create(unsigned class);

/* The same for a private heap: in the page map it has no class, so that free misses. */
slab_t *slab_create_hidden(unsigned class);

/* Hands an entirely free slab back to the page heap. */
void slab_destroy(slab_t *slab, uint64_t now_ms);

/* Takes up to `count` free blocks, lowest address first, and writes them downwards from `top`, so
 * that the lowest is the last written. Returns how many. */
unsigned slab_take(slab_t *slab, void **top, unsigned count);

/* Puts back the first of `count` blocks, and those behind it as far as they lie in this slab too.
 * Returns how many. `*result` is IN_USE, or what is wrong with the next one: NOT_A_BLOCK (inside
 * one, or behind the last) or ALREADY_FREE. `blocks[0]` lies in a unit of the slab. */
unsigned slab_give(slab_t *slab, void *const *blocks, unsigned count, slab_verdict_t *result);

/* Number of the block that begins at `ptr`; block_count or more when none does. */
static inline size_t slab_block_at(const slab_t *slab, const void *ptr)
{
    const size_class_t *shape = &size_classes[slab->class];
    uint64_t offset = (uintptr_t)ptr - (uintptr_t)span_start(&slab->span);
    uint64_t block = offset * shape->reciprocal >> 40;
    return block * shape->size == offset ? block : SIZE_MAX;
}

/* Does a part of the block lie in a page that is on its way to the kernel? Its bit is 0 then, as if
 * it were in use. */
bool slab_leaves(const slab_t *slab, size_t block);

/* relaxed: the pages of a block that the caller holds are not among them */
static inline bool slab_has_leaving(const slab_t *slab)
{
    return UNLIKELY(__atomic_load_n(&slab->span.leaving, __ATOMIC_RELAXED) != 0);
}

static inline bool slab_is_leaving(const slab_t *slab, size_t block)
{
    return slab_has_leaving(slab) && slab_leaves(slab, block);
}

/* Is the block of that number in the slab? */
static inline bool slab_has_free(const slab_t *slab, size_t block)
{
    /* relaxed: other blocks' bits in the word may be changing */
    uint64_t bits = __atomic_load_n(&slab->free_bits[block / 64], __ATOMIC_RELAXED);
    return (bits >> (block % 64)) & 1;
}

/* What slab_give would say of one block. Without the lock: for a block that the caller holds, the
 * slab is there and the block's bit does not change. */
static inline slab_verdict_t slab_check(const slab_t *slab, const void *ptr)
{
    size_t block = slab_block_at(slab, ptr);
    if (block >= slab->block_count)
        return NOT_A_BLOCK;
    return slab_is_leaving(slab, block) || slab_has_free(slab, block) ? ALREADY_FREE : IN_USE;
}

/* Would slab_check say IN_USE? Without a call, and so false for any block while pages of the slab
 * are leaving. */
static inline bool slab_surely_lacks(const slab_t *slab, const void *ptr)
{
    size_t block = slab_block_at(slab, ptr);
    return block < slab->block_count && !slab_has_leaving(slab) && !slab_has_free(slab, block);
}

/* Takes a run of `least` pages (1, 2 or 4) or more in which no block is in use and which may hold
 * memory, `most_bytes` of them or one page: a bit for each; 0: there is none. The blocks that lie
 * there count as in use until slab_return_pages, so that the slab stays and nobody gets them. The
 * caller holds the lock. */
uint32_t slab_take_pages(slab_t *slab, size_t most_bytes, unsigned least);

/* Gives a run that was taken back to the kernel; it stays part of the slab. False: the kernel
 * refuses. The caller holds no lock (os_purge). */
bool slab_purge_pages(const slab_t *slab, uint32_t run);

/* The blocks of the run are free again. Returns how many that are. The caller holds the lock. */
unsigned slab_return_pages(slab_t *slab, uint32_t run, bool is_purged);

/* Bytes of its pages that were given back and have not been taken since. */
size_t slab_purged_bytes(const slab_t *slab);

/* Has it a free block of which no part lies in a page that was given back? */
bool slab_has_resident(const slab_t *slab);

bool slab_is_valid(const slab_t *slab);

#endif
