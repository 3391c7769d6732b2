/* Where huge blocks began that were freed lately, for the words of an error only: their mappings
 * are gone. Any thread; what two write at once may be forgotten. */
#ifndef HAKMEM_SPAN_HUGE_HISTORY_H
#define HAKMEM_SPAN_HUGE_HISTORY_H

#include "base/types.h"

/* A huge block of `size` bytes was freed that began at `start`. */
void huge_history_note(const void *start, size_t size);

/* Did a block begin at `ptr` that is noted? *size is its length then. */
bool huge_history_find(const void *ptr, size_t *size);

#endif
