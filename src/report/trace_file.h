/* The allocation trace in a file (option trace). */
#ifndef HAKMEM_REPORT_TRACE_FILE_H
#define HAKMEM_REPORT_TRACE_FILE_H

/* Begins if the option says so; once, at initialisation. */
void trace_file_prepare(void);

/* Events that are not in the file yet are written. */
void trace_file_at_exit(void);

/* The child writes nothing into the file of its parent. */
void trace_file_at_fork_in_child(void);

#endif
