/* site/site_rules.h: what rules of a policy do to size classes. How calls find them:
 * tests/preload/test_policy.py. */
#include "site/site_rules.h"

#include "base/format.h"
#include "os/os.h"
#include "slab/size_class.h"

#include "unit/fresh.h"

static policy_t policy;
static const void *site; /* NULL: not named */

/* The site and its callers are where the code of this program begins. */
static void name_site(const os_code_t *code, void *nothing)
{
    const uintptr_t here = (uintptr_t)name_site;
    (void)nothing;
    if (here < code->start || here >= code->end || code->build_id == NULL)
        return;
    line_t line = {.length = 0};
    check(code->build_id_length <= BUILD_ID_BYTES);
    line_add_bytes(&line, code->build_id, code->build_id_length);
    line.text[line.length] = '\0';
    for (unsigned index = 0; index < policy.rule_count; index++) {
        for (unsigned depth = 0; depth < policy.rules[index].depth; depth++) {
            site_frame_t *frame = &policy.rules[index].frames[depth];
            memcpy(frame->build_id, line.text, line.length + 1);
            frame->file_offset = code->file_offset;
        }
    }
    site = (const void *)code->start;
}

static void name_sites(void)
{
    os_visit_code(name_site, NULL);
    if (site == NULL)
        check_skip("the linker wrote no build ID");
}

lawful_test(a_class_stays_open_whose_group_gets_no_number)
{
    for (unsigned fixed = 1; fixed < FIXED_CLASS_COUNT; fixed++)
        policy.rules[policy.rule_count++] = (site_rule_t){
            .depth = 1, .size = (unsigned)size_classes[fixed].size, .group = 1};
    name_sites();
    check_eq(site_rules_create(&policy), FIXED_CLASS_COUNT - 1);
    check_eq(size_classes_made(), CLASS_COUNT);
    for (unsigned fixed = 1; fixed < FIXED_CLASS_COUNT; fixed++)
        check_eq(size_class_of_granule[granule_of(size_classes[fixed].size)] == class_offset_origin,
                 fixed <= MADE_CLASSES_MOST);
}

/* The word may be data, where a frame is shorter than the policy says. */
fresh_test(a_word_that_looks_like_a_caller_of_itself_ends_the_search)
{
    _Alignas(32) uint64_t stack[4] = {0}; /* on one page */
    initialise();
    unsigned class = size_class_fixed_of(48);
    policy.rules[policy.rule_count++] =
        (site_rule_t){.depth = 2, .size = 48, .group = 1, .frames[1].slot = sizeof stack[0]};
    name_sites();
    check_eq(site_rules_create(&policy), 1);
    const site_place_t *place = site_rules_place(site_rules_key((uintptr_t)site, class));
    stack[1] = place->key ^ (uint64_t)site_rules_behind(place) << SITE_ADDRESS_BITS;
    check_eq(site_rules_class(site, (const char *)stack, class), class);
    stack[1] = (uintptr_t)site;
    check(site_rules_class(site, (const char *)stack, class) >= FIXED_CLASS_COUNT);
}

check_main()
