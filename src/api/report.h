/* Sums over all layers. While other threads run they are guesses that need not agree. */
#ifndef HAKMEM_API_REPORT_H
#define HAKMEM_API_REPORT_H

#include "base/types.h"
#include "hakmem.h"

hakmem_statistics_t report_statistics(void);

/* Blocks that the program has, and what they hold. */
typedef struct used {
    size_t count;
    size_t bytes;
} used_t;

/* Of one size class, of those above 32 KiB, and of those with a mapping of their own. */
size_t report_used_blocks(unsigned class);
used_t report_used_large(void);
used_t report_used_huge(void);

/* How many pieces the free memory is in. */
typedef struct report_pieces {
    size_t cached;        /* small blocks in thread caches and depots */
    size_t free_in_slabs; /* small blocks in slabs */
    size_t kept;          /* large blocks in the span cache */
    size_t free_runs;     /* page heaps with free pages: these are joined, so one counts as one */
} report_pieces_t;

report_pieces_t report_pieces(void);

#endif
