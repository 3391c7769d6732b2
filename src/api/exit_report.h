/* What is reported at the end of the process when the options ask for it. */
#ifndef HAKMEM_API_EXIT_REPORT_H
#define HAKMEM_API_EXIT_REPORT_H

/* The leak report and the route trace, each if its option says so. */
void report_at_exit(void);

#endif
