/* The policy of the process: the one that HAKMEM_POLICY names, or else the one in the program's
 * file, or else that of the machine in /etc/hakmem/policies. */
#ifndef HAKMEM_SITE_POLICY_LOAD_H
#define HAKMEM_SITE_POLICY_LOAD_H

#include "options/policy_file.h"

/* Reads it, once, at initialisation. NULL: there is none, or HAKMEM_POLICY is none, or it is for
 * another program, or it is wrong, which policy_complain says, or the environment is not to be
 * trusted (NULL). */
const policy_t *policy_load(char *const *environment);

/* Has the program a policy in its file, or has the machine one for it? */
bool policy_is_shipped(char *const *environment);

/* Says what was wrong with it, if anything was. */
void policy_complain(void);

/* The policy that was read; NULL: none. */
const policy_t *policy_in_force(void);

/* "in_force", "for_another_build", "refused" or "none". */
const char *policy_state_name(void);

#endif
