/* The part of os.h that is about the C library, not the kernel. Everything it looks for is weak:
 * a C library that lacks it has nothing to be looked after. */
#include "os/os.h"

/* glibc's recursive lock on the list of all open streams. It is exported for programs that walk the
 * list, as the functions beside it are. */
extern void stream_list_lock(void) __asm__("_IO_list_lock") __attribute__((weak));
extern void stream_list_unlock(void) __asm__("_IO_list_unlock") __attribute__((weak));
extern void stream_list_resetlock(void) __asm__("_IO_list_resetlock") __attribute__((weak));

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
