/* operator new and delete by their symbols, for a program in C. Weak: an allocator without them, or
   a build without a C++ runtime, leaves them out. */
#ifndef HAKMEM_TESTS_OPERATORS_H
#define HAKMEM_TESTS_OPERATORS_H

#include <stddef.h>

void *operator_new(size_t size) __asm__("_Znwm") __attribute__((weak));
void *operator_new_array(size_t size) __asm__("_Znam") __attribute__((weak));
void *new_aligned(size_t, size_t) __asm__("_ZnwmSt11align_val_t") __attribute__((weak));
void *new_array_aligned(size_t, size_t) __asm__("_ZnamSt11align_val_t") __attribute__((weak));
void delete_plain(void *) __asm__("_ZdlPv") __attribute__((weak));
void delete_array(void *) __asm__("_ZdaPv") __attribute__((weak));
void delete_sized(void *, size_t) __asm__("_ZdlPvm") __attribute__((weak));
void delete_array_sized(void *, size_t) __asm__("_ZdaPvm") __attribute__((weak));
void delete_nothrow(void *, const void *) __asm__("_ZdlPvRKSt9nothrow_t") __attribute__((weak));
void delete_aligned(void *, size_t) __asm__("_ZdlPvSt11align_val_t") __attribute__((weak));
void delete_sized_aligned(void *, size_t, size_t) __asm__("_ZdlPvmSt11align_val_t")
    __attribute__((weak));

#endif
