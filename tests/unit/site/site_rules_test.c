/* site/site_rules.h: what rules of a policy do to size classes. How calls find them:
 * tests/preload/test_policy.py. */
#include "site/site_rules.h"

#include "base/format.h"
#include "os/os.h"
#include "slab/size_class.h"

#include "unit/fresh.h"

/* A rule of group 1 for each class. */
static policy_t policy;
static bool is_named;

/* The site is where the code of this program begins. */
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
        site_frame_t *frame = &policy.rules[index].frames[0];
        memcpy(frame->build_id, line.text, line.length + 1);
        frame->file_offset = code->file_offset;
    }
    is_named = true;
}

fresh_test(a_class_stays_open_whose_group_gets_no_number)
{
    initialise();
    for (unsigned fixed = 1; fixed < FIXED_CLASS_COUNT; fixed++)
        policy.rules[policy.rule_count++] = (site_rule_t){
            .depth = 1, .size = (unsigned)size_classes[fixed].size, .group = 1};
    os_visit_code(name_site, NULL);
    if (!is_named)
        check_skip("the linker wrote no build ID");
    check_eq(site_rules_create(&policy), FIXED_CLASS_COUNT - 1);
    check_eq(size_classes_made(), CLASS_COUNT);
    for (unsigned fixed = 1; fixed < FIXED_CLASS_COUNT; fixed++)
        check_eq(size_class_is_closed(fixed), fixed <= MADE_CLASSES_MOST);
}

check_main()
