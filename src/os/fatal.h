/* Messages. A fatal one is one exact line about what the program did wrong, and then abort; a
 * warning or a line of a report names the program and the process, which goes on. Messages allocate
 * nothing and may be written in any state of the process. */
#ifndef HAKMEM_OS_FATAL_H
#define HAKMEM_OS_FATAL_H

#include "base/types.h"

/* `verb` is what the program called: "free", "realloc", "malloc_usable_size". `size` is that of the
 * block in bytes. */
_Noreturn void fatal_already_free(const char *verb, const void *ptr, size_t size);
_Noreturn void fatal_inside_block(const char *verb, const void *ptr, size_t size);
_Noreturn void fatal_free_memory(const char *verb, const void *ptr);
_Noreturn void fatal_not_ours(const char *verb, const void *ptr);
_Noreturn void fatal_wrong_size(const char *verb, const void *ptr, size_t said, size_t size);
_Noreturn void fatal_no_heap(const void *heap);
_Noreturn void fatal_overflow(const void *ptr, size_t size);
_Noreturn void fatal_written_after_free(const void *ptr, size_t size);
_Noreturn void fatal(const char *reason);

/* Notes which files options.report_fd and standard error are: at the start of the process, before
 * the program can open others under these numbers. */
void messages_prepare(void);

/* Is options.report_fd still the file that messages_prepare has noted? No report is written to
 * another one. */
bool reports_are_read(void);

/* May the message before an abort go to standard error? */
bool errors_are_read(void);

/* Writes "hakmem[PROCESS PROGRAM]: text" and a newline to options.report_fd: every warning, every
 * line of a report. */
void complain(const char *text);

#endif
