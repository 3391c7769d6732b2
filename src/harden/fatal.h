/* Last words: one exact line about what the program did, then abort. No allocation, any state. */
#ifndef HAKMEM_HARDEN_FATAL_H
#define HAKMEM_HARDEN_FATAL_H

#include "base/types.h"

/* `verb` is what the program called: "free", "realloc", "malloc_usable_size". `size` is that of the
 * block in bytes. */
_Noreturn void fatal_already_free(const char *verb, const void *ptr, size_t size);
_Noreturn void fatal_inside_block(const char *verb, const void *ptr, size_t size);
_Noreturn void fatal_free_memory(const char *verb, const void *ptr);
_Noreturn void fatal_not_ours(const char *verb, const void *ptr);
_Noreturn void fatal_wrong_size(const char *verb, const void *ptr, size_t said, size_t size);
_Noreturn void fatal_overflow(const void *ptr, size_t size);
_Noreturn void fatal_written_after_free(const void *ptr, size_t size);
_Noreturn void fatal(const char *reason);

/* Writes one line to standard error. */
void complain(const char *text);

#endif
