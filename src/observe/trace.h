/* The allocation trace: every block that is handed out, resized or freed, in the order in which
 * that happened, for programs that look at it later or do the same again (docs/trace.md).
 *
 * The trace begins with TRACE_HEAD. Records follow: a letter, then numbers, of 7 bits to a byte,
 * the lowest first; the top bit is set in all bytes but the last. WHERE a block is: the difference
 * d of its address from that of the block named before, in granules of 16 bytes, written as 2d, or
 * as -2d - 1 where it is negative (zigzag).
 *
 *   m SIZE WHERE            malloc or operator new
 *   c SIZE WHERE            calloc: the block is all zero
 *   a SIZE SHIFT WHERE      the address is a multiple of 2^SHIFT, and was to be
 *   f WHERE                 free, before the memory can serve others
 *   b WHERE                 realloc begins: the block has no address until the thread's next `e`
 *   e SIZE WHERE            it ends, in the same place or in another
 *   t NUMBER                the thread of the following records, from 1 on
 *   w TIME                  so many milliseconds have gone by since the beginning or the last `w`
 *
 * One lock, which keeps the order; any thread. */
#ifndef HAKMEM_OBSERVE_TRACE_H
#define HAKMEM_OBSERVE_TRACE_H

#include "base/types.h"
#include "os/lock.h"

#define TRACE_HEAD "hakmem trace 1\n"

extern HIDDEN bool trace_is_on;

/* Is a trace being written? Read without the lock. */
static inline bool trace_is_wanted(void)
{
    return __atomic_load_n(&trace_is_on, __ATOMIC_RELAXED);
}

/* Takes the next part of the trace. False: it could not be kept, and the trace ends there. Called
 * under the lock. */
typedef bool (*trace_sink_t)(const void *bytes, size_t length);

/* Begins. Called once. False: no memory. */
bool trace_begin(trace_sink_t sink);

/* Ends the trace: records that are still in the buffer go to the sink. */
void trace_end(void);

/* Ends the trace without the records in the buffer: for the child of a fork, whose buffer holds
 * what its parent writes. */
void trace_drop(void);

/* A block of `size` bytes was handed out, at a multiple of `alignment` as was asked for. */
void trace_note_block(const void *block, size_t size, size_t alignment, bool is_zeroed);

void trace_note_free(const void *block);

/* Between these two calls no block that the thread allocates or frees is noted. At the end `block`
 * and `size` are the new ones, or the old ones where realloc has failed. */
void trace_begin_resize(const void *block);
void trace_end_resize(const void *block, size_t size);

void trace_at_fork(fork_phase_t phase);

#endif
