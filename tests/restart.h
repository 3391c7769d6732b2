/* Options for a test program, which are read once when it starts: it sets them and starts again. */
#ifndef HAKMEM_TESTS_RESTART_H
#define HAKMEM_TESTS_RESTART_H

#include "check.h"

/* To be called first in main; true in the program that has the variable. False: an emulator does
 * not start itself again. */
static inline bool restart_with(char **argv, const char *name, const char *value)
{
    const char *now = getenv(name);
    if (now != NULL && strcmp(now, value) == 0) return true;
    check(setenv(name, value, 1) == 0);
    (void)execv(argv[0], argv);
    return false;
}

#endif
