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
#include "large/huge.h"

/* Twice as many places as there are rules. */
#define PLACES (2 * SITE_RULES_MOST)

typedef struct place {
    uintptr_t caller;     /* 0: nobody has it */
    uint16_t class;       /* 0: the rules are for large blocks and for realloc */
    uint8_t wishes;       /* huge_wish_t */
    uint8_t room;         /* per cent */
    private_heap_t *heap; /* NULL: malloc's */
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

unsigned site_rules_wishes(const void *caller)
{
    return site_rules_place((uintptr_t)caller, 0)->wishes;
}

size_t site_rules_with_room(const void *caller, size_t size)
{
    if (size > PTRDIFF_MAX) /* refused; and no sum here may wrap around */
        return size;
    size_t room = site_rules_place((uintptr_t)caller, 0)->room;
    return size + size / 100 * room + size % 100 * room / 100;
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
    unsigned class = rule->kind == SITE_GROUP ? size_class_fixed_of(rule->size) : 0;
    private_heap_t *heap = rule->kind == SITE_GROUP ? group_heap(rule->value) : NULL;
    place_t *place = site_rules_place(caller, class);
    if (rule->kind == SITE_GROUP && (heap == NULL || place->heap != NULL))
        return;
    if (place->caller == 0 && site_rules_state.taken == PLACES - 1)
        return; /* the last one stays free, or no search would end */
    site_rules_state.taken += place->caller == 0;
    place->caller = caller;
    place->class = (uint16_t)class;
    if (rule->kind == SITE_GROUP)
        place->heap = heap;
    else if (rule->kind == SITE_FREED)
        place->wishes |= rule->value == SITE_KEEPS ? HUGE_WISH_KEEP : HUGE_WISH_RETURN;
    else if (rule->kind == SITE_PAGES)
        place->wishes |= HUGE_WISH_PAGES;
    else
        place->room = (uint8_t)rule->value;
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
