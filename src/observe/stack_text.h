/* Call stacks in messages. */
#ifndef HAKMEM_OBSERVE_STACK_TEXT_H
#define HAKMEM_OBSERVE_STACK_TEXT_H

#include "base/format.h"

/* Adds return addresses, innermost first, as "FILE+ADDRESS < FILE+ADDRESS": addresses as addr2line
 * takes them. No more than a line has room for. Takes the lock of the dynamic loader. */
void stack_text_add(line_t *line, const uintptr_t *frames, unsigned depth);

/* Writes to standard error from where a block that is to be named in a message was allocated, and
 * from where it was freed, as far as that is known (option leak_report). */
void stack_text_say_history(const void *block);

#endif
