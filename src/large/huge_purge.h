/* Giving back what kept huge blocks hold; the rest of it is in huge.h. The caller holds no lock:
 * the program may have put hooks into munmap and madvise. */
#ifndef HAKMEM_LARGE_HUGE_PURGE_H
#define HAKMEM_LARGE_HUGE_PURGE_H

#include "base/types.h"
#include "large/huge_kept.h"

/* Unmaps a CACHED block that is in no list, or where that would make a hole too many, keeps its
 * addresses and gives back its memory. The caller does not hold the lock. */
void huge_give_up(huge_t *huge);

/* Memory is about to be touched for the first time: as many bytes of what is kept warm go back to
 * the kernel, oldest first. */
void huge_evict_for(size_t size);

#endif
