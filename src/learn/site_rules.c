/* Rules for call sites. See site_rules.h. The table is written once, before calls take the detour
 * to it, and only read afterwards. */
#include "learn/site_rules.h"

#include "base/bits.h"
#include "base/format.h"
#include "base/text.h"
#include "learn/groups.h"
#include "os/os.h"
#include "slab/size_class.h"

/* Twice as many places as there are rules. */
#define PLACES (2 * SITE_RULES_MOST)

typedef struct place {
    uintptr_t caller; /* 0: nobody has it */
    unsigned class;
    private_heap_t *heap;
} place_t;

static place_t places[PLACES];

static unsigned first_place(uintptr_t caller, unsigned class)
{
    return (unsigned)((caller ^ class) * 0x9e3779b97f4a7c15u >> 40) % PLACES;
}

private_heap_t *site_rules_heap(const void *caller, unsigned class)
{
    unsigned at = first_place((uintptr_t)caller, class);
    while (places[at].caller != 0) {
        if (places[at].caller == (uintptr_t)caller && places[at].class == class)
            return places[at].heap;
        at = (at + 1) % PLACES;
    }
    return NULL;
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

static void add(uintptr_t caller, const site_rule_t *rule)
{
    unsigned class = size_class_of(rule->size);
    private_heap_t *heap = group_heap(rule->group);
    if (heap == NULL || site_rules_heap((void *)caller, class) != NULL)
        return;
    unsigned at = first_place(caller, class);
    while (places[at].caller != 0)
        at = (at + 1) % PLACES;
    places[at] = (place_t){.caller = caller, .class = class, .heap = heap};
}

static void find_in(const os_code_t *code, void *context)
{
    search_t *search = context;
    for (unsigned index = 0; index < search->policy->rule_count; index++) {
        const site_rule_t *rule = &search->policy->rules[index];
        uint64_t distance = rule->file_offset - code->file_offset;
        if (distance >= code->end - code->start || !has_build_id(code, rule->build_id))
            continue;
        add(code->start + distance, rule);
        search->found++;
    }
}

unsigned site_rules_create(const policy_t *policy)
{
    search_t search = {.policy = policy};
    if (policy->rule_count != 0)
        os_visit_code(find_in, &search);
    for (unsigned at = 0; at < PLACES; at++)
        if (places[at].caller != 0)
            size_class_close(places[at].class);
    return search.found;
}
