/* Giving free pages back to the kernel: when, and in what order. The only caller of os_purge. */
#ifndef HAKMEM_SPAN_PURGE_H
#define HAKMEM_SPAN_PURGE_H

#include "base/types.h"

/* Gives back the free spans that have been free for the delay that the options name. Returns bytes.
 */
size_t purge_aged(uint64_t now_ms);

/* More free pages hold memory than may ever wait for their age. Cheap. */
bool purge_is_due(void);

/* Gives back the oldest of them until that is no longer so. Returns bytes. */
size_t purge_excess(uint64_t now_ms);

/* Gives back every free span now. Returns bytes. */
size_t purge_everything(uint64_t now_ms);

#endif
