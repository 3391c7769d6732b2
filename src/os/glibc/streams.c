/* The streams of glibc: the part of os.h that is about the C library, not the kernel. */
#include "os/os.h"

#include <stdio.h>

/* glibc's recursive lock on the list of all open streams, exported for programs that walk the list,
 * as the functions beside it are. */
extern void stream_list_lock(void) __asm__("_IO_list_lock") __attribute__((weak));
extern void stream_list_unlock(void) __asm__("_IO_list_unlock") __attribute__((weak));
extern void stream_list_resetlock(void) __asm__("_IO_list_resetlock") __attribute__((weak));

/* The walk. A stream is a FILE. */
extern FILE *stream_first(void) __asm__("_IO_iter_begin") __attribute__((weak));
extern FILE *stream_end(void) __asm__("_IO_iter_end") __attribute__((weak));
extern FILE *stream_next(FILE *stream) __asm__("_IO_iter_next") __attribute__((weak));

/* The flag of a stream whose buffer the program gave it (setvbuf), or that needs none. */
#define BUFFER_IS_THE_PROGRAMS 1

void os_lock_streams(void)
{
    if (stream_list_lock != NULL)
        stream_list_lock();
}

void os_unlock_streams(void)
{
    if (stream_list_unlock != NULL)
        stream_list_unlock();
}

void os_reset_streams(void)
{
    if (stream_list_resetlock != NULL)
        stream_list_resetlock();
}

void os_visit_stream_buffers(void (*visit)(const void *buffer, void *context), void *context)
{
    if (stream_first == NULL || stream_end == NULL || stream_next == NULL)
        return;
    os_lock_streams();
    for (FILE *stream = stream_first(); stream != stream_end(); stream = stream_next(stream))
        if (stream->_IO_buf_base != NULL && (stream->_flags & BUFFER_IS_THE_PROGRAMS) == 0)
            visit(stream->_IO_buf_base, context);
    os_unlock_streams();
}
