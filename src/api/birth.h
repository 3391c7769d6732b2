/* The beginning of the process, from the first call on. */
#ifndef HAKMEM_API_BIRTH_H
#define HAKMEM_API_BIRTH_H

#include "base/types.h"

extern HIDDEN bool process_was_born;

/* Brings every floor to life, from the bottom up; once. */
void process_birth(void);

static inline void ensure_birth(void)
{
    /* acquire: pairs with the release at the end of process_birth */
    if (UNLIKELY(!__atomic_load_n(&process_was_born, __ATOMIC_ACQUIRE)))
        process_birth();
}

#endif
