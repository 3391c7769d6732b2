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

/* Twice as many places as there are rules. */
#define PLACES (2 * SITE_RULES_MOST)

typedef struct place {
    uintptr_t caller;     /* 0: nobody has it */
    unsigned class;
    private_heap_t *heap;
} place_t;

static struct {
    place_t places[PLACES];
    unsigned taken; /* places that have a caller */
} site_rules_state SPARSE;

static unsigned first_place(uintptr_t caller, unsigned class)
{
    return (unsigned)((caller ^ class) * 0x9e3779b97f4a7c15u >> 40) % PLACES;
}

/* The place of a caller and class, or the one where it would stand. There is always one that nobody
 * has (site_rules_add). */
static place_t *site_rules_place(uintptr_t caller, unsigned class)
{
    unsigned at = first_place(caller, class);
    while (site_rules_state.places[at].caller != 0 &&
           (site_rules_state.places[at].caller != caller ||
            site_rules_state.places[at].class != class))
        at = (at + 1) % PLACES;
    return &site_rules_state.places[at];
}

private_heap_t *site_rules_heap(const void *caller, unsigned class)
{
    return site_rules_place((uintptr_t)caller, class)->heap;
}

/* ---- finding the sites ---- */

typedef struct search {
    const policy_t *policy;
    unsigned found;
} search_t;

static bool has_build_id(const os_code_t *code, const char *wanted)
{
    line_t line = {.length = 0};
    line_add_bytes(&line, code->build_id, smaller_of(code->build_id_length, BUILD_ID_BYTES));
    line.text[line.length] = '\0';
    return text_is(line.text, wanted);
}

/* Code may be mapped more than once: then there may be more callers than places. */
static void site_rules_add(uintptr_t caller, const site_rule_t *rule)
{
    unsigned class = size_class_fixed_of(rule->size);
    private_heap_t *heap = group_heap(rule->group);
    place_t *place = site_rules_place(caller, class);
    if (heap == NULL || place->caller != 0 || site_rules_state.taken == PLACES - 1)
        return; /* the last one stays free, or no search would end */
    site_rules_state.taken++;
    *place = (place_t){caller, class, heap};
}

static void site_rules_find_in(const os_code_t *code, void *context)
{
    search_t *search = context;
    for (unsigned index = 0; index < search->policy->rule_count; index++) {
        const site_rule_t *rule = &search->policy->rules[index];
        uint64_t distance = rule->file_offset - code->file_offset;
        if (distance >= code->end - code->start || !has_build_id(code, rule->build_id))
            continue;
        site_rules_add(code->start + distance, rule);
        search->found++;
    }
}

unsigned site_rules_create(const policy_t *policy)
{
    search_t search = {.policy = policy};
    if (policy->rule_count != 0)
        os_visit_code(site_rules_find_in, &search);
    for (unsigned at = 0; at < PLACES; at++)
        if (site_rules_state.places[at].heap != NULL)
            class_fit_close(site_rules_state.places[at].class);
    return search.found;
}
