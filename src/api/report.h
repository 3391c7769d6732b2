/* Sums over all floors, and what is printed at exit when the options ask for it. */
#ifndef HAKMEM_API_REPORT_H
#define HAKMEM_API_REPORT_H

#include "base/types.h"
#include "hakmem.h"

hakmem_statistics_t report_statistics(void);

/* The leak report and the route trace, each if its option says so. */
void report_at_exit(void);

#endif
