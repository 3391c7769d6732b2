/* Rules for call sites, from a policy: which small blocks stand apart from all others.
 *
 * A site is the return address of a call of malloc, calloc or operator new, with those of its
 * callers where the rule names them. Where a policy names a site and a size, every block of that
 * size class misses: the class is closed to the hit path (size_class.h), and each such call looks
 * its site up. Blocks that the site asks for come from the class of its group (groups.h), with
 * slabs of its own. They are freed on the hit path. */
#ifndef HAKMEM_SITE_SITE_RULES_H
#define HAKMEM_SITE_SITE_RULES_H

#include "base/types.h"
#include "options/policy_file.h"

/* Finds the sites of the policy in the code that is mapped now, and closes the classes that they
 * name. Once, from a constructor; takes the lock of the dynamic loader. Returns how many there
 * are. */
unsigned site_rules_create(const policy_t *policy);

/* The same number afterwards. */
unsigned site_rules_found(void);

/* The group of a block for `caller` that the fixed class serves otherwise; 0: none. `stack`: the
 * stack pointer of the caller when it called. Reads up to SITE_SLOT_MOST bytes above on the same
 * page, where a rule that names the caller asks for it. A fitted class has no group: it is no class
 * of a rule. */
unsigned site_rules_group(const void *caller, const char *stack, unsigned class);

#endif
