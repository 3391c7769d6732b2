/* What the two files of the central lists share: central_list.c hands blocks out and takes them
 * back, central_list_pages.c gives pages of slabs back to the kernel. */
#ifndef HAKMEM_SLAB_CENTRAL_LIST_INTERNAL_H
#define HAKMEM_SLAB_CENTRAL_LIST_INTERNAL_H

#include "base/bits.h"
#include "base/list.h"
#include "base/types.h"
#include "os/lock.h"
#include "slab/central_list.h"
#include "slab/slab.h"
#include "keep/budget.h"

typedef enum fill {
    FILL_PURGED,   /* all free blocks lie in pages that were given back */
    FILL_RESIDENT, /* some do not, as far as is known */
    FILL_COUNT,
    FILL_NONE = FILL_COUNT, /* in no list */
} fill_t;

typedef struct central_list {
    lock_t lock;
    bool empty_is_old;             /* the spare slab was already there at the last trim */
    slab_t *empty;                 /* one entirely free slab, kept aside */
    list_node_t slabs[FILL_COUNT]; /* with free blocks */
    central_statistics_t statistics;
    size_t least_free;       /* blocks: the fewest since the last look at pages */
    size_t published_bytes;  /* its part of central_lists_totals.free; read without the lock too */
    size_t published_purged; /* its part of central_lists_totals.purged, likewise */
    bool is_sparse; /* more memory lies in its free blocks than in others; read without lock */
    uint16_t leaving_count; /* threads that give pages back, whose blocks are not free meanwhile */
} __attribute__((aligned(CACHE_LINE))) central_list_t;

/* By class. The list of class 0 has nothing. */
extern HIDDEN central_list_t central_lists[CLASS_COUNT];

/* How many blocks of a list have been idle. The table of these lies apart from the lists, so that a
 * process that ends before the first look at pages touches none of it. */
typedef struct central_list_idle {
    budget_t budget;
    uint64_t walked_ms; /* when slabs were last looked through for pages that may go */
    uint64_t tried_ms;  /* when tried_bytes was last forgotten */
    /* Guesses, read and written without the lock: */
    size_t due_bytes;   /* of pages that are to go */
    size_t tried_bytes; /* published_bytes when no more pages could be found; 0: try again */
} central_list_idle_t;

extern HIDDEN central_list_idle_t central_lists_idle[CLASS_COUNT];

static inline budget_t *central_list_budget(const central_list_t *list)
{
    return &central_lists_idle[list - central_lists].budget;
}

static inline unsigned central_list_class(const central_list_t *list)
{
    return (unsigned)(list - central_lists);
}

/* Takes the slab out of its list. */
static inline void central_list_leave(slab_t *slab)
{
    list_remove(&slab->node);
    slab->fill = FILL_NONE;
}

/* Puts a slab with free blocks where it belongs. Has it any that cost no page fault? */
static inline void central_list_place(central_list_t *list, slab_t *slab, bool has_resident)
{
    fill_t fill = has_resident ? FILL_RESIDENT : FILL_PURGED;
    if (LIKELY(slab->fill == (uint8_t)fill))
        return;
    list_remove(&slab->node);
    list_push_front(&list->slabs[fill], &slab->node);
    slab->fill = (uint8_t)fill;
}

/* Blocks of the slab are free again that were not for a while; it may be entirely free now. */
void central_list_returned(central_list_t *list, slab_t *slab, bool has_resident);

/* Bytes of free blocks that may still hold memory, counted from so many free ones. */
static inline size_t central_list_bytes(const central_list_t *list, unsigned class,
                                        size_t free_count)
{
    size_t bytes = free_count * size_classes[class].size;
    return bytes - smaller_of(bytes, list->statistics.purged_bytes);
}

/* Publishes the list's parts of the totals. The caller holds the lock. */
void central_list_publish(central_list_t *list, unsigned class);

#endif
