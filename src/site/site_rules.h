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
#include "slab/size_class.h"

/* Finds the sites of the policy in the code that is mapped now, and closes the classes that they
 * name. Once, from a constructor; takes the lock of the dynamic loader. Returns how many there
 * are. */
unsigned site_rules_create(const policy_t *policy);

/* The same number afterwards. */
unsigned site_rules_found(void);

/* ---- the table: written once, before calls take the detour to it ---- */

/* A return address of a call for a block, or of a call of a function that makes such calls. */
typedef struct site_place {
    uint64_t key;   /* of site_rules_key; 0: nobody has the place */
    uint16_t slot;  /* where that of the caller stands (os_call_stack); 0: no rule asks */
    uint16_t class; /* of the group; 0: no rule ends here */
} site_place_t;

/* Twice as many as the rules may have frames, so that a search ends soon. */
#define SITE_PLACES_LOG2 10
#define SITE_PLACES ((unsigned)1 << SITE_PLACES_LOG2)
_Static_assert(SITE_PLACES >= 2 * SITE_RULES_MOST * SITE_FRAMES_MOST, "some are always free");

extern HIDDEN site_place_t site_places[SITE_PLACES];

/* Addresses of code have fewer bits. */
#define SITE_ADDRESS_BITS 48

/* The shortest that pages are. */
#define SITE_STACK_PAGE ((uintptr_t)4096)

/* `behind`: the size class, or CLASS_COUNT + the number of the callee's place. */
static inline uint64_t site_rules_key(uintptr_t address, unsigned behind)
{
    return address ^ (uint64_t)behind << SITE_ADDRESS_BITS;
}

/* The place of a key, or the one where it would stand: there is always one that nobody has. */
static inline site_place_t *site_rules_place(uint64_t key)
{
    site_place_t *place = &site_places[key * 0x9e3779b97f4a7c15u >> (64 - SITE_PLACES_LOG2)];
    while (place->key != key && UNLIKELY(place->key != 0))
        place = place + 1 < site_places + SITE_PLACES ? place + 1 : site_places;
    return place;
}

/* What the places of its callers are behind. */
static inline unsigned site_rules_behind(const site_place_t *place)
{
    return CLASS_COUNT + (unsigned)(place - site_places);
}

/* Nothing is known of the stack but that its pages are mapped as a whole. A function whose frame is
 * shorter than the policy says, as with alloca, may stand at the end of a stack. Therefore a caller
 * whose return address is on another page is not known: with short frames that is rare. */
static inline bool site_rules_may_read(const char *stack, size_t slot)
{
    uintptr_t at = (uintptr_t)stack;
    return ((at ^ (at + slot)) & -SITE_STACK_PAGE) == 0;
}

/* The class of a block for `caller` that `class` serves otherwise: that of its group, or `class`
 * itself. `stack`: the stack pointer of the caller when it called. Reads up to SITE_SLOT_MOST bytes
 * above on the same page, where a rule that names the caller asks for it. Inline, for every call
 * for blocks of a closed class asks. */
static inline unsigned site_rules_class(const void *caller, const char *stack, unsigned class)
{
    const site_place_t *place = site_rules_place(site_rules_key((uintptr_t)caller, class));
    class = place->class != 0 ? place->class : class;
    /* Not more often than a rule has callers: the word may be data that leads to the same place. */
    for (unsigned depth = 1; place->slot != 0 && depth < SITE_FRAMES_MOST; depth++) {
        if (!site_rules_may_read(stack, place->slot))
            break;
        uintptr_t address = *(const uintptr_t *)(const void *)(stack + place->slot);
        place = site_rules_place(site_rules_key(address, site_rules_behind(place)));
        class = place->class != 0 ? place->class : class;
    }
    return class;
}

/* Likewise the group; 0: none. */
static inline unsigned site_rules_group(const void *caller, const char *stack, unsigned class)
{
    return size_classes[site_rules_class(caller, stack, class)].group;
}

#endif
