/* The central list of a size class: every slab of the class that has free blocks, shared by all
 * threads under one lock. Blocks go in and out of it by the dozen; single ones only where thread
 * caches are off. */
#ifndef HAKMEM_SLAB_CENTRAL_LIST_H
#define HAKMEM_SLAB_CENTRAL_LIST_H

#include "base/types.h"
#include "os/lock.h"
#include "os/shared_total.h"

typedef struct central_statistics {
    uint32_t slab_count;
    uint32_t unit_count; /* of the slabs */
    size_t block_count;  /* in all slabs; base/count.h: read without the lock too */
    size_t free_count;   /* of them, not handed out */
    size_t purged_bytes; /* of pages in these slabs that were given back and not taken since */
    uint64_t ever_purged_bytes; /* given back so far */
} central_statistics_t;

void central_lists_create(void);

/* Takes up to `count` blocks, lowest address of a slab first, writing downwards from `top`. Returns
 * how many: fewer than asked only when there is no memory for another slab and some were found. */
unsigned central_list_take(unsigned class, void **top, unsigned count);

/* A block, or NULL: no memory. */
static inline void *central_list_take_one(unsigned class)
{
    void *block = NULL;
    central_list_take(class, &block + 1, 1);
    return block;
}

/* Would central_list_give have to wait, at this moment? A look. */
bool central_list_is_busy(unsigned class);

/* Puts blocks back. A block that is already free, or none of the class, ends the program with a
 * line that says so. The pages of blocks that `are_idle` (nobody has wanted them for a while) need
 * not wait again before they go (central_lists_look). */
void central_list_give_as(unsigned class, void *const *blocks, unsigned count, bool are_idle);

static inline void central_list_give(unsigned class, void *const *blocks, unsigned count)
{
    central_list_give_as(class, blocks, count, false);
}

static inline void central_list_give_idle(unsigned class, void *const *blocks, unsigned count)
{
    central_list_give_as(class, blocks, count, true);
}

/* Gives back slabs that have been entirely free since the last call (or at once: `all`). */
void central_lists_trim(uint64_t now_ms, bool all);

/* Looks how many bytes lie in pages in which no block is in use, of classes of which nobody needed
 * the free blocks for as long as free memory waits (keep/keep.h): these are due. A class with
 * little of that keeps it. To be called in each PURGE_PERIOD_MS, by one thread at a time. */
void central_lists_look(uint64_t now_ms);

/* May be read without a lock. */
typedef struct central_lists_totals {
    shared_total_t free;   /* of free blocks in slabs that may still hold memory */
    shared_total_t purged; /* of pages in slabs that were given back and not taken since */
    size_t due_bytes;      /* an upper estimate of what central_lists_purge_due would give back */
} central_lists_totals_t;

extern HIDDEN central_lists_totals_t central_lists_totals;

/* Gives back what is due, some `most_bytes` of it. Returns bytes. Any thread may call this and the
 * next two. The caller holds no lock: the program may have put hooks into madvise. */
size_t central_lists_purge_due(size_t most_bytes);

/* Gives back some `most_bytes` of such pages, needed lately or not. Returns bytes. */
size_t central_lists_purge_pages(size_t most_bytes);

/* Gives back all of them. Returns bytes. */
size_t central_lists_purge_all_pages(void);

/* Do free blocks of the class hold more memory than those in use? A guess, of the last look at
 * pages. Then it is worth it that new blocks come from the fullest slabs. */
bool central_list_is_sparse(unsigned class);

central_statistics_t central_list_statistics(unsigned class);

/* Keeps the slabs of a class as they are: none is made, filled, emptied or given up. */
void central_list_lock(unsigned class);
void central_list_unlock(unsigned class);

/* The law: every slab that stands here is valid and has free blocks, and they add up. Takes the
 * locks. */
bool central_lists_are_valid(void);

void central_lists_at_fork(fork_phase_t phase);

#endif
