/* Descriptors of huge blocks, and the lists of those that are kept after their free: warm ones,
 * which hold memory, and idle ones, of which only the addresses are left. Lists alone: the lock is
 * the caller's (huge.c). */
#ifndef HAKMEM_LARGE_HUGE_KEPT_H
#define HAKMEM_LARGE_HUGE_KEPT_H

#include "base/list.h"
#include "base/types.h"
#include "large/address_tree.h"

typedef struct huge {
    address_range_t range; /* first: in the table */
    list_node_t age_node;  /* CACHED: among the warm or the idle ones, youngest first */
    list_node_t bin_node;  /* CACHED: among those of similar length, warm ones first */
    size_t kept;           /* CACHED: bytes from the start that may still hold memory */
    uint64_t freed_ms;
    bool is_cached;
    bool is_idle;    /* CACHED: it is among the idle ones */
    bool is_advised; /* to use huge pages */
    bool is_apart;   /* the kernel joins it with no neighbour: it was moved or advised */
    uint8_t wishes;  /* huge_wish_t, of the code that asked for it */
} huge_t;

/* Bytes that warm blocks hold: those that are to be kept for longer (HUGE_WISH_KEEP), and all
 * others; and how many idle blocks there are. They may be read without the lock. */
extern HIDDEN size_t huge_kept_longer_bytes, huge_kept_bytes, huge_kept_idle_count;

/* Puts a CACHED block that holds memory into the lists, as the youngest or as the oldest. */
void huge_kept_add_warm(huge_t *huge, bool is_youngest);

/* The same for one that holds none. */
void huge_kept_add_idle(huge_t *huge);

/* Takes a block out of the lists. */
void huge_kept_drop(huge_t *huge);

/* A block that fits, of `longest` bytes at most; of few lengths only, the best. It stays in the
 * lists. NULL: there is none. */
huge_t *huge_kept_best(size_t size, size_t alignment, size_t longest);

/* The oldest warm block that was freed at `before_ms` or earlier; those that are to be kept for
 * longer, as much earlier, unless `before_ms` is UINT64_MAX. NULL: there is none. */
huge_t *huge_kept_oldest(uint64_t before_ms);

huge_t *huge_kept_oldest_idle(void);

void huge_kept_create(void);

#endif
