/* Rules for call sites. See site_rules.h. */
#include "site/site_rules.h"

#include "base/bits.h"
#include "base/format.h"
#include "base/text.h"
#include "site/groups.h"
#include "os/os.h"
#include "slab/size_class.h"

site_place_t site_places[SITE_PLACES] SPARSE;
static unsigned site_rules_count; /* rules whose frames are in the code */

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
static site_place_t *site_rules_provide(uintptr_t address, unsigned slot, unsigned behind)
{
    site_place_t *callee = behind < CLASS_COUNT ? NULL : &site_places[behind - CLASS_COUNT];
    uint64_t key = site_rules_key(address, behind);
    site_place_t *place = site_rules_place(key);
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
    site_place_t *place = NULL;
    for (unsigned frame = 0; is_complete && frame < rule->depth; frame++) {
        place = site_rules_provide(addresses[frame], rule->frames[frame].slot, behind);
        is_complete = place != NULL;
        if (is_complete)
            behind = site_rules_behind(place);
    }
    if (!is_complete)
        return false;
    unsigned fixed = size_class_fixed_of(rule->size);
    if (place->class == 0) /* of two rules for sizes of a class the first counts */
        place->class = (uint16_t)group_class(rule->group, fixed);
    if (place->class != fixed) /* numbers are given in the order of the rules */
        size_class_close(fixed);
    return true;
}

unsigned site_rules_create(const policy_t *policy)
{
    static search_t search SPARSE; /* one thread loads the library; its stack may be short */
    search = (search_t){.policy = policy};
    site_rules_count = 0;
    if (policy->rule_count != 0)
        os_visit_code(site_rules_find_in, &search);
    for (unsigned index = 0; index < policy->rule_count; index++)
        site_rules_count += site_rules_add(&policy->rules[index], search.addresses[index]);
    return site_rules_count;
}

unsigned site_rules_found(void)
{
    return site_rules_count;
}
