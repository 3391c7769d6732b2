/* Holders of free memory: holders.c has a row for each place where it lies. Upkeep (upkeep.h)
 * decides how much of it goes; reclaim.h lets all of it go.
 *
 * Memory is free and dirty where it may still hold pages. Counts are guesses while other threads
 * run. The caller of what gives back holds no lock: the program may have put hooks into madvise. */
#ifndef HAKMEM_UPKEEP_HOLDERS_H
#define HAKMEM_UPKEEP_HOLDERS_H

#include "base/types.h"

/* Units, nearly. */
typedef struct holdings {
    size_t used;   /* in blocks of the program */
    size_t pages;  /* free and dirty, in whole pages */
    size_t inside; /* free and dirty beside blocks in use */
    size_t free;   /* of both, without what was found to be stuck beside blocks in use (upkeep.c) */
} holdings_t;

holdings_t holders_count(void);

/* What limits of memory count. Bytes. */
typedef struct footprint {
    size_t mapped; /* by the heap and huge blocks */
    size_t held;   /* blocks in use, touched or not, and free memory that holds pages */
} footprint_t;

footprint_t holders_footprint(void);

/* Blocks in the thread's own cache, in caches of ended threads and in depots go to the slabs. Empty
 * slabs and spans in the span cache become free pages. */
void holders_let_go(uint64_t now_ms);

/* Large spans that were idle for `age_ms` become free pages, and caches of ended threads that do
 * not wait go. Where `are_blocks_due`, such caches go after TRIM_PERIOD_MS, and so do blocks that
 * nobody wanted since the last such call, or all if `is_full`. The callers come one at a time. */
void holders_trim(uint64_t age_ms, bool are_blocks_due, bool is_full, uint64_t now_ms);

/* Units of free pages that are dirty. */
size_t holders_free_pages(void);

/* Finds out what nobody has needed for as long as free memory waits: that is due. The checked build
 * checks the laws of the holders that have one. The callers come one at a time. */
void holders_look(uint64_t now_ms);

/* Is something due anywhere? */
bool holders_are_due(void);

/* Gives back some `most` units of what is due. Returns units. */
size_t holders_give_due(size_t most, uint64_t now_ms);

/* Gives back some `most` units, wanted or not: of those who hold whole pages, or of those who hold
 * what lies beside blocks in use. Returns units; 0: nothing has moved. */
size_t holders_give(bool is_inside, size_t most, uint64_t now_ms);

#endif
