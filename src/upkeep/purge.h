/* Giving the free pages of the page heap back to the kernel: when, and in what order. (Huge blocks
 * look after their own: huge.c.)
 *
 * Where the kernel refuses (the program has locked its memory, say), the heap's pages are left
 * alone for a while, each time for longer, until a purge succeeds. Who asks for everything to be
 * given back is not kept waiting. */
#ifndef HAKMEM_UPKEEP_PURGE_H
#define HAKMEM_UPKEEP_PURGE_H

#include "base/types.h"
#include "os/threads.h"

/* Looks what nobody has needed for as long as free memory waits (keep.h, budget.h): that is due.
 * The callers of this and of purge_note_idle come one at a time. */
void purge_look(uint64_t now_ms);

/* `unit_count` units have just become free that nobody had wanted for the delay. */
void purge_note_idle(size_t unit_count);

/* Written by any thread, read by any without a lock. */
typedef struct purge_shared {
    size_t due_units;
    uint64_t retry_ms; /* when pages may be tried again; 0: at any time */
} purge_shared_t;

extern HIDDEN purge_shared_t purge_shared;

/* Gives back the oldest free pages, some `most_units` of them, and returns how many dirty units
 * that were. The caller holds no lock: the program may have put hooks into madvise. `since_ms`:
 * since when they have been idle. Any thread. */
size_t purge_oldest_units(size_t most_units, uint64_t since_ms, uint64_t now_ms);

/* Gives back what is due, some `most_units` of it. Likewise. */
size_t purge_due(size_t most_units, uint64_t now_ms);

static inline bool purge_may_try(uint64_t now_ms)
{
    return counter_read(&purge_shared.retry_ms) <= now_ms;
}

/* Gives back every free span now, or tries to. Returns bytes. The caller holds no lock. */
size_t purge_everything(uint64_t now_ms);

#endif
