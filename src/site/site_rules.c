/* Rules for call sites. See site_rules.h. The table is written once, before calls take the detour
 * to it, and only read afterwards. */
#include "site/site_rules.h"

#include "base/bits.h"
#include "base/format.h"
#include "base/text.h"
#include "site/groups.h"
#include "os/os.h"
#include "slab/class_fit.h"
#include "slab/size_class.h"

/* The shortest that pages are. */
#define STACK_PAGE ((uintptr_t)4096)

/* Twice as many as the rules may have frames, so that a search ends soon. */
#define PLACES_LOG2 10
#define PLACES ((unsigned)1 << PLACES_LOG2)
_Static_assert(PLACES >= 2 * SITE_RULES_MOST * SITE_FRAMES_MOST, "some are always free");

/* Addresses of code have fewer bits. */
#define ADDRESS_BITS 48

/* A return address of a call for a block, or of a call of a function that makes such calls. */
typedef struct place {
    uint64_t key;   /* of site_rules_key; 0: nobody has the place */
    uint16_t slot;  /* where that of the caller stands (os_call_stack); 0: no rule asks */
    uint16_t group; /* 0: no rule ends here */
} place_t;

static struct {
    place_t places[PLACES];
    unsigned found; /* rules whose frames are in the code */
} site_rules_state SPARSE;

/* `behind`: the size class, or CLASS_COUNT + the number of the callee's place. */
static uint64_t site_rules_key(uintptr_t address, unsigned behind)
{
    return address ^ (uint64_t)behind << ADDRESS_BITS;
}

/* The place of a key, or the one where it would stand: there is always one that nobody has. */
static place_t *site_rules_place(uint64_t key)
{
    size_t at = key * 0x9e3779b97f4a7c15u >> (64 - PLACES_LOG2);
    while (site_rules_state.places[at].key != 0 && site_rules_state.places[at].key != key)
        at = (at + 1) % PLACES;
    return &site_rules_state.places[at];
}

/* What the places of its callers are behind. */
static unsigned behind_place(const place_t *place)
{
    return CLASS_COUNT + (unsigned)(place - site_rules_state.places);
}

/* Nothing is known of the stack but that its pages are mapped as a whole. A function whose frame is
 * shorter than the policy says, as with alloca, may stand at the end of a stack. Therefore a caller
 * whose return address is on another page is not known: with short frames that is rare. */
static bool is_on_page_of(const char *stack, size_t slot)
{
    uintptr_t at = (uintptr_t)stack;
    return ((at ^ (at + slot)) & -STACK_PAGE) == 0;
}

unsigned site_rules_group(const void *caller, const char *stack, unsigned class)
{
    const place_t *place = site_rules_place(site_rules_key((uintptr_t)caller, class));
    unsigned group = place->group;
    while (place->slot != 0 && is_on_page_of(stack, place->slot)) {
        uintptr_t address = *(const uintptr_t *)(const void *)(stack + place->slot);
        place = site_rules_place(site_rules_key(address, behind_place(place)));
        if (place->group != 0)
            group = place->group;
    }
    return group;
}

/* ---- finding the sites ---- */

typedef struct search {
    const policy_t *policy;
    /* Of each frame of each rule; 0: not found. In code that is mapped twice the first one is. */
    uintptr_t addresses[SITE_RULES_MOST][SITE_FRAMES_MOST];
} search_t;

static bool has_build_id(const os_code_t *code, const char *wanted)
{
    line_t line = {.length = 0};
    line_add_bytes(&line, code->build_id, smaller_of(code->build_id_length, BUILD_ID_BYTES));
    line.text[line.length] = '\0';
    return text_is(line.text, wanted);
}

static void site_rules_find_in(const os_code_t *code, void *context)
{
    search_t *search = context;
    for (unsigned index = 0; index < search->policy->rule_count; index++) {
        const site_rule_t *rule = &search->policy->rules[index];
        for (unsigned frame = 0; frame < rule->depth; frame++) {
            uint64_t distance = rule->frames[frame].file_offset - code->file_offset;
            if (search->addresses[index][frame] == 0 && distance < code->end - code->start &&
                has_build_id(code, rule->frames[frame].build_id))
                search->addresses[index][frame] = code->start + distance;
        }
    }
}

/* The place of a frame, made if there is none. NULL: a rule for another size of the class has said
 * otherwise where the address stands. */
static place_t *site_rules_provide(uintptr_t address, unsigned slot, unsigned behind)
{
    place_t *callee = behind < CLASS_COUNT ? NULL : &site_rules_state.places[behind - CLASS_COUNT];
    uint64_t key = site_rules_key(address, behind);
    place_t *place = site_rules_place(key);
    if (callee != NULL && callee->slot != 0 && callee->slot != slot)
        return NULL;
    if (callee != NULL)
        callee->slot = (uint16_t)slot;
    place->key = key;
    return place;
}

/* False: a frame is not in the code that is mapped. */
static bool site_rules_add(const site_rule_t *rule, const uintptr_t *addresses)
{
    unsigned behind = size_class_fixed_of(rule->size);
    bool is_complete = true;
    for (unsigned frame = 0; frame < rule->depth; frame++)
        is_complete &= addresses[frame] != 0;
    place_t *place = NULL;
    for (unsigned frame = 0; is_complete && frame < rule->depth; frame++) {
        place = site_rules_provide(addresses[frame], rule->frames[frame].slot, behind);
        is_complete = place != NULL;
        if (is_complete)
            behind = behind_place(place);
    }
    if (!is_complete)
        return false;
    if (place->group == 0) /* of two rules for sizes of a class the first counts */
        place->group = (uint16_t)rule->group;
    unsigned fixed = size_class_fixed_of(rule->size);
    if (group_class(place->group, fixed) != fixed) /* numbers are given in the order of the rules */
        class_fit_close(fixed);
    return true;
}

unsigned site_rules_create(const policy_t *policy)
{
    search_t search = {.policy = policy};
    site_rules_state.found = 0;
    if (policy->rule_count != 0)
        os_visit_code(site_rules_find_in, &search);
    for (unsigned index = 0; index < policy->rule_count; index++)
        site_rules_state.found += site_rules_add(&policy->rules[index], search.addresses[index]);
    return site_rules_state.found;
}

unsigned site_rules_found(void)
{
    return site_rules_state.found;
}
