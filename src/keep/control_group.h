/* The control group of the process: its limits on memory, those of the groups around it, and how
 * long tasks wait for memory there. Files of /proc and /sys are read; without them nothing is
 * known. Calls come one at a time (keep/pressure.c has the lock of upkeep). */
#ifndef HAKMEM_KEEP_CONTROL_GROUP_H
#define HAKMEM_KEEP_CONTROL_GROUP_H

#include "base/types.h"
#include "keep/limits.h"

/* Finds out in which group the process is, and which limits there are. */
void control_group_scan(void);

/* What the limits found leave; `promised`: bytes that the process has but may not have touched. */
headroom_t control_group_headroom(uint64_t promised);

/* How long tasks of the group, or of the machine where the group does not say, waited for memory
 * within the last ten seconds: hundredths of a percent. */
unsigned control_group_stall(void);

#endif
