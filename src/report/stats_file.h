/* Statistics for who looks at the process from outside (option stats): in a file, which is written
 * again and again; or as a table among the messages, at exit. */
#ifndef HAKMEM_REPORT_STATS_FILE_H
#define HAKMEM_REPORT_STATS_FILE_H

/* Begins if the option says so; once, at initialisation. */
void stats_file_prepare(void);

/* Writes them a last time, unless another thread is just doing so. */
void stats_file_at_exit(void);

/* Who was writing is not in the child. */
void stats_file_at_fork_in_child(void);

#endif
