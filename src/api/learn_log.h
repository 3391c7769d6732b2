/* The log of what is learnt within the run, in a file (option learn_log; learn/epoch_log.h). */
#ifndef HAKMEM_API_LEARN_LOG_H
#define HAKMEM_API_LEARN_LOG_H

/* Begins if the option says so; once, at initialisation, after in_run_prepare. */
void learn_log_prepare(void);

/* The child goes on learning, but writes nothing: the file is its parent's, and one of its own
 * would lack the beginning. */
void learn_log_at_fork_in_child(void);

#endif
