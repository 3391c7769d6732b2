/* The beginning of the process, from the first call on. */
#ifndef HAKMEM_API_BIRTH_H
#define HAKMEM_API_BIRTH_H

#include "base/types.h"

extern HIDDEN bool process_was_born;

/* Initialises every layer, from the bottom up; once. False: the kernel gives no memory for it, and
 * nothing was begun; the next call tries again. */
bool process_birth(void);

/* False: there is no heap yet, and no block of it. */
static inline bool ensure_birth(void)
{
    /* acquire: pairs with the release at the end of process_birth */
    return LIKELY(__atomic_load_n(&process_was_born, __ATOMIC_ACQUIRE)) || process_birth();
}

#endif
