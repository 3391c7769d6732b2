/* The beginning of the process, from the first call on. */
#ifndef HAKMEM_ENTRY_INIT_H
#define HAKMEM_ENTRY_INIT_H

#include "base/types.h"

extern HIDDEN bool process_is_ready;

/* Initialises every layer, from the bottom up; once. False: the kernel gives no memory for it, and
 * nothing was begun; the next call tries again. */
bool process_init(void);

/* False: there is no heap yet, and no block of it. */
static inline bool ensure_init(void)
{
    /* acquire: pairs with the release at the end of process_init */
    return LIKELY(__atomic_load_n(&process_is_ready, __ATOMIC_ACQUIRE)) || process_init();
}

#endif
