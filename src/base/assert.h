/* What must be. Asserted in the checked build, gone from the others. */
#ifndef HAKMEM_BASE_ASSERT_H
#define HAKMEM_BASE_ASSERT_H

#include "base/config.h"
#include "base/types.h"

/* Says the line and aborts; defined in os/fatal.c. */
_Noreturn void assertion_failed(const char *condition, const char *file, int line);

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (config_checked && !(condition))                                                        \
            assertion_failed(#condition, __FILE__, __LINE__);                                      \
    } while (0)

#endif
