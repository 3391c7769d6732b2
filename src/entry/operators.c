/* Which operators are ours, and the nothrow forms of the C++ runtime. See operators.h. */
#include "entry/operators.h"

#include "os/cxx_runtime.h"
#include "base/config.h"
#include "heap/page_map.h"

typedef void (*function_t)(void);
#define BASE_FORM(name) {(function_t)(name), (function_t)own_##name}

/* `bound` is what the linker makes of the public name, here as in the program. */
static const struct {
    function_t bound, own;
} base_forms[] = {
    BASE_FORM(new_plain),         BASE_FORM(new_array),
    BASE_FORM(new_aligned),       BASE_FORM(new_array_aligned),
    BASE_FORM(delete_plain),      BASE_FORM(delete_array),
    BASE_FORM(delete_aligned),    BASE_FORM(delete_array_aligned),
};

void operators_look(void)
{
    for (unsigned index = 0; index < sizeof(base_forms) / sizeof(base_forms[0]); index++)
        if (base_forms[index].bound != base_forms[index].own)
            operators_are_replaced = true;
}

new_t *const operators_nothrow_bases[NOTHROW_FORMS] = {
    [NOTHROW] = new_plain,
    [NOTHROW_ARRAY] = new_array,
    [NOTHROW_ALIGNED] = new_aligned,
    [NOTHROW_ARRAY_ALIGNED] = new_array_aligned,
};

static const char *const nothrow_symbols[NOTHROW_FORMS] = {
    [NOTHROW] = "_ZnwmRKSt9nothrow_t",
    [NOTHROW_ARRAY] = "_ZnamRKSt9nothrow_t",
    [NOTHROW_ALIGNED] = "_ZnwmSt11align_val_tRKSt9nothrow_t",
    [NOTHROW_ARRAY_ALIGNED] = "_ZnamSt11align_val_tRKSt9nothrow_t",
};

static nothrow_t *nothrow_found[NOTHROW_FORMS]; /* NULL: not looked for yet, or there is none */

static void note_nothrow(nothrow_form_t form, void *found)
{
    nothrow_t *function;
    *(void **)&function = found;
    /* relaxed: a thread that finds it unset looks it up too, and finds the same */
    __atomic_store_n(&nothrow_found[form], function, __ATOMIC_RELAXED);
}

nothrow_t *operators_find_nothrow(nothrow_form_t form)
{
    if (__atomic_load_n(&nothrow_found[form], __ATOMIC_RELAXED) == NULL)
        note_nothrow(form, cxx_find(nothrow_symbols[form]));
    return __atomic_load_n(&nothrow_found[form], __ATOMIC_RELAXED);
}

/* Looked up later, in a call, they would take the lock of a thread that is loading a library; and
 * the constructor of that library may be waiting for the calling thread. */
void operators_at_load(void)
{
    operators_look();
    for (nothrow_form_t form = 0; operators_are_replaced && config_shared && form < NOTHROW_FORMS;
         form++)
        note_nothrow(form, cxx_find_at_load(nothrow_symbols[form]));
}
