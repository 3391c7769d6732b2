/* The rows of the tuning table (options/tuning.h) that are about the processors of the machine. */
#ifndef HAKMEM_OPTIONS_TUNING_PROCESSORS_H
#define HAKMEM_OPTIONS_TUNING_PROCESSORS_H

#include "base/types.h"
#include "options/tuning_range.h"

/* ---- groups of processors ---- */

/* Cores with one last-level cache that share central lists and depots.
 * Origin: guess, without such a machine; as many as a die of AMD's has behind one cache. */
#define GROUP_CORES 8
TUNING_RANGE(GROUP_CORES, 1, 1024);

/* Groups at most.
 * Origin: guess; 128 cores. Each has 72 lists and depots, which take memory once they are used. */
#define GROUPS_MOST 16
TUNING_RANGE(GROUPS_MOST, 1, 64);

/* Processors, by their numbers, that may be in different groups.
 * Origin: guess; as many as machines have. */
#define PROCESSORS_MOST 1024
TUNING_RANGE(PROCESSORS_MOST, 64, 65536);

/* Threads from which on there are groups.
 * Origin: guess; fewer wait for each other seldom, and short programs read no files. */
#define GROUPS_FROM_THREADS 4
TUNING_RANGE(GROUPS_FROM_THREADS, 1, 1024);

#endif
