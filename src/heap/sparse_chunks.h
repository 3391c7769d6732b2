/* Chunks that may have huge pages and have lost some of their pages while others are in use, or
 * are about to be touched in few places only.
 *
 * The kernel looks for such ranges by itself (khugepaged) and fills them: where one page of 512 is
 * there, it makes a huge page of it (max_ptes_none in Documentation/admin-guide/mm/transhuge.rst).
 * What was given back would be resident again within minutes, without a call of the program.
 * Such a chunk is to have no huge page until it has been free as a whole. */
#ifndef HAKMEM_HEAP_SPARSE_CHUNKS_H
#define HAKMEM_HEAP_SPARSE_CHUNKS_H

#include "base/types.h"

/* Pages of these units are about to go back to the kernel. Any thread may call it. */
void sparse_chunks_note(size_t first_unit, size_t unit_count);

/* Of these units few pages will be touched: a huge page would bring all of a chunk. Any thread. */
void sparse_chunks_spare(size_t first_unit, size_t unit_count);

/* Of units that are free, some are about to be used: sparse chunks that were free as a whole may
 * have huge pages again, if those are `wanted`. The caller holds the lock of their page heap. */
void sparse_chunks_reuse(size_t free_unit, size_t free_count, size_t first_unit, size_t unit_count,
                         bool wanted);

/* Chunks that were mapped, or for which the kernel got new advice, may have huge pages or not. The
 * caller holds the lock of their page heap. */
void sparse_chunks_set(size_t first_unit, size_t unit_count, bool may_be_huge);

/* May the chunk of the unit have a huge page? The caller holds the lock of the page heap. */
bool sparse_chunks_may_be_huge(size_t unit);

/* How many there are. */
size_t sparse_chunks_count(void);

#endif
