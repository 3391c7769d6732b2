/* Handlers of fork in musl, which never takes one away. */
#include <pthread.h>

#include "os/os.h"

void os_handle_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    (void)pthread_atfork(before, in_parent, in_child);
}
