/* Groups of processors.
 *
 * Each group has central lists and depots of its own, so that not too many processors wait for one
 * lock. A group has GROUP_CORES processors with neighbouring numbers: they share a cache, mostly.
 *
 * A process has one group until it has GROUPS_FROM_THREADS threads, and for ever where it may use
 * GROUP_CORES processors at most. */
#ifndef HAKMEM_OS_PROCESSORS_H
#define HAKMEM_OS_PROCESSORS_H

#include "base/types.h"
#include "options/tuning.h"

/* How many groups there are: 1 at first, and set at most once more. */
extern HIDDEN uint8_t processor_groups;

/* Makes `groups` groups, to which the processors belong in turn. 0: a group for each GROUP_CORES
 * processors. Only the first call makes groups. Any thread, but not while another forks. */
void processors_split(unsigned groups);

/* The group of the processor that the calling thread is on; it may be on another a moment later. */
unsigned processor_group_now(void);

static inline unsigned processor_groups_now(void)
{
    /* acquire: pairs with the release in processors_split; the width of groups may be read */
    return __atomic_load_n(&processor_groups, __ATOMIC_ACQUIRE);
}

static inline unsigned processor_group(void)
{
    return LIKELY(processor_groups_now() == 1) ? 0 : processor_group_now();
}

#endif
