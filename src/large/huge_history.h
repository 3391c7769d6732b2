/* Where blocks began that were freed lately and left nothing that describes them: huge blocks, and
 * those too long for the span cache. For the text of an error only. Any thread; what two write at
 * once may be forgotten. */
#ifndef HAKMEM_LARGE_HUGE_HISTORY_H
#define HAKMEM_LARGE_HUGE_HISTORY_H

#include "base/types.h"

/* A block of `size` bytes was freed that began at `start`. */
void huge_history_note(const void *start, size_t size);

/* Did a block begin at `ptr` that is noted? *size is its length then. */
bool huge_history_find(const void *ptr, size_t *size);

#endif
