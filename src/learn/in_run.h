/* Learning within one run (option learn): tries strategies while the program runs, and keeps what
 * costs it least (trial.h). Nothing is counted on a hit. The time of an epoch and what it cost come
 * from upkeep, ten times a second at most, in whatever thread does that, under its lock. Where the
 * option is off, nothing here runs, and the strategy stays the default, or that of the policy. */
#ifndef HAKMEM_LEARN_IN_RUN_H
#define HAKMEM_LEARN_IN_RUN_H

#include "base/types.h"
#include "learn/trial.h"

/* Begins, if the option says so, with the strategy in force; once, at initialisation. */
void in_run_prepare(void);

/* Called after each epoch that was decided on, under the lock of upkeep. NULL: nobody keeps a log.
 * Set once, at initialisation. */
extern HIDDEN void (*in_run_logger)(const trial_epoch_t *epoch, const trial_t *trial);

/* Shows what was decided so far. False: nobody learns, or the lock of upkeep is taken. */
bool in_run_show(void (*show)(const trial_t *trial));

#endif
