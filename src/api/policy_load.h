/* The policy that HAKMEM_POLICY names. */
#ifndef HAKMEM_API_POLICY_LOAD_H
#define HAKMEM_API_POLICY_LOAD_H

#include "policy/policy_file.h"

/* Reads it, once, at initialisation. NULL: none is named, or it is for another program, or it is
 * wrong, which policy_complain says. */
const policy_t *policy_load(char *const *environment);

/* Says what was wrong with it, if anything was. */
void policy_complain(void);

/* The policy that was read; NULL: none. */
const policy_t *policy_in_force(void);

#endif
