/* What is reported at the end of the process when the options ask for it. */
#ifndef HAKMEM_REPORT_EXIT_REPORT_H
#define HAKMEM_REPORT_EXIT_REPORT_H

/* Notes which process this is, once, at initialisation: the child of a fork has its parent's blocks
 * and makes no leak report of its own. */
void report_prepare(void);

/* The leak report and the route trace, each if its option says so. */
void report_at_exit(void);

#endif
