/* The log of epochs (option learn_log) as text: what a trial was told, and what it decided. The
 * same epochs bring the same decisions, so replay_epochs (bench/programs/) can make them again
 * from the log, on any machine.
 *
 *   # hakmem epochs 1, program 3f2a9c…, price 700, bins 0, depots 0, wait 0
 *   epoch,ms,misses,…,state,runs,bins,depots,wait,decisions,event,reason,cost,other_cost
 *   1,512,1034,…,learn,incumbent,0,0,0,0,,,0,0
 *
 * The head has what the trial begins with: the build ID of the program (- if it has none), the
 * price, and the incumbent. A line says which epoch it was and what was seen in it (trial_epoch_t).
 * Then it says what holds from then on: the state, who runs, with which strategy, how many
 * decisions there were, and the last. */
#ifndef HAKMEM_LEARN_EPOCH_LOG_H
#define HAKMEM_LEARN_EPOCH_LOG_H

#include "base/types.h"
#include "learn/trial.h"

#define EPOCH_LOG_HEAD "# hakmem epochs 1, program "

/* What a line has of trial_epoch_t, in its order. */
#define EPOCH_LOG_FIELDS(FIELD)                                                                    \
    FIELD(ms)                                                                                      \
    FIELD(misses)                                                                                  \
    FIELD(slab_misses)                                                                             \
    FIELD(fresh_kib)                                                                               \
    FIELD(purge_ns)                                                                                \
    FIELD(idle_kib_ms)                                                                             \
    FIELD(idle_kib)                                                                                \
    FIELD(used_kib)                                                                                \
    FIELD(peak_kib)                                                                                \
    FIELD(taken_kib)                                                                               \
    FIELD(refusals)

/* One line, or the two of the head, with their ends. Any numbers fit, and a build ID. */
typedef struct epoch_log_text {
    char bytes[512];
    size_t length;
} epoch_log_text_t;

epoch_log_text_t epoch_log_head(const char *program, uint64_t price, const strategy_t *first);

/* The epoch that the trial has just taken in. */
epoch_log_text_t epoch_log_line(const trial_epoch_t *epoch, const trial_t *trial);

/* From the state on: what was decided, by which two trials are compared. */
epoch_log_text_t epoch_log_outcome(const trial_t *trial);

#endif
