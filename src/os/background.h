/* The thread that the operator may ask for (the option background), which gives idle memory back
 * while the program makes no call. The C library makes it and knows it. The thread blocks every
 * signal and opens no file. When no other thread is left it reads /proc/self/stat, and ends.
 * Without the option the library has no thread. */
#ifndef HAKMEM_OS_BACKGROUND_H
#define HAKMEM_OS_BACKGROUND_H

#include "base/types.h"

/* The calling process may have the thread from here on: when the library is loaded, and in the
 * child of a fork. Not so a child of vfork, whose memory is its parent's. */
void os_background_allow(void);

/* Starts the thread, unless it is running or may not: it calls `work` in each PURGE_PERIOD_MS. The
 * caller holds no lock, for the C library allocates meanwhile. */
void os_background_start(void (*work)(void));

bool os_background_is_running(void);

/* Is the calling thread that one? */
bool os_is_background(void);

#endif
