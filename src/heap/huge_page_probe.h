/* What this process knows of the cost of huge pages: one record for the page heap and for blocks
 * with mappings of their own. See huge_page_cost.h for the arithmetic.
 *
 * Where the kernel says that the host takes free memory back (page reporting), the process begins
 * in doubt: it uses small pages, and tries a huge one once it has had several chunks of them. A
 * block that grows by less than a chunk at a time has small pages until the doubt is gone. */
#ifndef HAKMEM_HEAP_HUGE_PAGE_PROBE_H
#define HAKMEM_HEAP_HUGE_PAGE_PROBE_H

#include "base/types.h"
#include "os/lock.h"

/* Do huge pages pay, as far as is known? Takes no lock once the kernel was asked. True where
 * `thp_adaptive` is off. */
bool huge_page_trial_pays(void);

/* How many of the next `chunk_count` chunks may have huge pages. */
size_t huge_page_trial_chunks(size_t chunk_count);

/* A place that is about to be touched for the first time: a huge page, or a unit of small pages. */
typedef struct first_touch {
    char *start; /* NULL: nothing is to be measured */
    bool is_huge;
} first_touch_t;

/* Touches it, and learns what that costs. The caller owns the memory, which reads as zero and stays
 * so. Returns whether huge pages pay. */
bool huge_page_trial_touch(first_touch_t touch);

/* For a block at `start` with a mapping of its own that was `old_size` bytes long and has `size`,
 * both with room to grow, which gets huge pages as a whole or not at all. The block is full up
 * to where it ended, so that huge pages waste nothing of it. (Blocks that are only allocated are
 * not advised: many a program touches a few pages of a great one.) Returns in `is_huge` whether it
 * is to have them, and what to touch. */
first_touch_t huge_page_trial_grown(char *start, size_t old_size, size_t size);

void huge_page_trial_at_fork(fork_phase_t phase);

#endif
