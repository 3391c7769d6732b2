/* Linked with --wrap=_exit: a failed check (tests/check.h) and the fake kernel's os_abort end by
   _exit, which libFuzzer does not see. A signal makes it save the input. */
#include <stdlib.h>

void __wrap__exit(int status) __attribute__((noreturn));

void __wrap__exit(int status)
{
    (void)status;
    abort();
}
