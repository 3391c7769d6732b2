/* The streams of musl, which shows neither its list of streams nor the lock of that list.
 *
 * The heap of musl is locked behind that list in fork, ours before. One order of events can block:
 * a thread forks, a second flushes all streams, and a third allocates inside of a stream (getline).
 * No buffer of a stream is a block of its own: each lies in the block of the stream, or in musl. */
#include "os/os.h"

void os_lock_streams(void)
{
}

void os_unlock_streams(void)
{
}

void os_reset_streams(void)
{
}

void os_visit_stream_buffers(void (*visit)(const void *buffer, void *context), void *context)
{
    (void)visit;
    (void)context;
}
