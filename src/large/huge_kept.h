/* Descriptors of huge blocks, and the lists of those that are kept after their free: warm ones,
 * which hold memory, and idle ones, of which only the addresses are left. Lists alone: the lock is
 * the caller's (huge.c). */
#ifndef HAKMEM_LARGE_HUGE_KEPT_H
#define HAKMEM_LARGE_HUGE_KEPT_H

#include "base/list.h"
#include "base/types.h"
#include "large/address_tree.h"

/* What an address is to us: nothing, inside a block, or the start of one. */
typedef enum huge_state { HUGE_NONE, HUGE_INSIDE, HUGE_CACHED, HUGE_LIVE } huge_state_t;

/* The list that a block is in. */
typedef enum huge_list { HUGE_UNLISTED, HUGE_WARM, HUGE_IDLE } huge_list_t;

typedef struct huge {
    address_range_t range; /* first: in the table */
    list_node_t age_node;  /* CACHED: among the warm or the idle ones, youngest first */
    list_node_t bin_node;  /* CACHED: among those of similar length, warm ones first */
    size_t asked_size;     /* LIVE: bytes that were asked for last, in pages; the rest is room */
    size_t kept;           /* CACHED: bytes from the start that may still hold memory */
    uint64_t freed_ms;
    size_t mapping;  /* number of the mapping that it was cut off, with others of the same number */
    uint8_t state;   /* huge_state_t: CACHED or LIVE */
    uint8_t list;    /* huge_list_t; UNLISTED: it is LIVE, or on its way to the kernel */
    bool is_zeroed;  /* LIVE: its pages came from the kernel, as its owner wanted zeros */
    bool has_grown;  /* LIVE: realloc has made it longer */
    bool is_advised; /* to use huge pages */
} huge_t;

/* May be read without the lock. */
typedef struct huge_kept_totals {
    size_t bytes;      /* that warm blocks hold */
    size_t idle_count; /* of idle blocks */
} huge_kept_totals_t;

extern HIDDEN huge_kept_totals_t huge_kept_totals;

/* Puts a CACHED block that holds memory into the lists, as the youngest or as the oldest. */
void huge_kept_add_warm(huge_t *huge, bool is_youngest);

/* The same for one that holds none. */
void huge_kept_add_idle(huge_t *huge);

/* Takes a block out of the lists. */
void huge_kept_drop(huge_t *huge);

/* Is the block in a list? */
static inline bool huge_is_kept(const huge_t *huge)
{
    return huge->list != HUGE_UNLISTED;
}

/* Of a warm block, what lies behind its length has become the block `rest`, a copy of its
 * descriptor: divides what it held, and puts the rest into the lists with the same age. */
void huge_kept_split(huge_t *huge, huge_t *rest);

/* Cuts `size` bytes off the start of a block in a list. If that was all of it, it is in no list. */
void huge_kept_cut_start(huge_t *huge, size_t size);

/* A block that fits, of `longest` bytes at most; of few lengths only, the best. The block
 * stays in the lists. NULL: there is none. */
huge_t *huge_kept_best(size_t size, size_t alignment, size_t longest);

/* A warm block of nearly the greatest length, whose first `size` bytes hold memory. The
 * block stays in the lists. NULL: there is none. */
huge_t *huge_kept_longest(size_t size);

/* The oldest warm block, if it was freed at `before_ms` or earlier. NULL: there is none. */
huge_t *huge_kept_oldest(uint64_t before_ms);

huge_t *huge_kept_oldest_idle(void);

void huge_kept_create(void);

#endif
