/* Learning within one run (option learn): tries strategies while the program runs, and keeps what
 * costs it least (trial.h). Nothing is counted on a hit. The time of an epoch and what it cost come
 * from upkeep, ten times a second at most, in whatever thread does that, under its lock. Where the
 * option is off, nothing here runs, and the default strategy is in force. */
#ifndef HAKMEM_LEARN_IN_RUN_H
#define HAKMEM_LEARN_IN_RUN_H

#include "base/types.h"
#include "learn/trial.h"

/* Begins, if the option says so; once, at initialisation. */
void in_run_prepare(void);

/* Shows what was decided so far. False: nobody learns, or the lock of upkeep is taken. */
bool in_run_show(void (*show)(const trial_t *trial));

#endif
