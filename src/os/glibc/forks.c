/* Handlers of fork in glibc. A handler of pthread_atfork belongs to the file that registers it, and
 * `exit` takes it away, even while another thread is in fork: the locks that the first handler
 * has taken would never be released. Without an owner they stay. */
#include "os/os.h"

extern int register_handlers(void (*before)(void), void (*in_parent)(void), void (*in_child)(void),
                             void *owner) __asm__("__register_atfork");

void os_handle_forks(void (*before)(void), void (*in_parent)(void), void (*in_child)(void))
{
    (void)register_handlers(before, in_parent, in_child, NULL);
}
