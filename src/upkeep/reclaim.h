/* Everything idle goes, at once: where the program asks for it, or the kernel refuses memory. The
 * caller holds no lock. Any thread. */
#ifndef HAKMEM_UPKEEP_RECLAIM_H
#define HAKMEM_UPKEEP_RECLAIM_H

#include "base/types.h"
#include "os/lock.h"

/* Everything that is idle goes down and back to the kernel now. Returns bytes. */
size_t reclaim_all(void);

/* The kernel has refused `size` bytes. Everything idle becomes free pages, which may serve the
 * request; nothing is unmapped. False: even with all that is idle it cannot be had, and nothing has
 * changed. */
bool reclaim_gather(size_t size);

/* Gathering did not help. Free chunks and cached huge blocks are unmapped, addresses included, so
 * that limits allow something else in their place. False: no use in trying again, nothing has
 * changed. */
bool reclaim_unmap(size_t size);

/* Both, where free pages are of no use. */
bool reclaim_any(size_t size);

/* All kept huge blocks are unmapped, and the span cache is emptied. Free chunks are unmapped until
 * some `size` bytes have gone. */
void reclaim_addresses(size_t size);

void reclaim_at_fork(fork_phase_t phase);

#endif
