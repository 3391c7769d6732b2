/* Options for a test program, which are read once when it starts: it sets them and starts again. */
#ifndef HAKMEM_TESTS_RESTART_H
#define HAKMEM_TESTS_RESTART_H

#include "check.h"

/* Returns in a program that has the variable. To be called first in main. */
static inline void restart_with(char **argv, const char *name, const char *value)
{
    const char *now = getenv(name);
    if (now != NULL && strcmp(now, value) == 0) return;
    check(setenv(name, value, 1) == 0);
    (void)execv(argv[0], argv);
    check_skip("cannot start itself again");
}

#endif
