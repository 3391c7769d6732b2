/* Operators new and delete. C++ has eight base forms: new, new[], delete and delete[], each with
 * and without an alignment. The other twelve, nothrow and sized, call a base form; new[] and
 * delete[] call new and delete. A program may replace any of the twenty.
 *
 * Every form is weak, so that a static program can bring its own. A form calls another one by its
 * public name alone: the call reaches what the linker has bound, ours or the program's. */
#ifndef HAKMEM_ENTRY_OPERATORS_H
#define HAKMEM_ENTRY_OPERATORS_H

#include "base/types.h"

#define OPERATOR PUBLIC __attribute__((weak))

/* The second argument is the alignment, or something that the form does not read. */
typedef void *new_t(size_t size, size_t alignment);
typedef void delete_t(void *ptr, size_t alignment);

OPERATOR new_t new_plain __asm__("_Znwm");
OPERATOR new_t new_array __asm__("_Znam");
OPERATOR new_t new_aligned __asm__("_ZnwmSt11align_val_t");
OPERATOR new_t new_array_aligned __asm__("_ZnamSt11align_val_t");
OPERATOR delete_t delete_plain __asm__("_ZdlPv");
OPERATOR delete_t delete_array __asm__("_ZdaPv");
OPERATOR delete_t delete_aligned __asm__("_ZdlPvSt11align_val_t");
OPERATOR delete_t delete_array_aligned __asm__("_ZdaPvSt11align_val_t");

/* The base forms of this library, whatever their public names are bound to. */
extern HIDDEN new_t own_new_plain, own_new_array, own_new_aligned, own_new_array_aligned;
extern HIDDEN delete_t own_delete_plain, own_delete_array, own_delete_aligned,
    own_delete_array_aligned;
#define OWN(form, symbol) __typeof__(form) own_##form __attribute__((alias(symbol)))

/* Sets operators_are_replaced. The library has been relocated; nothing else is asked for. */
void operators_look(void);

/* The nothrow forms of operator new, as the C++ runtime has them. */
typedef enum nothrow_form {
    NOTHROW,
    NOTHROW_ARRAY,
    NOTHROW_ALIGNED,
    NOTHROW_ARRAY_ALIGNED,
    NOTHROW_FORMS,
} nothrow_form_t;

typedef void *nothrow_t(size_t size, size_t alignment, const void *tag);

/* The throwing form of each, as it is bound: ours or the program's. */
extern HIDDEN new_t *const operators_nothrow_bases[NOTHROW_FORMS];

/* NULL: there is no C++ runtime. */
nothrow_t *operators_find_nothrow(nothrow_form_t form);

/* In the first constructor: looks for what the nothrow forms need where operators are replaced. */
void operators_at_load(void);

/* A nothrow form of new has missed, or one of new[]. */
void *new_nothrow_slow(size_t size, const void *caller);
void *new_array_nothrow_slow(size_t size, const void *caller);

/* A sized form of delete has missed, one that calls `base`. */
void delete_sized_slow(void *ptr, size_t size, size_t alignment, delete_t *base);

#endif
